"""Evidence so near to the question that it must not be refused: its own words in their order, or
the thing it names beside a fact of the kind it asks for.

It knows wording only; the kind of fact is judged in `asked`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.asked import holds
from retrieval.folding import fold, fold_width
from retrieval.query import Query
from retrieval.stems import words
from retrieval.tokens import HAN_STOP
from retrieval.wordlists import word_list

_WORDS_IN_A_ROW, _CHARACTERS_IN_A_ROW = 3, 6
_HAN = re.compile("[\u3400-\u9fff]")


def _plain(text: str) -> list[str]:
    """English stems without articles and auxiliary verbs, Chinese characters without particles."""
    folded, links = fold(text), word_list("linking_english")
    places = [
        (word.start, word.stem)
        for word in words(folded)
        if folded[word.start : word.end] not in links
    ]
    places += [(m.start(), m.group()) for m in _HAN.finditer(folded) if m.group() not in HAN_STOP]
    return [term for _, term in sorted(places)]


def longest_run(asked: Sequence[str], said: Sequence[str]) -> tuple[int, int]:
    """(start in `asked`, length) of the longest run that stands in `said` unbroken."""
    best = (0, 0)
    before = [0] * (len(said) + 1)
    for place, term in enumerate(asked):
        now = [0] * (len(said) + 1)
        for other, word in enumerate(said, start=1):
            if word == term:
                now[other] = before[other - 1] + 1
                if now[other] > best[1]:
                    best = (place - now[other] + 1, now[other])
        before = now
    return best


def near(query: Query, quotes: Sequence[str]) -> bool:
    """Whether one of the quotes is too near to the question to be refused."""
    return any(says_it(query, quote) or holds_the_named(query, quote) for quote in quotes)


def says_it(query: Query, quote: str, share: float = 0.6) -> bool:
    """Whether `quote` repeats the question's content in a row and holds the kind of fact asked."""
    if not query.asked or holds(fold_width(quote), query.asked) < 1.0:
        return False
    asked = _plain(query.text)
    start, length = longest_run(asked, _plain(quote))
    run = asked[start : start + length]
    han = sum(bool(_HAN.match(term)) for term in run)
    if length < (_CHARACTERS_IN_A_ROW if han else _WORDS_IN_A_ROW):
        return False
    joined = "".join(run)
    held = total = 0.0
    for unit in query.units:
        inside = unit.terms[0] in run or (
            bool(_HAN.search(unit.surface)) and unit.surface in joined
        )
        total += unit.weight
        held += unit.weight * inside
    return total > 0 and held >= share * total


def holds_the_named(query: Query, quote: str) -> bool:
    """Whether `quote` holds every name of the question and the kind of fact asked for."""
    if not query.names or not query.asked or holds(fold_width(quote), query.asked) < 1.0:
        return False
    known = {word.stem for word in words(fold(quote))}
    return all(name in known for name in query.names)
