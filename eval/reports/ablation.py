"""What single switches change: one at a time against the baseline, then one after the other.

Two runs are comparable here when they asked the same questions. Modes and models count as switches.
Failed and unfit samples count as wrong. Knows no layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eval.reports.entries import Entry
from eval.reports.measures import QUALITY, Measure, interval_text
from eval.reports.samples import SampleId, mean, recorded_by_all
from eval.reports.tables import change
from eval.reports.times import time_rows
from eval.reports.types import EMPTY, Cell, Row, Table

Change = tuple[str, str]
"""Name of a switch and the value it was given."""

_DERIVED = frozenset({"fingerprint"})
"""Settings that only follow from others."""


@dataclass(frozen=True, slots=True)
class Step:
    """A run and the one switch that tells it from the run before it; the first has none."""

    entry: Entry
    change: Change | None


def changes(entry: Entry, baseline: Entry) -> frozenset[Change]:
    """What tells a run from the baseline: its mode, switches (where one run has none, it is at the
    mode's default), and settings that both have. With the run's own values."""
    found = {("mode", entry.mode)} if entry.mode != baseline.mode else set()
    mine, base = entry.switches, baseline.switches
    for name in {*mine, *base}:
        if mine.get(name) != base.get(name):
            found.add((name, mine.get(name, "default")))
    named = {name for name, _ in found}
    for name in {*entry.settings} & {*baseline.settings} - named - _DERIVED:
        if entry.settings[name] != baseline.settings[name]:
            found.add((name, str(entry.settings[name])))
    return frozenset(found)


def one_at_a_time(entries: Sequence[Entry], baseline: Entry) -> Table | None:
    """The baseline and every run that differs from it in one switch; None when there is none."""
    steps = [Step(baseline, None)]
    for entry in _comparable(entries, baseline):
        differing = changes(entry, baseline)
        if len(differing) == 1:
            steps.append(Step(entry, next(iter(differing))))
    if len(steps) < 2:
        return None
    return _table(
        "Ablation: one switch at a time",
        steps,
        [baseline] * len(steps),
        f"Each column is {baseline.label} with one switch changed; differences are to it.",
    )


def cumulative(entries: Sequence[Entry], baseline: Entry) -> list[Table]:
    """One table for each chain of two changes or more, the longest first."""
    tables = []
    for chain in chains(entries, baseline):
        before = [baseline, *(step.entry for step in chain[:-1])]
        last = chain[-1].entry
        tables.append(
            _table(
                f"Ablation: cumulative to {last.label}",
                chain,
                before,
                "Each column has the switches of the column before it and one more; differences "
                "are to the column before.",
            )
        )
    return tables


def chains(entries: Sequence[Entry], baseline: Entry) -> list[list[Step]]:
    """Sequences of runs from the baseline on in which each adds one switch to those of the run
    before, as long as they go; chains within longer ones are left out."""
    known = {baseline.place: frozenset[Change]()}
    runs = {baseline.place: baseline}
    for entry in _comparable(entries, baseline):
        differing = changes(entry, baseline)
        if differing and differing not in known.values():
            known[entry.place], runs[entry.place] = differing, entry
    best: dict[int, list[Step]] = {baseline.place: [Step(baseline, None)]}
    for place in sorted(known, key=lambda place: (len(known[place]), place)):
        for before, steps in list(best.items()):
            added = known[place] - known[before]
            if len(added) == 1 and known[before] < known[place] and place not in best:
                best[place] = [*steps, Step(runs[place], next(iter(added)))]
    long = sorted((steps for steps in best.values() if len(steps) > 2), key=len, reverse=True)
    kept: list[list[Step]] = []
    for steps in long:
        if not any(known[steps[-1].entry.place] < known[other[-1].entry.place] for other in kept):
            kept.append(steps)
    return kept


def _comparable(entries: Sequence[Entry], baseline: Entry) -> list[Entry]:
    return [e for e in entries if e is not baseline and e.drawn == baseline.drawn]


def _table(title: str, steps: Sequence[Step], bases: Sequence[Entry], intro: str) -> Table:
    runs = [step.entry for step in steps]
    over = recorded_by_all([entry.samples for entry in runs])
    rows = [_row(measure, runs, bases, over) for measure in QUALITY]
    return Table(
        title,
        "change",
        tuple(_heading(step) for step in steps),
        (*(row for row in rows if row is not None), *time_rows(runs, over)),
        f"{intro} {len(over)} questions that all of them have a record of.",
        notes=(
            "95% intervals of the paired differences; one that holds 0 shows no difference. Times "
            "are medians of each run, with their own intervals.",
        ),
    )


def _heading(step: Step) -> str:
    if step.change is None:
        return f"{step.entry.label} (baseline)"
    name, value = step.change
    return f"+ {name} = {value} ({step.entry.letter})"


def _row(
    measure: Measure, runs: Sequence[Entry], bases: Sequence[Entry], over: Sequence[SampleId]
) -> Row | None:
    cells = []
    for run, base in zip(runs, bases, strict=True):
        value = mean(run.samples, measure, over)
        if value is None:
            cells.append(EMPTY)
        elif run is base:
            cells.append(Cell(measure.text(value.mean), interval_text(measure, value)))
        else:
            difference, interval = change(run, base, measure, over)
            cells.append(
                Cell(difference, interval, note=measure.text(value.mean))
                if difference
                else Cell(measure.text(value.mean), note="nothing to pair")
            )
    if all(cell is EMPTY for cell in cells):
        return None
    return Row(measure.heading, tuple(cells))
