"""Figures, dates and references of a sentence in the form that a comparison of two versions needs.

Uses the readers that check answers, so that a figure is the same in both places.
"""

from __future__ import annotations

from app.answer.clause_numbers import find_clause_numbers
from app.answer.dates import find_dates
from app.answer.figures import find_figures
from retrieval.compare.types import Fact

_PERIODS = ("day", "week", "month", "hour", "business day", "trading day")


def read_facts(text: str) -> tuple[Fact, ...]:
    """The facts of `text` in order; a date in a reference is none, nor a figure in a date."""
    facts = [
        Fact(number.start, number.end, "reference", number.key)
        for number in find_clause_numbers(text)
    ]
    taken = [(fact.start, fact.end) for fact in facts]
    for date in find_dates(text, taken):
        facts.append(Fact(date.start, date.end, "date", date.key))
        taken.append((date.start, date.end))
    for figure in find_figures(text, taken):
        period = figure.unit in _PERIODS
        facts.append(Fact(figure.start, figure.end, "figure", figure.key, period))
    return tuple(sorted(facts, key=lambda fact: fact.start))
