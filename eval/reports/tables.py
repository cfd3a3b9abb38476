"""Runs side by side: what each one scored on its own questions, and on those that all answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from eval.reports.best import BEST_NOTE, MIN_DOCUMENTS, apart, paired_best
from eval.reports.entries import STATES, STATES_NOTE, Entry, state_of
from eval.reports.measures import (
    QUALITY,
    Measure,
    difference_interval_text,
    interval_text,
)
from eval.reports.samples import SampleId, finished_by_all, mean, paired_difference, value_of
from eval.reports.times import time_rows
from eval.reports.types import EMPTY, Cell, Row, Table
from eval.statistics import Estimate

LANGUAGES = (("en", "English"), ("zh", "Chinese"))
_BY_LANGUAGE = (
    "f1", "number_accuracy", "citation_hit", "refusal_accuracy", "false_refusal", "answer_nll",
)  # fmt: skip
_INTERVALS = "↑ higher is better, ↓ lower is better. Intervals are 95%, from resampling documents."


def side_by_side(entries: Sequence[Entry]) -> Table:
    """Every run over all of its own questions."""
    rows = _count_rows(entries)
    everything = [tuple(entry.samples) for entry in entries]
    for measure in QUALITY:
        row = _quality_row(entries, measure, everything, measure.heading)
        if row is not None:
            rows.append(row)
    return Table(
        title="Side by side",
        corner="all questions of each run",
        columns=tuple(entry.label for entry in entries),
        rows=(*rows, *time_rows(entries)),
        intro="Means over all questions of each run; failed and unfit samples count as wrong.",
        warnings=_few_documents(entries),
        notes=(
            _INTERVALS,
            BEST_NOTE + "here, when no interval of another run touches its own.",
            STATES_NOTE,
        ),
    )


def _few_documents(entries: Sequence[Entry]) -> tuple[str, ...]:
    counts = {entry.label: len({sample[0] for sample in entry.samples}) for entry in entries}
    few = [f"{label} ({count})" for label, count in counts.items() if count < MIN_DOCUMENTS]
    if not few:
        return ()
    return (f"Too few documents to tell chance from difference: {', '.join(few)}.",)


def by_language(entries: Sequence[Entry]) -> Table | None:
    """The main figures for each language; None when the runs hold only one."""
    rows, seen = [], 0
    for code, name in LANGUAGES:
        over = [tuple(s for s, r in e.samples.items() if r.lang == code) for e in entries]
        seen += any(over)
        for measure in QUALITY:
            if measure.key in _BY_LANGUAGE:
                row = _quality_row(entries, measure, over, f"{name}: {measure.heading}")
                if row is not None:
                    rows.append(row)
    if seen < 2:
        return None
    columns = tuple(entry.label for entry in entries)
    notes = (_INTERVALS,)
    return Table("By language", "language of the document", columns, tuple(rows), notes=notes)


def common_subset(entries: Sequence[Entry], baseline: Entry) -> Table | None:
    """Only what every run answered, with paired differences to the baseline; runs that answered
    nothing are left out. None with fewer than two runs left."""
    finished = {e.place: sum(1 for r in e.records if r.status == "done") for e in entries}
    silent = [entry.label for entry in entries if not finished[entry.place]]
    entries = [entry for entry in entries if finished[entry.place]]
    if len(entries) < 2 or baseline not in entries:
        return None
    over = finished_by_all([entry.samples for entry in entries])
    sizes = ", ".join(f"{entry.letter} {finished[entry.place]}" for entry in entries)
    intro = (
        f"{len(over)} questions were answered by every run (each alone: {sizes}). Differences are "
        f"to {baseline.label}, question by question; those of shares in percentage points."
    )
    title, corner = "On common questions", "questions that every run answered"
    columns = tuple(entry.label for entry in entries)
    warnings = [f"Answered nothing, so left out: {', '.join(silent)}."] if silent else []
    if not over:
        warnings.append("No question was answered by every run: nothing can be compared fairly.")
        return Table(title, corner, columns, (), intro, tuple(warnings))
    rows = [Row("questions", tuple(Cell(str(len(over))) for _ in entries))]
    for measure in QUALITY:
        found = [mean(entry.samples, measure, over) for entry in entries]
        if all(value is None for value in found):
            continue
        best = paired_best(entries, measure, over)
        cells = tuple(
            _common_cell(entry, baseline, measure, value, over, entry is best)
            for entry, value in zip(entries, found, strict=True)
        )
        rows.append(Row(measure.heading, cells))
    return Table(
        title,
        corner,
        columns,
        (*rows, *time_rows(entries, over)),
        intro,
        tuple(warnings),
        notes=(
            "95% intervals of the paired differences, from resampling documents; one that holds 0 "
            "shows no difference.",
            BEST_NOTE + "here, by the paired differences.",
            "Two runs may meet the same question in different states of the cache; times compare "
            "the questions that each had in that state.",
        ),
    )


def change(
    entry: Entry, base: Entry, measure: Measure, over: Sequence[SampleId]
) -> tuple[str, str]:
    """The paired difference to `base`, and its interval; empty texts when nothing can be
    paired."""
    found = paired_difference(entry.samples, base.samples, measure, over)
    if found is None:
        return "", ""
    return measure.difference(found.mean), difference_interval_text(measure, found)


def _common_cell(
    entry: Entry,
    baseline: Entry,
    measure: Measure,
    value: Estimate | None,
    over: Sequence[SampleId],
    best: bool,
) -> Cell:
    if value is None:
        return EMPTY
    if entry is baseline:
        return Cell(measure.text(value.mean), interval_text(measure, value), best, "baseline")
    difference, interval = change(entry, baseline, measure, over)
    if not difference:
        return Cell(measure.text(value.mean), "", best, "nothing to pair")
    return Cell(f"{measure.text(value.mean)}", f"{difference} ({interval})", best)


def _quality_row(
    entries: Sequence[Entry], measure: Measure, over: Sequence[Sequence[SampleId]], label: str
) -> Row | None:
    found = [mean(e.samples, measure, ids) for e, ids in zip(entries, over, strict=True)]
    if all(value is None for value in found):
        return None
    best = apart(entries, measure, over)
    cells = tuple(
        _quality_cell(entry, measure, ids, value, entry is best)
        for entry, ids, value in zip(entries, over, found, strict=True)
    )
    counts = {value.n for value in found if value is not None}
    if len(counts) == 1:
        # Said once beside the label, it need not stand in every cell.
        common = f"n = {counts.pop()}"
        cells = tuple(replace(c, note="" if c.note == common else c.note) for c in cells)
        return Row(label, cells, common)
    return Row(label, cells)


def _quality_cell(
    entry: Entry,
    measure: Measure,
    ids: Sequence[SampleId],
    value: Estimate | None,
    best: bool,
) -> Cell:
    if value is None:
        return EMPTY
    note = f"n = {value.n}"
    if measure.key == "unmarked_wrong_figures":
        each = [v for s in ids if (v := value_of(entry.samples[s], measure)) is not None]
        note = f"{sum(each):.0f} in {sum(1 for v in each if v)} of {value.n} answers"
    return Cell(measure.text(value.mean), interval_text(measure, value), best, note)


def _count_rows(entries: Sequence[Entry]) -> list[Row]:
    counts = [Counter(record.status for record in entry.records) for entry in entries]
    states = [Counter(filter(None, map(state_of, entry.records))) for entry in entries]

    def row(label: str, value: Callable[[int], object], note: str = "") -> Row:
        return Row(label, tuple(Cell(str(value(place))) for place in range(len(entries))), note)

    return [
        row("questions", lambda place: entries[place].progress),
        row("documents", lambda place: len({sample[0] for sample in entries[place].samples})),
        row("failed", lambda place: counts[place]["failed"], "counted as wrong"),
        row("unfit", lambda place: counts[place]["unfit"], "the mode can't take the document"),
        row(
            "cold / warm / no pages",
            lambda place: " / ".join(str(states[place][state]) for state in STATES),
            "replies with a first token",
        ),
    ]
