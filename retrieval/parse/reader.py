"""Turns one file into a Document: the type is told from its content, then the reader for it runs.

Knows no database, no storage and no ingestion stages.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from retrieval.errors import EmptyFile, ParseCancelled, ParseTimeout, TooLarge
from retrieval.language import detect
from retrieval.parse.cleaning import require_words
from retrieval.parse.limits import MIB, ParseLimits
from retrieval.parse.names import display_name
from retrieval.parse.pages import assemble
from retrieval.parse.sniff import MEDIA_TYPES, sniff
from retrieval.types import Document, DocumentPage, DocumentWarning


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
    warnings: tuple[DocumentWarning, ...] = ()
    encoding: str | None = None
    pages: tuple[DocumentPage, ...]
    # Each reader is imported when its format comes up: the PDF worker process needs none of them.
    if kind == "pdf":
        from retrieval.parse.pdf_reader import read_pdf

        found = read_pdf(path, shown, limits, on_progress, cancelled)
        return Document(
            text=found.text,
            pages=found.pages,
            name=shown,
            media_type=MEDIA_TYPES[kind],
            language=detect(found.text),
            warnings=found.warnings,
            char_boxes=found.char_boxes,
        )
    check = _checker(shown, limits, cancelled)
    check()
    if kind == "docx":
        from retrieval.parse.docx_reader import read_docx

        text, pages, warnings = read_docx(data, shown, limits, check)
    elif size > limits.max_inflated_bytes:
        raise TooLarge(
            f"“{shown}” has {size / MIB:.0f} MiB of text; at most "
            f"{limits.max_inflated_bytes // MIB} MiB are read. Split it."
        )
    elif kind == "html":
        from retrieval.parse.html_reader import read_html

        html, encoding = read_html(data, shown)
        text, pages = assemble([html])
    elif kind == "markdown":
        from retrieval.parse.markdown_reader import read_markdown

        markdown, encoding = read_markdown(data, shown)
        text, pages = assemble([markdown])
    else:
        from retrieval.parse.text_reader import read_text

        text, pages, encoding = read_text(data, shown)
    check()
    require_words(text, shown)
    if on_progress is not None:
        on_progress(len(pages), len(pages))
    return Document(
        text=text,
        pages=pages,
        name=shown,
        media_type=MEDIA_TYPES[kind],
        language=detect(text),
        warnings=warnings,
        encoding=encoding,
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
