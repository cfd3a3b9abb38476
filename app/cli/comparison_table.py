"""A comparison as tables for people: figures, dates, parties and notice periods first, then the
rest, then what means the same, then the totals."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.cli.reporting import note
from app.comparisons import VersionComparison
from retrieval.compare.types import Change, Edit, Place, Totals

FIRST = ("figure", "date", "notice_period", "party")
_SHOWN = 240
"""Characters of a passage that a cell shows."""


def show(result: VersionComparison) -> None:
    """Prints the comparison on stdout, warnings on stderr."""
    console = Console(highlight=False, emoji=False, markup=False)
    console.print(f"{result.old.name}  →  {result.new.name}")
    for warning in result.warnings:
        note(warning.message)
    first = [change for change in result.changes if change.category in FIRST]
    rest = [change for change in result.changes if change.category not in FIRST]
    _print(console, "Figures, dates, parties and notice periods", first)
    _print(console, "Other changes", rest)
    if result.restated:
        table = _table("Written another way, same value")
        for edit in result.restated:
            table.add_row(*_edit_row(edit, "restated"))
        console.print(table)
    if not result.changes:
        console.print("No changes." if result.identical else "No changes of meaning.")
    console.print(_sentence(result.totals))


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left", show_lines=True, expand=True)
    for name in ("what", "clause", "page"):
        table.add_column(name, no_wrap=name == "page")
    table.add_column("old", ratio=1)
    table.add_column("new", ratio=1)
    return table


def _print(console: Console, title: str, changes: list[Change]) -> None:
    if not changes:
        return
    table = _table(title)
    for change in changes:
        for row in _rows(change):
            table.add_row(*row)
    console.print(table)


def _rows(change: Change) -> Iterator[tuple[Text, ...]]:
    if change.kind != "changed":
        yield _row(change.kind, change.old, change.new)
    for edit in change.edits:
        yield _edit_row(edit, edit.category.replace("_", " "))
    if change.follows:
        numbers = [one for one in change.follows if one.kind == "renumbered"]
        others = len(change.follows) - len(numbers)
        parts = [f"{one.old.text.strip()} → {one.new.text.strip()}" for one in numbers]
        said = ", ".join(parts) + (f"; {others} references" if others else "")
        cells = ("follows", "", "", _short(said.lstrip("; ")), "")
        yield tuple(map(Text, cells))


def _edit_row(edit: Edit, what: str) -> tuple[Text, ...]:
    if edit.others:
        what = f"{what}, {edit.others + 1} places"
    return _row(what, edit.old, edit.new)


def _row(what: str, old: Place | None, new: Place | None) -> tuple[Text, ...]:
    cells = (
        what,
        _pair(*((place.clause or "") if place else None for place in (old, new))),
        _pair(*(str(place.page or "") if place else None for place in (old, new))),
        _short(old.text) if old else "",
        _short(new.text) if new else "",
    )
    return tuple(map(Text, cells))


def _pair(old: str | None, new: str | None) -> str:
    if old is None or new is None or old == new:
        return (new if old is None else old) or ""
    return f"{old or '–'} → {new or '–'}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _sentence(totals: Totals) -> str:
    counts = (
        f"{totals.old_clauses} clauses: {totals.same} same, {totals.changed} changed, "
        f"{totals.moved} moved, {totals.renumbered} renumbered, {totals.deleted} deleted; "
        f"{totals.added} added."
    )
    words = (
        f"All words compared: {totals.old_words:,} old, {totals.new_words:,} new, "
        f"{totals.equal_words:,} equal. Left out: {totals.formatting} differences of form, "
        f"{totals.furniture} page numbers, headers and footers."
    )
    return f"{counts}\n{words}"
