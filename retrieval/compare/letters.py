"""Capital letters that changed inside sentences, where they may turn a word into a defined term.

Headings, lines in capitals and the beginnings of sentences are a matter of style.
"""

from __future__ import annotations

from collections.abc import Iterator

from retrieval.compare.alignment import Hunk
from retrieval.compare.numbering import WordMap
from retrieval.compare.places import Places
from retrieval.compare.words import Words, line_of

_MAX_HEADING = 90


def letter_case(old: Places, new: Places, words: WordMap) -> Iterator[Hunk]:
    """Equal words whose first letter is a capital in one version only."""
    for index, other in enumerate(words.to_new):
        if other < 0:
            continue
        before, after = old.words.raw(index), new.words.raw(other)
        if before == after or before[0].isupper() == after[0].isupper():
            continue
        if before[0].casefold() != after[0].casefold():
            continue
        shouted = len(before) > 1 and (before.isupper() or after.isupper())
        if shouted or _is_style(old.words, index) or _is_style(new.words, other):
            continue
        yield Hunk(index, index + 1, other, other + 1)


def _is_style(words: Words, index: int) -> bool:
    if index == 0 or words.heads[index] or words.ends_sentence(index - 1):
        return True
    start = words.starts[index]
    clause = words.version.text
    line = clause[slice(*line_of(clause, start))].strip()
    return len(line) <= _MAX_HEADING and line[-1:] not in (".", ";", ",", "。", "；", "，")
