"""What a sentence of a contract offers to the learned cues: its wording as short word sequences.

A sentence is described by its stems in ones, twos and threes, by those of the headings above it
(`h:`) and of the line that opens its list (`l:`), and by the shapes of facts that it holds
(`<date>`, `<money>`). It knows English only, and no weights.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from retrieval.folding import fold
from retrieval.passages import lead_in
from retrieval.sentences import Span, split
from retrieval.stems import stemming
from retrieval.titles import ClauseTitles
from retrieval.types import Chunk, Clause

_MONTHS = frozenset((
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
))  # fmt: skip
_MONTH_DAY = re.compile(rf"\b(?:{'|'.join(sorted(_MONTHS))})\b\.?\s+\d{{1,2}}")
_SLASHED_DATE = re.compile(r"\d{1,2}/\d{1,2}/\d{2,4}")
_MONEY = re.compile(r"[$€£]\s?\d")
_PERCENT = re.compile(r"\d\s?%")
_TERM = re.compile(r'"[a-z]')
_DIGIT = re.compile(r"\d")
_SPANS = frozenset(["day", "days", "month", "months", "year", "years"])
_MONEY_WORDS = frozenset({"usd", "dollars"})
_WORD = re.compile(r"[a-z][a-z0-9]*")
Stems = tuple[str, ...]
_SHORTEST = 20.0
"""Sequences that a short sentence counts as having, so that two words do not weigh everything."""


@dataclass(frozen=True, slots=True)
class CueSentence:
    """Sentence `text[span]` of chunk number `chunk` with the wording known to the cues. `length`
    is the number of sequences it has in all, headings counted half."""

    span: Span
    chunk: int
    terms: tuple[str, ...]
    length: float


class Wording:
    """The wording that is looked for; all of it without `terms`, for learning, when nothing is
    chosen yet."""

    def __init__(self, terms: Iterable[str] | None = None) -> None:
        self._known: dict[str, frozenset[Stems]] | None = None
        if terms is not None:
            known: dict[str, set[Stems]] = defaultdict(set)
            for term in terms:
                mark = term[:2] if term[1:2] == ":" else ""
                known[mark].add(tuple(term[len(mark) :].split(" ")))
            self._known = {mark: frozenset(found) for mark, found in known.items()}

    def of(self, found: set[Stems], mark: str = "") -> list[str]:
        """The sequences in `found` that are known, spelled with their mark."""
        known = found if self._known is None else found & self._known.get(mark, frozenset())
        return [mark + " ".join(sequence) for sequence in known]


def _sequences(words: Sequence[str], longest: int) -> set[Stems]:
    of = stemming()
    stems = [of(word) for word in words]
    found: set[Stems] = {(one,) for one in stems}
    for size in range(2, longest + 1):
        found.update(zip(*(stems[at:] for at in range(size)), strict=False))
    return found


def _shapes(folded: str, words: Sequence[str]) -> Iterator[str]:
    """The kinds of fact that a sentence holds, by the look of it. The words are asked first: most
    sentences hold none, and a pattern costs more."""
    held = frozenset(words)
    digits = bool(_DIGIT.search(folded))
    if digits:
        yield "<number>"
    if (
        ("day" in held and "day of" in folded)
        or (digits and not held.isdisjoint(_MONTHS) and _MONTH_DAY.search(folded))
        or ("/" in folded and _SLASHED_DATE.search(folded))
    ):
        yield "<date>"
    if not held.isdisjoint(_MONEY_WORDS) or (digits and _MONEY.search(folded)):
        yield "<money>"
    if "percent" in held or ("%" in folded and _PERCENT.search(folded)):
        yield "<percent>"
    if not held.isdisjoint(_SPANS):
        yield "<span>"
    if '"' in folded and _TERM.search(folded):
        yield "<term>"


def cue_sentences(
    text: str,
    chunks: Sequence[Chunk],
    clauses: Sequence[Clause],
    titles: ClauseTitles,
    wording: Wording,
) -> Iterator[CueSentence]:
    """The sentences of every chunk, in order, each with its part of `wording`."""
    starts = sorted(clause.start for clause in clauses)
    headings: dict[tuple[int, ...], tuple[list[str], int]] = {}
    for chunk in chunks:
        inside = starts[bisect_right(starts, chunk.start) : bisect_left(starts, chunk.end)]
        spans = split(text, chunk.start, chunk.end, inside)
        for place, span in enumerate(spans):
            folded = fold(text[slice(*span)])
            words = _WORD.findall(folded)
            own = _sequences(words, 3)
            own.update((shape,) for shape in _shapes(folded, words))
            path = titles.path_at(span[0])
            if path not in headings:
                titled = fold(" . ".join(clauses[at].title for at in path))
                above = _sequences(_WORD.findall(titled), 2)
                headings[path] = (wording.of(above, "h:"), len(above))
            over, many = headings[path]
            opening = lead_in(text, spans, place)
            led = _WORD.findall(fold(text[slice(*opening)])) if opening else []
            found = (*wording.of(own), *over, *wording.of(_sequences(led, 2), "l:"))
            length = max(_SHORTEST, len(own) + 0.5 * many)
            yield CueSentence(span, chunk.index, found, length)
