"""Checks trials as the product checks an answer, and counts what is marked.

A quote is checked as a quote line (`check_quotes`) and again as words in quotation marks of a
phrased sentence; it counts as marked when both say so if it is a lie, and when either does if it
is true. Sentences go through `check_text`, as `app.phrasing` calls it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.answer.checks import check_quote, check_text
from app.types import Check, Citation
from eval.corruption.types import KINDS, Trial


@dataclass(frozen=True, slots=True)
class Outcome:
    """One trial and whether it was marked; `checks` are those that failed."""

    trial: Trial
    marked: bool
    checks: tuple[Check, ...]

    @property
    def right(self) -> bool:
        return self.marked == self.trial.altered


def check(trial: Trial) -> Outcome:
    """The trial checked."""
    if trial.form != "quote":
        failed = _failed(check_text(trial.answer, trial.spans))
        return Outcome(trial, bool(failed), failed)
    # Inside a quote the marks of another one are single ones.
    inner = trial.answer.translate({ord("“"): "‘", ord("”"): "’", ord('"'): "'"})
    phrased = _failed(check_text(f"“{inner}”", trial.spans))
    # A quote line shows a whole span; with words left out it is only ever phrased.
    if "…" in trial.answer or "..." in trial.answer:
        return Outcome(trial, bool(phrased), phrased)
    line = _failed([_quote_line(trial)])
    marked = bool(line and phrased) if trial.altered else bool(line or phrased)
    return Outcome(trial, marked, (*line, *phrased))


def _quote_line(trial: Trial) -> Check:
    source = trial.spans[0]
    citation = Citation(
        trial.answer, "document", "document", None, None, 0, len(source), None, (), True
    )
    return check_quote(f"“{trial.answer}” [1]", citation, source)


def _failed(checks: Sequence[Check]) -> tuple[Check, ...]:
    return tuple(check for check in checks if not check.ok)


def table(outcomes: Iterable[Outcome]) -> dict[str, dict[str, dict[str, int]]]:
    """Counts by language and kind: `made` and `marked`."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for outcome in outcomes:
        kinds = counts.setdefault(outcome.trial.language, {})
        entry = kinds.setdefault(outcome.trial.kind, {"made": 0, "marked": 0})
        entry["made"] += 1
        entry["marked"] += outcome.marked
    return {
        language: {kind: counts[language][kind] for kind in KINDS if kind in counts[language]}
        for language in sorted(counts)
    }


def total(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """(made, marked)."""
    return len(outcomes), sum(outcome.marked for outcome in outcomes)
