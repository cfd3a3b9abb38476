"""Which mode is the default, by a rule that is stated before the figures and printed with them.

The rule compares the product's own modes on the same questions; a peer's server and controls (gold
or random evidence, none at all) can't be a default. Failed and unfit samples count as wrong, since
a default must take every document. Knows no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eval.reports.entries import Entry, first_question_time, total_time
from eval.reports.measures import BY_KEY, Measure, milliseconds
from eval.reports.samples import (
    SampleId,
    mean,
    paired_difference,
    recorded_by_all,
    value_of,
)
from eval.reports.types import Step, Verdict
from eval.statistics import FEWEST_GROUPS, Estimate

RULE = (
    "Candidates are the runs of the product's own modes with real retrieval that drew the "
    "baseline's questions; a peer's server and controls (gold, random or no evidence) are left "
    "out. Values are over the questions that all candidates have a record of; failed and unfit "
    "ones count as wrong.",
    "No unmarked wrong figures: a run that showed one is out. When none is free of them, those "
    "stay that are not clearly worse than the lowest, and the sentence says so.",
    "Citation hit, then refusals where nothing is stated, then answer NLL: at each step those stay "
    "that are not clearly worse than the best mean. Clearly worse: the 95% interval of the "
    "difference, question by question, excludes 0. At a step that some candidates have a value "
    "for, one without a value is out. NLL is taken over the questions that all with an NLL have "
    "one for.",
    "Time to first token: those stay whose median lies within the 95% interval of the lowest "
    "median. It is the time of a question whose pages had to be read first, where a run has such "
    "questions.",
    "Total time of the answer, lowest median.",
)
_QUALITY_STEPS = ("citation_hit", "refusal_accuracy", "answer_nll")


@dataclass(frozen=True, slots=True)
class _Candidate:
    entry: Entry
    value: Estimate | None


@dataclass(frozen=True, slots=True)
class _Round:
    """One step of the rule as it went: each candidate's value, and who was kept."""

    title: str
    text: Callable[[float | None], str]
    found: tuple[_Candidate, ...]
    kept: tuple[Entry, ...]

    def value(self, entry: Entry) -> str:
        """A candidate's value as it is printed."""
        value = self.mean(entry)
        return "no value" if value is None else self.text(value)

    def mean(self, entry: Entry) -> float | None:
        """The same as a number."""
        value = next((c.value for c in self.found if c.entry is entry), None)
        return value.mean if value else None

    def step(self) -> Step:
        """For the report."""
        lines = tuple(self._line(candidate) for candidate in self.found)
        return Step(self.title, lines, tuple(entry.label for entry in self.kept))

    def _line(self, candidate: _Candidate) -> str:
        value = candidate.value
        if value is None:
            return f"{candidate.entry.label}: no value"
        low, high = self.text(value.low), self.text(value.high)
        interval = f" ({low} to {high})" if value.low is not None else ""
        return f"{candidate.entry.label}: {self.text(value.mean)}{interval}, n = {value.n}"


def decide(entries: Sequence[Entry], baseline: Entry) -> Verdict | None:
    """The verdict over runs that drew the baseline's questions; None with fewer than two
    candidates: there is nothing to choose between."""
    candidates = [entry for entry in entries if entry.eligible and entry.drawn == baseline.drawn]
    if len(candidates) < 2:
        return None
    over = recorded_by_all([entry.samples for entry in candidates])
    if not over:
        sentence = "No default can be named: the candidates have no question in common."
        return Verdict(sentence, "", "", RULE, ())
    rounds = [_wrong_figures(candidates, over)]
    for key in _QUALITY_STEPS:
        if len(rounds[-1].kept) > 1:
            rounds.append(_quality(BY_KEY[key], rounds[-1].kept, over))
    for title, times, tied in _TIME_STEPS:
        if len(rounds[-1].kept) > 1:
            rounds.append(_time(title, times, rounds[-1].kept, over, tied=tied))
    winner = rounds[-1].kept[0]
    sentence = _sentence(winner, rounds, len(candidates), len(over))
    documents = len({document for document, _ in over})
    if documents < FEWEST_GROUPS:
        sentence += (
            f" Only {documents} documents: without intervals, the best figure alone decides."
        )
    return Verdict(sentence, winner.mode, winner.label, RULE, tuple(one.step() for one in rounds))


