"""`bench decode`: time per token by context length and batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eval.reports.benches.record import BenchRecord
from eval.reports.charts.curves import curves
from eval.reports.charts.points import Curve, Spot
from eval.reports.charts.scales import short_length
from eval.reports.measures import milliseconds
from eval.reports.types import EMPTY, Cell, Chart, Row, Table

SOURCES = {"prompt": "prompts", "evidence": "evidence pages"}
_DECODINGS = ("greedy", "sampled")


def decoding_parts(record: BenchRecord, number: int) -> Iterator[Table | Chart]:
    """One table and one chart for each kind of context."""
    for source, name in SOURCES.items():
        places = [
            place for place, cell in enumerate(record.results["cells"]) if cell["source"] == source
        ]
        if not places:
            continue
        kinds = sorted({_kind(record.results["cells"][place]) for place in places})
        found = [
            Curve(
                f"batch {batch}, {_DECODINGS[decoding]}",
                tuple(
                    _spot(record, place)
                    for place in places
                    if _kind(record.results["cells"][place]) == (batch, decoding)
                ),
            )
            for batch, decoding in kinds
        ]
        title = f"Decoding on {name}: {record.name}"
        yield _table(title, found)
        yield Chart(
            title,
            f"Time from one token to the next of every sequence. Medians of {len(record.rounds)} "
            "rounds.",
            curves(f"decode-{number}-{source}", found, "tokens of context", "time per token"),
        )


def _kind(cell: Mapping[str, Any]) -> tuple[int, int]:
    return int(cell["batch"]), _DECODINGS.index(cell["decoding"])


def _spot(record: BenchRecord, place: int) -> Spot:
    cell = record.results["cells"][place]
    rounds = [one["figures"][place]["ms_per_token"] for one in record.rounds]
    return Spot(cell["context"], float(cell["ms_per_token"]), min(rounds), max(rounds))


def _table(title: str, found: list[Curve]) -> Table:
    contexts = sorted({spot.at for curve in found for spot in curve.spots})
    rows = []
    for curve in found:
        by_context = {spot.at: spot for spot in curve.spots}
        cells = tuple(
            Cell(
                milliseconds(spot.middle),
                f"{milliseconds(spot.low)} to {milliseconds(spot.high)}",
            )
            if (spot := by_context.get(context))
            else EMPTY
            for context in contexts
        )
        rows.append(Row(curve.name, cells))
    columns = tuple(f"context {short_length(context)}" for context in contexts)
    notes = ("Time per token: median of the rounds, with the quickest and the slowest round.",)
    return Table(title, "sequences", columns, tuple(rows), notes=notes)
