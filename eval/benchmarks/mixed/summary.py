"""From records to figures: percentiles in each round, their medians over the rounds.

Short and long requests are never in one figure, nor are cells. A P99 is only given over all rounds
together, and only from 100 samples on (`eval.statistics`). Failed requests have no time; they are
counted beside those that have.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Sequence

from eval.benchmarks.mixed.types import CellRecord, Kind, RequestRecord
from eval.statistics import percentiles

METRICS = (
    "ttft_any_ms",
    "ttft_any_from_question_ms",
    "ttft_grounded_ms",
    "ttft_warm_ms",
    "read_ms",
    "total_ms",
)
KINDS: tuple[Kind, ...] = ("short", "long")
Fields = dict[str, object]


def summarise(rounds: Sequence[Sequence[CellRecord]]) -> Fields:
    """By cell: what it was by measurement, then by kind of request the figures of each metric."""
    cells: dict[str, list[CellRecord]] = {}
    for cell in (cell for done in rounds for cell in done):
        cells.setdefault(cell.cell, []).append(cell)
    return {name: _cell(same) for name, same in cells.items()}


def cell_fields(cell: CellRecord) -> Fields:
    """One cell of one round with every request, ready for JSON."""
    lag = percentiles(cell.loop_lag_ms)
    fields = {
        name: getattr(cell, name)
        for name in ("cell", "claim", "label", "wall_ms", "peak_in_flight")
    }
    return {
        **fields,
        "hit_rate": cell.reuse.rate,
        "reuse": dataclasses.asdict(cell.reuse),
        "client_lag_ms": {
            "p50": lag.p50,
            "p95": lag.p95,
            "max": max(cell.loop_lag_ms, default=None),
        },
        "counters": dict(cell.counters),
        "requests": [record_fields(record) for record in cell.records],
    }


def record_fields(record: RequestRecord) -> Fields:
    """One request, ready for JSON."""
    fields = {item.name: getattr(record, item.name) for item in dataclasses.fields(record)}
    return {
        **fields,
        "timeline": {name: round(value, 3) for name, value in record.timeline.items()},
        "answers": [dataclasses.asdict(answer) for answer in record.answers],
        "fault": None if record.fault is None else dataclasses.asdict(record.fault),
        **{name: getattr(record, name) for name in METRICS},
    }


def _cell(rounds: Sequence[CellRecord]) -> Fields:
    labels = Counter(cell.label for cell in rounds)
    rates = [cell.reuse.rate for cell in rounds if cell.reuse.rate is not None]
    answers = [a for cell in rounds for record in cell.records for a in record.answers]
    return {
        "label": next(iter(labels)) if len(labels) == 1 else "/".join(sorted(labels)),
        "hit_rate": statistics.median(rates) if rates else None,
        "rounds": len(rounds),
        "wall_ms": statistics.median(cell.wall_ms for cell in rounds),
        "document_tokens_per_s": statistics.median(
            1000 * sum(record.document_tokens or 0 for record in cell.records) / cell.wall_ms
            for cell in rounds
        ),
        "requests": sum(len(cell.records) for cell in rounds),
        "failed": sum(record.fault is not None for cell in rounds for record in cell.records),
        "faults": Counter(
            f"{record.fault.stage}: {record.fault.code}"
            for cell in rounds
            for record in cell.records
            if record.fault is not None
        ),
        "answers": {
            "asked": len(answers),
            "right": sum(answer.right for answer in answers),
            "retries": sum(answer.retries for answer in answers),
            "status": Counter(answer.status for answer in answers if answer.status),
            "first_kind": Counter(answer.first_kind for answer in answers),
        },
        "kinds": {kind: _kind(rounds, kind) for kind in KINDS},
    }


def _kind(rounds: Sequence[CellRecord], kind: Kind) -> Fields:
    by_round = [[record for record in cell.records if record.kind == kind] for cell in rounds]
    everything = [record for records in by_round for record in records]
    return {
        "requests": len(everything),
        "failed": sum(record.fault is not None for record in everything),
        "metrics": {name: _metric(by_round, name) for name in METRICS},
    }


def _metric(by_round: Sequence[Sequence[RequestRecord]], name: str) -> Fields:
    samples = [
        [value for record in records if (value := _value(record, name)) is not None]
        for records in by_round
    ]
    each = [percentiles(values) for values in samples if values]
    together = percentiles([value for values in samples for value in values])
    return {
        "n": together.n,
        "p50": statistics.median(p.p50 for p in each if p.p50 is not None) if each else None,
        "p95": statistics.median(p.p95 for p in each if p.p95 is not None) if each else None,
        "p99_all_rounds": together.p99,
        "rounds": [{"n": p.n, "p50": p.p50, "p95": p.p95} for p in each],
    }


def _value(record: RequestRecord, name: str) -> float | None:
    """A metric of a request that ended well; what a failed one reached is only in its timeline."""
    value: float | None = getattr(record, name)
    return None if record.fault is not None else value
