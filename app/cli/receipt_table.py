"""An ingestion receipt as people read it: totals, figures, pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.reporting import note
from app.receipts import FileReceipt
from retrieval.receipt import PageReceipt

_SHOWN_PAGES = 40
"""Up to so many pages the table lists all; of longer documents, those that need a look."""


def show(result: FileReceipt) -> None:
    """Prints the receipt on stdout, warnings on stderr."""
    console = Console(highlight=False, emoji=False, markup=False)
    receipt, figures = result.receipt, result.receipt.figures
    console.print(
        f"{result.name}: {len(receipt.pages)} pages, {receipt.characters:,} characters, "
        f"{result.clauses:,} clauses, {result.chunks:,} chunks, {receipt.tables} tables"
    )
    console.print(
        f"figures: {figures.in_file:,} in the file, {figures.in_index:,} in the index, "
        f"{figures.left_out:,} left out on purpose, {figures.missing_count:,} missing"
    )
    if figures.missing:
        console.print(f"missing: {', '.join(figures.missing)}")
    for warning in result.warnings:
        note(f"warning: {warning.message}")
    pages = _worth_showing(receipt.pages)
    if not pages:
        console.print(f"all {len(receipt.pages)} pages read as text")
        return
    table = Table()
    for heading in ("page", "printed", "method", "characters", "garbled", "tables"):
        table.add_column(heading)
    for row in _rows(pages):
        table.add_row(*map(Text, row))
    console.print(table)
    if len(pages) < len(receipt.pages):
        console.print(f"{len(receipt.pages) - len(pages)} more pages, all read as text")


def _worth_showing(pages: Sequence[PageReceipt]) -> Sequence[PageReceipt]:
    if len(pages) <= _SHOWN_PAGES:
        return pages
    return [page for page in pages if page.method != "text" or page.garbled or not page.characters]


def _rows(pages: Sequence[PageReceipt]) -> Iterator[tuple[str, ...]]:
    for page in pages:
        yield (
            str(page.number),
            page.label or "",
            page.method,
            f"{page.characters:,}",
            f"{page.garbled:.1%}" if page.garbled else "",
            str(page.tables) if page.tables else "",
        )
