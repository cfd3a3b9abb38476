"""Turns one file into a Document: the type is told from its content, then the reader for it runs.

Knows no database, no storage and no ingestion stages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from retrieval.errors import EmptyFile, ParseCancelled, ParseTimeout, TooLarge
from retrieval.language import detect
from retrieval.parse.cleaning import require_words
from retrieval.parse.limits import MIB, ParseLimits
from retrieval.parse.names import display_name
from retrieval.parse.pages import assemble
from retrieval.parse.sniff import MEDIA_TYPES, Kind, sniff
from retrieval.parse.source import Source
from retrieval.receipt import Receipt, receipt_of
from retrieval.types import Box, Document, DocumentPage, DocumentWarning

_LISTED = 8


def parse_file(
    path: Path,
    name: str,
    *,
    limits: ParseLimits | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> Document:
    """Reads the file at `path`, which the user calls `name`.

    `on_progress(done, total)` counts pages (1 of 1 for formats without). `cancelled` is asked
    often; when it says True, ParseCancelled is raised. Every failure is a
    retrieval.errors.ParseError with a message for the user; OSError when `path` can't be opened.
    """
    limits = limits or ParseLimits()
    shown = display_name(name)
    size = path.stat().st_size
    if size == 0:
        raise EmptyFile(f"“{shown}” is empty (0 bytes). Upload the file that holds the text.")
    if size > limits.max_bytes:
        raise TooLarge(
            f"“{shown}” has {size / MIB:.0f} MiB; at most {limits.max_bytes // MIB} MiB are read. "
            "Split it or save it without pictures."
        )
    data = path.read_bytes()
    kind = sniff(data, shown)
    if kind == "pdf":
        parsed = _pdf(path, shown, limits, on_progress, cancelled)
    else:
        check = _checker(shown, limits, cancelled)
        check()
        if kind not in ("docx", "xlsx") and size > limits.max_inflated_bytes:
            raise TooLarge(
                f"“{shown}” has {size / MIB:.0f} MiB of text; at most "
                f"{limits.max_inflated_bytes // MIB} MiB are read. Split it."
            )
        parsed = _READERS[kind](data, shown, limits, check)
        check()
        require_words(parsed.text, shown)
        if on_progress is not None:
            on_progress(len(parsed.pages), len(parsed.pages))
    receipt = receipt_of(parsed.text, parsed.pages, parsed.source)
    return Document(
        text=parsed.text,
        pages=parsed.pages,
        name=shown,
        media_type=MEDIA_TYPES[kind],
        language=detect(parsed.text),
        warnings=(*parsed.warnings, *_missing(receipt)),
        encoding=parsed.encoding,
        char_boxes=parsed.char_boxes,
        receipt=receipt,
    )


@dataclass(frozen=True, slots=True)
class _Parsed:
    text: str
    pages: tuple[DocumentPage, ...]
    source: Source
    warnings: tuple[DocumentWarning, ...] = ()
    encoding: str | None = None
    char_boxes: dict[int, tuple[Box | None, ...]] = field(default_factory=dict)


# Each reader is imported when its format comes up: the PDF worker process needs none of them.
def _pdf(
    path: Path,
    name: str,
    limits: ParseLimits,
    on_progress: Callable[[int, int], None] | None,
    cancelled: Callable[[], bool] | None,
) -> _Parsed:
    from retrieval.parse.pdf_reader import read_pdf

    found = read_pdf(path, name, limits, on_progress, cancelled)
    return _Parsed(
        found.text, found.pages, found.source, found.warnings, char_boxes=found.char_boxes
    )


def _docx(data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]) -> _Parsed:
    from retrieval.parse.docx_reader import read_docx

    text, pages, warnings, source = read_docx(data, name, limits, check)
    return _Parsed(text, pages, source, warnings)


def _xlsx(data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]) -> _Parsed:
    from retrieval.parse.xlsx_reader import read_xlsx

    text, pages, warnings, source = read_xlsx(data, name, limits, check)
    return _Parsed(text, pages, source, warnings)


def _html(data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]) -> _Parsed:
    from retrieval.parse.html_reader import read_html

    html, encoding, source = read_html(data, name)
    hidden = DocumentWarning("hidden_text", "Hidden text in the page was left out.")
    warnings = (hidden,) if source.left_out.strip() else ()
    return _Parsed(*assemble([html]), source, warnings, encoding)


def _email(data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]) -> _Parsed:
    from retrieval.parse.email_reader import read_email

    text, warnings, source = read_email(data, name)
    return _Parsed(*assemble([text]), source, warnings)


def _markdown(data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]) -> _Parsed:
    from retrieval.parse.markdown_reader import read_markdown

    markdown, encoding, source = read_markdown(data, name)
    return _Parsed(*assemble([markdown]), source, encoding=encoding)


def _text(data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]) -> _Parsed:
    from retrieval.parse.text_reader import read_text

    text, pages, encoding, source = read_text(data, name)
    return _Parsed(text, pages, source, encoding=encoding)


_READERS: dict[Kind, Callable[[bytes, str, ParseLimits, Callable[[], None]], _Parsed]] = {
    "docx": _docx,
    "xlsx": _xlsx,
    "html": _html,
    "email": _email,
    "markdown": _markdown,
    "text": _text,
}


def _missing(receipt: Receipt) -> tuple[DocumentWarning, ...]:
    count = receipt.figures.missing_count
    if not count:
        return ()
    shown = ", ".join(receipt.figures.missing[:_LISTED])
    more = f" and {count - _LISTED} more" if count > _LISTED else ""
    return (
        DocumentWarning(
            "figures_missing",
            f"{count} figure(s) of the file are not in the text that was read: {shown}{more}. "
            "Check them in the original.",
        ),
    )


def _checker(
    name: str, limits: ParseLimits, cancelled: Callable[[], bool] | None
) -> Callable[[], None]:
    deadline = time.monotonic() + limits.timeout_seconds

    def check() -> None:
        if cancelled is not None and cancelled():
            raise ParseCancelled(f"Reading “{name}” was cancelled.")
        if time.monotonic() > deadline:
            raise ParseTimeout(
                f"“{name}” took longer than {limits.timeout_seconds:.0f} s to read. Split it or "
                "raise the limit."
            )

    return check
