"""The ingestion receipt: what reading a file gave, page by page, so that lost text can be seen.

Figures are counted twice: in the file by a plain pass of their own (`retrieval.parse.source`), and
in the text that is searched. A figure here is a run of digits with its points and commas, or at
least two Chinese numerals; what it means is not read.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from retrieval.parse.source import Source
    from retrieval.types import Chunk, DocumentPage

LISTED = 50
"""Missing figures that a receipt lists; the others are only counted."""
_SHORT = 64
"""Up to this many characters a figure's parts are looked up one by one. With a loop over all others
20,000 lost figures beside 20,000 new ones took 6.6 s, now 1.0 s."""
_FIGURE = re.compile(
    r"\d+(?:[.,]\d+)*|[〇零一二三四五六七八九十百千万亿壹贰叁肆伍陆柒捌玖拾佰仟萬億貳參陸]{2,}"
)


@dataclass(frozen=True, slots=True)
class PageReceipt:
    """One page: `characters` of its text without outer spaces, `garbled` the share of its
    characters that can't be decoded, `tables` those found on it."""

    number: int
    label: str | None
    method: str
    characters: int
    garbled: float
    tables: int


@dataclass(frozen=True, slots=True)
class FigureCount:
    """`in_file`: figures of the whole file; `left_out`: those in text that was left out on purpose;
    `in_text`: figures of the document's text, `added` of which the file does not hold as words
    (numbers that Word computes for its lists, marks of notes); `in_index`: those that lie in a
    chunk, None before there are chunks. `missing_count` figures of the file are in neither of
    them, or lie in no chunk; `missing` lists the first."""

    in_file: int
    in_text: int
    in_index: int | None
    left_out: int
    added: int
    missing_count: int
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """What reading one file gave. `empty_pages` are pages without text."""

    characters: int
    garbled: float
    tables: int
    empty_pages: tuple[int, ...]
    figures: FigureCount
    pages: tuple[PageReceipt, ...]


def receipt_of(text: str, pages: Sequence[DocumentPage], source: Source) -> Receipt:
    """The receipt of a text that was just read; `with_index` completes it."""
    tables = source.tables or (0,) * len(pages)
    garbled = source.garbled or (0.0,) * len(pages)
    rows = tuple(
        PageReceipt(
            page.number,
            page.label,
            page.method,
            len(text[page.start : page.end].strip()),
            share,
            count,
        )
        for page, share, count in zip(pages, garbled, tables, strict=True)
    )
    in_file = list(figures(source.plain))
    in_text = list(figures(text))
    left_out = list(figures(source.left_out))
    added = Counter(figures(source.added))
    missing = _missing(in_file, Counter(in_text) - added + Counter(left_out))
    weight = sum(row.characters for row in rows)
    return Receipt(
        characters=len(text),
        garbled=sum(row.garbled * row.characters for row in rows) / weight if weight else 0.0,
        tables=sum(tables),
        empty_pages=tuple(row.number for row in rows if not row.characters),
        figures=FigureCount(
            in_file=len(in_file),
            in_text=len(in_text),
            in_index=None,
            left_out=len(left_out),
            added=added.total(),
            missing_count=len(missing),
            missing=tuple(missing[:LISTED]),
        ),
        pages=rows,
    )


def with_index(receipt: Receipt, text: str, chunks: Sequence[Chunk]) -> Receipt:
    """The receipt with the figures that lie whole inside a chunk (`chunks` in text order)."""
    starts = [chunk.start for chunk in chunks]
    outside: list[str] = []
    for start, end, figure in _places(text):
        holder = bisect_right(starts, start) - 1
        if holder < 0 or end > chunks[holder].end:
            outside.append(figure)
    count = receipt.figures
    return replace(
        receipt,
        figures=replace(
            count,
            in_index=count.in_text - len(outside),
            missing_count=count.missing_count + len(outside),
            missing=(*count.missing, *outside)[:LISTED],
        ),
    )


def figures(text: str) -> Iterator[str]:
    """Every figure of a text, digits in ASCII, in order."""
    for found in _FIGURE.finditer(unicodedata.normalize("NFKC", text)):
        yield found.group()


def _places(text: str) -> Iterator[tuple[int, int, str]]:
    # Offsets need the text as it is: full-width digits are \d as well.
    for found in _FIGURE.finditer(text):
        yield found.start(), found.end(), found.group()


def _missing(in_file: Sequence[str], kept: Counter[str]) -> list[str]:
    """Figures of the file that are not among those kept, in the file's order.

    A figure that a line's end cuts in two in the file is one in the text, and the other way round:
    what remains on both sides is compared by its parts.
    """
    left = Counter(kept)
    missing: list[str] = []
    for figure in in_file:
        if left[figure]:
            left[figure] -= 1
        else:
            missing.append(figure)
    if not missing:
        return missing
    extra = list(+left)
    # Figures hold no line ends: one search goes through all of them.
    joined, parts = "\n" + "\n".join(extra) + "\n", frozenset(extra)
    found = {figure: _in_parts(figure, joined, parts) for figure in set(missing)}
    return [figure for figure in missing if not found[figure]]


def _in_parts(figure: str, joined: str, parts: frozenset[str]) -> bool:
    """Whether a figure is part of another, or another of at least two characters part of it."""
    if len(figure) < 2:
        return f"\n{figure}" in joined or f"{figure}\n" in joined
    if figure in joined:
        return True
    if len(figure) > _SHORT:
        return any(len(other) > 1 and other in figure for other in parts)
    ends = range(2, len(figure) + 1)
    return any(figure[first:last] in parts for last in ends for first in range(last - 1))
