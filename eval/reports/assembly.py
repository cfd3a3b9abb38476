"""The report on some runs and benchmark files: everything on it, in reading order."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from eval.reports import ablation, facts, failures, plots, tables, verdict
from eval.reports.benches.figures import bench_parts
from eval.reports.benches.record import BenchRecord
from eval.reports.charts.canvas import RUN_COLOURS
from eval.reports.entries import Entry
from eval.reports.types import Key, Report

TITLE = "Evaluation report"


def assemble(
    entries: Sequence[Entry],
    baseline: Entry | None,
    bench: Sequence[BenchRecord] = (),
    *,
    title: str = TITLE,
) -> Report:
    """Computes the whole report. `baseline` is one of the entries; without any, only benchmarks
    are shown. Raises RunError for a benchmark's record that can't be shown."""
    bench_tables, bench_charts = bench_parts(bench)
    compared = []
    if baseline is not None:
        parts = (
            tables.side_by_side(entries),
            tables.common_subset(entries, baseline),
            tables.by_language(entries),
            ablation.one_at_a_time(entries, baseline),
            *ablation.cumulative(entries, baseline),
        )
        compared = [table for table in parts if table is not None]
    made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Report(
        title=title,
        made=f"Made {made} from {_counted(len(entries), 'run')} and "
        f"{_counted(len(bench), 'benchmark record')}.",
        verdict=verdict.decide(entries, baseline) if baseline else None,
        runs=facts.runs_table(entries) if entries else None,
        tables=tuple(compared),
        keys=tuple(Key(e.letter, e.name, e.place % RUN_COLOURS) for e in entries),
        charts=plots.charts(entries) if entries else (),
        bench_tables=bench_tables,
        bench_charts=bench_charts,
        failures=failures.failure_groups(entries),
        worst=failures.worst_samples(entries),
    )


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
