"""What a sentence of a contract offers to the learned cues: its wording as short word sequences.

A sentence is described by its stems in ones, twos and threes, by those of the headings above it
(`h:`) and of the line that opens its list (`l:`), and by the shapes of facts that it holds
(`<date>`, `<money>`). It knows English only, and no weights.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from retrieval.folding import fold
from retrieval.passages import lead_in
from retrieval.sentences import Span, split
from retrieval.stems import words
from retrieval.titles import ClauseTitles
from retrieval.types import Chunk, Clause

_SHAPES = re.compile(
    r"(?P<date>\b(?:january|february|march|april|may|june|july|august|september|october|november"
    r"|december)\b\.?\s+\d{1,2}|\d{1,2}/\d{1,2}/\d{2,4}|\bday of\b)"
    r"|(?P<money>[$€£]\s?\d|\b(?:usd|dollars)\b)|(?P<percent>\d\s?%|\bpercent\b)"
    r"|(?P<span>\b(?:days?|months?|years?)\b)|(?P<term>\"[a-z])|(?P<number>\d)"
)
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


class Everything(Container[str]):
    """Holds every wording: for learning, when nothing is chosen yet."""

    def __contains__(self, item: object) -> bool:
        return True


def _sequences(folded: str, longest: int, mark: str = "") -> set[str]:
    stems = [word.stem for word in words(folded)]
    return {
        mark + " ".join(stems[at : at + size])
        for size in range(1, longest + 1)
        for at in range(len(stems) - size + 1)
    }


def cue_sentences(
    text: str,
    chunks: Sequence[Chunk],
    clauses: Sequence[Clause],
    titles: ClauseTitles,
    known: Container[str],
) -> Iterator[CueSentence]:
    """The sentences of every chunk, in order, each with its wording that stands in `known`."""
    starts = [clause.start for clause in clauses]
    headings: dict[tuple[int, ...], set[str]] = {}
    for chunk in chunks:
        inside = [place for place in starts if chunk.start < place < chunk.end]
        spans = split(text, chunk.start, chunk.end, inside)
        for place, span in enumerate(spans):
            folded = fold(text[slice(*span)])
            own = _sequences(folded, 3)
            own.update(f"<{match.lastgroup}>" for match in _SHAPES.finditer(folded))
            path = titles.path_at(span[0])
            if path not in headings:
                above = " . ".join(clauses[clause].title for clause in path)
                headings[path] = _sequences(fold(above), 2, "h:")
            opening = lead_in(text, spans, place)
            led = _sequences(fold(text[slice(*opening)]), 2, "l:") if opening else set()
            found = tuple(
                term for group in (own, headings[path], led) for term in group if term in known
            )
            length = max(_SHORTEST, len(own) + 0.5 * len(headings[path]))
            yield CueSentence(span, chunk.index, found, length)
