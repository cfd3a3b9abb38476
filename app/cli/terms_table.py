"""Key terms as a table for people: value, words of the contract, clause, page."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.reporting import note
from app.key_terms import DocumentTerms
from app.terms.types import KeyTerm, TermValue

_SHOWN = 240
"""Characters of a passage that a cell shows."""
_VALUES = 8
"""Values of a term that the table shows; the others are counted."""


def show(result: DocumentTerms) -> None:
    """Prints the table on stdout, warnings on stderr."""
    console = Console(highlight=False, emoji=False, markup=False)
    console.print(f"{result.name}: {result.pages} pages, {result.characters:,} characters")
    for warning in result.warnings:
        note(warning.message)
    table = Table(show_lines=True, expand=True)
    table.add_column("term")
    table.add_column("value", ratio=1)
    table.add_column("words of the document", ratio=2)
    table.add_column("clause")
    table.add_column("page", no_wrap=True)
    for term in result.terms:
        for row in _rows(term):
            table.add_row(*map(Text, row))
    console.print(table)


def _rows(term: KeyTerm) -> Iterator[tuple[str, str, str, str, str]]:
    name = term.name.replace("_", " ")
    if term.conflicting:
        name = f"{name} (conflicting)"
    if term.state == "not_stated":
        yield name, "not stated", f"({term.reason})", "", ""
        return
    for value in term.values[:_VALUES]:
        place = value.words if value.names else value.passage
        page = value.words.page_label or str(value.words.page or "")
        yield name, _value(value), _short(place.text), value.words.clause or "", page
        name = ""
    left = len(term.values) - _VALUES
    if left > 0:
        yield "", f"and {left} more", "all of them with --json", "", ""


def _value(value: TermValue) -> str:
    said = "left blank" if value.blank else value.value or "as worded"
    names = ", ".join(_short(name.text) for name in value.names)
    return f"{said} [{names}]" if names else said


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
