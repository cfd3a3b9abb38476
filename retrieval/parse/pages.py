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