def _wrong_figures(candidates: Sequence[Entry], over: Sequence[SampleId]) -> _Round:
    measure = BY_KEY["unmarked_wrong_figures"]
    found = _means(measure, candidates, over)
    free = tuple(c.entry for c in found if c.value is not None and c.value.mean == 0)
    return _Round(measure.title, measure.text, found, free or _not_worse(measure, found, over))


def _quality(measure: Measure, left: Sequence[Entry], over: Sequence[SampleId]) -> _Round:
    if measure.key == "answer_nll":
        able = [e for e in left if mean(e.samples, measure, over) is not None]
        over = [
            sample
            for sample in over
            if all(value_of(entry.samples[sample], measure) is not None for entry in able)
        ]
    found = _means(measure, left, over)
    return _Round(measure.title, measure.text, found, _not_worse(measure, found, over))


def _means(
    measure: Measure, entries: Sequence[Entry], over: Sequence[SampleId]
) -> tuple[_Candidate, ...]:
    return tuple(_Candidate(entry, mean(entry.samples, measure, over)) for entry in entries)


def _not_worse(
    measure: Measure, found: Sequence[_Candidate], over: Sequence[SampleId]
) -> tuple[Entry, ...]:
    """Those that are not clearly worse than the best, by paired differences; all when none has a
    value. Without an interval (few documents), only equals stay with the best."""
    valued = [(c.entry, c.value.mean) for c in found if c.value is not None]
    if not valued:
        return tuple(c.entry for c in found)
    top = measure.best([value for _, value in valued])
    best = next(entry for entry, value in valued if value == top)
    return tuple(entry for entry, _ in valued if _holds(measure, entry, best, over))


def _holds(measure: Measure, entry: Entry, best: Entry, over: Sequence[SampleId]) -> bool:
    difference = paired_difference(entry.samples, best.samples, measure, over)
    if difference is None:
        return False
    edge = difference.high if measure.better == "higher" else difference.low
    return not measure.worse(difference.mean if edge is None else edge, 0.0)


def _time(
    title: str,
    times: Callable[[Entry, Sequence[SampleId]], Estimate | None],
    left: Sequence[Entry],
    over: Sequence[SampleId],
    *,
    tied: bool,
) -> _Round:
    """`tied`: those within the best's interval stay with it; else only the quickest."""
    found = tuple(_Candidate(entry, times(entry, over)) for entry in left)
    values = [c.value for c in found if c.value is not None]
    kept = tuple(left)
    if values:
        best = min(values, key=lambda value: value.mean)
        limit = best.high if tied and best.high is not None else best.mean
        kept = tuple(c.entry for c in found if c.value is not None and c.value.mean <= limit)
    return _Round(title, milliseconds, found, kept)


_TIME_STEPS = (
    ("median time to first token", first_question_time, True),
    ("median time of the whole answer", total_time, False),
)


def _sentence(winner: Entry, rounds: Sequence[_Round], candidates: int, questions: int) -> str:
    last = rounds[-1]
    shown = ", ".join(
        f"{one.title} {one.value(winner)}" for one in rounds if one.mean(winner) is not None
    )
    out = [c.entry for c in last.found if c.entry not in last.kept]
    parts = [
        f"{winner.mode} is the default: of {candidates} candidates on {questions} questions the "
        f"rule leaves {winner.label} ({shown})."
    ]
    if out:
        others = ", ".join(f"{entry.label} {last.value(entry)}" for entry in out)
        parts.append(f"It was decided by {last.title}, against {others}.")
    if tied := [entry.label for entry in last.kept[1:]]:
        parts.append(f"The rule can't tell it from {', '.join(tied)}; it comes first in the order.")
    if rounds[0].mean(winner):
        parts.append("No candidate is free of unmarked wrong figures, so no default is safe yet.")
    partial = [c.entry.label for c in rounds[0].found if c.entry.partial]
    if partial:
        parts.append(f"Not finished: {', '.join(partial)}.")
    return " ".join(parts)
