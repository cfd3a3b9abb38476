"""Everything in a text that can be looked up: dates, clause numbers, names, figures.

Dates are read first, then clause numbers, names and figures, because the later ones are parts of
the earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from app.answer.clause_numbers import ClauseNumber, find_clause_numbers
from app.answer.dates import Date, find_dates
from app.answer.figures import Figure, find_figures
from app.answer.names import Name, find_names

ItemKind = Literal["number", "date", "clause", "name"]


@dataclass(frozen=True, slots=True)
class Items:
    """What stands in one text, each kind in order of its place."""

    dates: tuple[Date, ...]
    clauses: tuple[ClauseNumber, ...]
    names: tuple[Name, ...]
    figures: tuple[Figure, ...]

    def keyed(self) -> list[tuple[int, int, ItemKind, str]]:
        """(start, end, kind, key) of dates, clause numbers and figures, in order."""
        found: list[tuple[int, int, ItemKind, str]] = []
        found += [(date.start, date.end, "date", date.key) for date in self.dates]
        found += [(clause.start, clause.end, "clause", clause.key) for clause in self.clauses]
        found += [(figure.start, figure.end, "number", figure.key) for figure in self.figures]
        return sorted(found)


def find_items(text: str) -> Items:
    """Every item of `text`."""
    dates = find_dates(text)
    taken = [(date.start, date.end) for date in dates]
    clauses = tuple(
        clause
        for clause in find_clause_numbers(text)
        if not any(clause.start < end and start < clause.end for start, end in taken)
    )
    taken += [(clause.start, clause.end) for clause in clauses]
    names = tuple(
        name
        for name in find_names(text)
        if not any(name.start < end and start < name.end for start, end in taken)
    )
    # Identifiers hold digits that are no figures; other names hold none.
    taken += [(name.start, name.end) for name in names if any(c.isdigit() for c in name.text)]
    figures = find_figures(text, taken)
    # A currency code is a part of its figure, not a name.
    inside = [(figure.start, figure.end) for figure in figures]
    names = tuple(
        name
        for name in names
        if not any(start <= name.start and name.end <= end for start, end in inside)
    )
    return Items(dates, clauses, names, figures)
