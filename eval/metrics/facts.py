"""Figures, dates and clause numbers that stand in a text, read by the product's own readers.

Values are compared with their units in normal form: 万分之五 is 0.05 %, 第十二条 is Article 12.
What these readers miss is seen by `plain`, which shares no code with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from app.answer.clause_numbers import ClauseNumber, find_clause_numbers
from app.answer.dates import Date
from app.answer.figures import Figure
from app.answer.items import find_items
from retrieval.clauses import label, outline

Kind = Literal["number", "date", "clause"]
_PIECE = 4000


@dataclass(frozen=True, slots=True)
class Facts:
    """What stands in one text, each kind in order of its place."""

    figures: tuple[Figure, ...] = ()
    dates: tuple[Date, ...] = ()
    clauses: tuple[ClauseNumber, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.figures or self.dates or self.clauses)


def facts(text: str) -> Facts:
    """Every figure, date and clause number of `text`."""
    items = find_items(text)
    return Facts(items.figures, items.dates, items.clauses)


@lru_cache(maxsize=1)
def document_facts(text: str) -> Facts:
    """As `facts`, for a whole document: read in pieces of some thousand characters that end with a
    line, because the readers compare every find with every other. Places are those in the piece."""
    found = [facts(piece) for piece in _pieces(text)]
    return Facts(
        tuple({figure.key: figure for one in found for figure in one.figures}.values()),
        tuple({date.key: date for one in found for date in one.dates}.values()),
        tuple({clause.key: clause for one in found for clause in one.clauses}.values()),
    )


@lru_cache(maxsize=1)
def clause_labels(text: str) -> tuple[tuple[int, int, frozenset[str]], ...]:
    """(start, end, keys) of each clause of a document's outline."""
    clauses = outline(text)
    return tuple(
        (clause.start, clause.end, _keys(label(clauses, clause.index), clause.number))
        for clause in clauses
    )


def labels_at(text: str, start: int, end: int) -> frozenset[str]:
    """Keys of the clauses that `text[start:end]` lies in or touches."""
    found = [keys for a, b, keys in clause_labels(text) if a < end and start < b]
    return frozenset().union(*found)


def figure_stands(mine: Figure, others: Sequence[Figure], years: Sequence[Date] = ()) -> bool:
    """Whether one of `others` has this value, and this unit where `mine` has one. 5 is not 5%.
    A bare year may come from a date."""
    if any(_same(mine, other) for other in others):
        return True
    return not mine.unit and mine.value is not None and any(mine.value == d.year for d in years)


def share(kind: Kind, gold: Facts, prediction: Facts) -> float | None:
    """Share of the distinct figures, dates or clause numbers of `gold` that stand in `prediction`;
    None when gold has none."""
    right: dict[str, bool] = {}
    if kind == "number":
        for figure in gold.figures:
            # Either side may leave the unit out: "30" answers "how many days".
            right[figure.key] = figure_stands(figure, prediction.figures, prediction.dates) or any(
                _same(other, figure) for other in prediction.figures
            )
    elif kind == "date":
        for date in gold.dates:
            right[date.key] = any(date.within(other) for other in prediction.dates)
    else:
        keys = {clause.key for clause in prediction.clauses}
        right = {clause.key: clause.key in keys for clause in gold.clauses}
    return sum(right.values()) / len(right) if right else None


def _same(mine: Figure, theirs: Figure) -> bool:
    if mine.value is None or theirs.value is None:
        return mine.text == theirs.text
    if mine.value != theirs.value:
        return False
    return mine.unit == theirs.unit or (not mine.unit and theirs.unit != "%")


def _keys(*labels: str) -> frozenset[str]:
    return frozenset(
        number.key for name in labels for number in find_clause_numbers(name, bare=True)
    )


def _pieces(text: str) -> Iterator[str]:
    """Pieces that end with a line, or a word where lines are very long. The last line of a piece is
    the first of the next, so that nothing is lost that is broken over two lines."""
    start = 0
    while len(text) - start > 2 * _PIECE:
        end = text.find("\n", start + _PIECE, start + 2 * _PIECE) + 1
        end = end or text.rfind(" ", start + 1, start + 2 * _PIECE) + 1 or start + 2 * _PIECE
        yield text[start:end]
        line = text.rfind("\n", start + _PIECE // 2, end - 1) + 1
        start = line or end
    yield text[start:]
