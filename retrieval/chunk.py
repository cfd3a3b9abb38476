"""Retrieval chunks: clause-aligned pieces of a document that cover all of it.

A clause that fits is never cut; small clauses that follow each other are put together; a long one
is cut at sentence ends into pieces of similar size, and each piece keeps the heading path. It
does not know the question: what belongs together is read from the outline alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.clauses import label, path
from retrieval.sentences import split as split_sentences
from retrieval.types import Chunk, Clause, Document

MERGE_CHARS = 1100
"""Neighbouring small clauses are joined up to this size; see docs/benchmarks/retrieval.md."""

_MAX_HEADING = 240
_BARE = 80
"""Characters below which a segment is taken for a heading without its body."""

_BREAK = re.compile(r"\n|(?<=[,，；;、:：])|\s")
_FIGURE = re.compile(r"[\d０-９][\d０-９,.，．/年月日%％-]*|[A-Za-z]+")


@dataclass(frozen=True, slots=True)
class _Piece:
    """`clause` is the first clause of the piece, `last` the last one."""

    start: int
    end: int
    clause: int | None
    last: int | None


def split(
    document: Document, clauses: Sequence[Clause], *, max_chars: int = 1200
) -> tuple[Chunk, ...]:
    """Chunks of at most `max_chars` characters that cover the document's text without a gap.

    Raises ValueError for `max_chars` below 200, where headings and figures would not fit.
    """
    if max_chars < 200:
        raise ValueError(f"max_chars must be at least 200, not {max_chars}")
    text = document.text
    if not text:
        return ()
    pieces = _with_bodies(_segments(text, clauses, max_chars), text, clauses, max_chars)
    pieces = _merge(pieces, text, clauses, max_chars)
    starts = [page.start for page in document.pages]
    numbers = [page.number for page in document.pages]

    def page(offset: int) -> int:
        return numbers[max(0, bisect_right(starts, offset) - 1)] if numbers else 1

    chunks = []
    for index, piece in enumerate(pieces):
        inside = text[piece.start : piece.end]
        first = piece.start + len(inside) - len(inside.lstrip())
        last = piece.start + max(len(inside.rstrip()) - 1, 0)
        clause = _shared(clauses, piece)
        name = None if clause is None else label(clauses, clause) or None
        chunks.append(
            Chunk(
                index, piece.start, piece.end, name, _heading(clauses, clause),
                page(first if first < piece.end else piece.start), page(max(last, piece.start)),
            )
        )  # fmt: skip
    return tuple(chunks)


def _shared(clauses: Sequence[Clause], piece: _Piece) -> int | None:
    """The innermost clause around everything in the piece, or its first clause."""
    if piece.clause is None or piece.last is None:
        return piece.clause
    first = [clause.index for clause in path(clauses, piece.clause)]
    last = {clause.index for clause in path(clauses, piece.last)}
    both = [index for index in first if index in last]
    return both[-1] if both else piece.clause


def _heading(clauses: Sequence[Clause], index: int | None) -> str:
    """The path of headings, outermost first, innermost kept when it is too long."""
    if index is None:
        return ""
    parts = [f"{clause.number} {clause.title}".strip() for clause in path(clauses, index)]
    heading = " > ".join(parts)
    while len(heading) > _MAX_HEADING and len(parts) > 1:
        parts.pop(0)
        heading = " > ".join(parts)
    return heading[:_MAX_HEADING]


def _segments(text: str, clauses: Sequence[Clause], max_chars: int) -> list[_Piece]:
    """The text cut at every clause start, long segments cut again."""
    cuts = [(clause.start, clause.index) for clause in clauses]
    if not cuts or cuts[0][0] > 0:
        cuts.insert(0, (0, None))  # type: ignore[arg-type]
    segments: list[_Piece] = []
    for (start, clause), end in zip(cuts, [c[0] for c in cuts[1:]] + [len(text)], strict=True):
        if start < end:
            segments.extend(
                _Piece(left, right, clause, clause)
                for left, right in _cut(text, start, end, max_chars)
            )
    return segments


def _cut(text: str, start: int, end: int, max_chars: int) -> list[tuple[int, int]]:
    """`text[start:end]` in pieces of similar size, cut before sentences where possible."""
    if end - start <= max_chars:
        return [(start, end)]
    places = [place for place, _ in split_sentences(text, start, end) if place > start]
    pieces = []
    at = start
    while end - at > max_chars:
        left = end - at
        aim = at + left // -(-left // max_chars)
        limit = at + max_chars
        inside = places[bisect_left(places, at + max_chars // 4) : bisect_right(places, limit)]
        place = min(inside, key=lambda p: abs(p - aim)) if inside else _weak_cut(text, at, limit)
        pieces.append((at, place))
        at = place
    pieces.append((at, end))
    return pieces


def _weak_cut(text: str, at: int, limit: int) -> int:
    """A place at or before `limit` for a text without sentence ends: a line, a comma, a space, and
    in any case not inside a figure or a word unless that alone is longer than a chunk."""
    floor = at + (limit - at) // 2
    for pattern in (r"\n", r"[,，；;、:：]", r"\s"):
        found = [match.end() for match in re.finditer(pattern, text[floor:limit])]
        for offset in reversed(found):
            if not _inside_figure(text, floor + offset):
                return floor + offset
    place = limit
    while place > floor and _inside_figure(text, place):
        place -= 1
    return place if place > floor else limit


def _inside_figure(text: str, place: int) -> bool:
    window = max(0, place - 40)
    return any(
        window + match.start() < place < window + match.end()
        for match in _FIGURE.finditer(text[window : place + 40])
    )


def _with_bodies(
    pieces: Sequence[_Piece], text: str, clauses: Sequence[Clause], max_chars: int
) -> list[_Piece]:
    """Joins a bare heading with the first clause inside it, from the end so that chains join."""
    joined: list[_Piece] = []
    for piece in reversed(pieces):
        if joined:
            after = joined[-1]
            bare = len(text[piece.start : piece.end].strip()) < _BARE
            inside = piece.clause is not None and _related(clauses, piece.clause, after.clause) == 2
            if bare and inside and after.end - piece.start <= max_chars:
                joined[-1] = _Piece(piece.start, after.end, after.clause, after.last)
                continue
        joined.append(piece)
    return joined[::-1]


def _merge(
    pieces: Sequence[_Piece], text: str, clauses: Sequence[Clause], max_chars: int
) -> list[_Piece]:
    """Joins neighbouring small clauses of one parent, and what is too short to stand alone."""
    merged: list[_Piece] = []
    for piece in pieces:
        if merged:
            last = merged[-1]
            size = piece.end - last.start
            bare = len(text[last.start : last.end].strip()) < _BARE
            close = _related(clauses, last.clause, piece.clause)
            if size <= max_chars and (
                (bare and close >= 1) or (size <= MERGE_CHARS and close >= 1)
                or len(text[piece.start : piece.end].strip()) == 0
            ):  # fmt: skip
                merged[-1] = _Piece(last.start, piece.end, last.clause, piece.last)
                continue
        merged.append(piece)
    return merged


def _related(clauses: Sequence[Clause], first: int | None, second: int | None) -> int:
    """2 when `second` stands inside `first`, 1 when they share a parent or its line, else 0."""
    if first is None or second is None:
        return 1 if first == second else 0
    above = {clause.index for clause in path(clauses, second)}
    if first in above:
        return 2
    parents = {clause.index for clause in path(clauses, first)}
    shared = above & parents
    return 1 if shared or (clauses[first].parent is None and clauses[second].parent is None) else 0
