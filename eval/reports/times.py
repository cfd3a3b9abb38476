"""Rows of times: to the first token and of the whole answer, one for each state of the cache."""

from __future__ import annotations

from collections.abc import Sequence

from eval.reports.entries import STATE_NAMES, STATES, Entry, State, first_token_times, median_time
from eval.reports.measures import NO_INTERVAL, milliseconds
from eval.reports.samples import SampleId
from eval.reports.types import EMPTY, Cell, Row
from eval.statistics import P99_SAMPLES, percentiles


def time_rows(entries: Sequence[Entry], over: Sequence[SampleId] | None = None) -> list[Row]:
    """Times to the first token, one row a state, and tokens read; states nobody was in are left
    out."""
    rows = []
    for state in STATES:
        times = [first_token_times(entry, state, over) for entry in entries]
        if any(times):
            cells = tuple(_time_cell([ms for _, ms in found], found) for found in times)
            rows.append(Row(f"TTFT, {STATE_NAMES[state]}: median ↓", cells))
    for state in STATES:
        totals = [_totals(entry, state, over) for entry in entries]
        if any(totals):
            cells = tuple(_time_cell([ms for _, ms in found], found) for found in totals)
            rows.append(Row(f"whole answer, {STATE_NAMES[state]}: median ↓", cells))
    return rows


def _totals(
    entry: Entry, state: State, over: Sequence[SampleId] | None
) -> list[tuple[SampleId, float]]:
    found = []
    for sample, _ in first_token_times(entry, state, over):
        reply = entry.samples[sample].reply
        if reply is not None:
            found.append((sample, reply.timings.total_ms))
    return found


def _time_cell(values: Sequence[float], times: Sequence[tuple[SampleId, float]]) -> Cell:
    middle = median_time(times)
    if middle is None:
        return EMPTY
    found = percentiles(values)
    interval = (
        f"{milliseconds(middle.low)} to {milliseconds(middle.high)}"
        if middle.low is not None
        else NO_INTERVAL
    )
    tail = f"P95 {milliseconds(found.p95)}"
    if found.n >= P99_SAMPLES:
        tail += f", P99 {milliseconds(found.p99)}"
    return Cell(milliseconds(middle.mean), interval, note=f"{tail}, n = {found.n}")
