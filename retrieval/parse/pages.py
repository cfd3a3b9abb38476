"""Puts page texts together into one text with a page map. Knows nothing of where they came from."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.types import DocumentPage


def assemble(texts: Sequence[str]) -> tuple[str, tuple[DocumentPage, ...]]:
    """Joins page texts with a newline, which belongs to the page before it.

    Page ranges are half-open, ascending and cover the text: page n ends where page n + 1 starts.
    """
    pieces: list[str] = []
    pages: list[DocumentPage] = []
    start = 0
    for number, text in enumerate(texts, 1):
        piece = text if number == len(texts) or not text else text + "\n"
        pieces.append(piece)
        end = start + len(piece)
        pages.append(DocumentPage(number, start, end, method="text" if text.strip() else "empty"))
        start = end
    return "".join(pieces), tuple(pages)


def split_marked(marked: str) -> tuple[str, tuple[DocumentPage, ...]]:
    """Takes form feeds out of a text and turns them into half-open page ranges.

    A sentence may run over a mark. Word writes a rendered break after each one set by hand, so two
    marks with no text between are one page border.
    """
    pieces: list[str] = []
    starts = [0]
    length = 0
    for index, part in enumerate(marked.split("\f")):
        if index and "".join(pieces[-1:]).strip() and length > starts[-1]:
            starts.append(length)
        kept = part if length else part.lstrip("\n")
        if pieces and length and kept.startswith("\n") and pieces[-1].endswith("\n"):
            kept = kept[1:]
        if kept:
            pieces.append(kept)
            length += len(kept)
    text = "".join(pieces)
    trimmed = text.rstrip()
    starts = [start for start in starts if start == 0 or start < len(trimmed)]
    ends = [*starts[1:], len(trimmed)]
    pages = tuple(
        DocumentPage(number, start, end)
        for number, (start, end) in enumerate(zip(starts, ends, strict=True), 1)
    )
    return trimmed, pages
