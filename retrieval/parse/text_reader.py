"""Reads plain text. A form feed starts a new page; line breaks stay as the file has them. Knows
nothing of clauses or paragraphs."""

from __future__ import annotations

from retrieval.parse.cleaning import clean_text
from retrieval.parse.decode import decode
from retrieval.parse.pages import assemble
from retrieval.parse.source import Source
from retrieval.types import DocumentPage


def read_text(data: bytes, name: str) -> tuple[str, tuple[DocumentPage, ...], str, Source]:
    """Text, pages, encoding and second count of a TXT file. Raises Undecodable."""
    raw, encoding = decode(data, name)
    text, pages = assemble(split_pages(clean_text(raw)))
    return text, pages, encoding, Source(raw)


def split_pages(text: str) -> list[str]:
    """Page texts between form feeds, without blank lines at page borders; no empty last page."""
    pages = [page.strip("\n") if "\f" in text else page for page in text.split("\f")]
    while len(pages) > 1 and not pages[-1].strip():
        pages.pop()
    return pages
