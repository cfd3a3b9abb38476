"""`bench ttft`: the three first-token times by length, beside dense reading."""

from __future__ import annotations

from collections.abc import Iterator

from eval.reports.benches.record import BenchRecord
from eval.reports.charts.curves import curves
from eval.reports.charts.points import Curve, Spot
from eval.reports.charts.scales import short_length
from eval.reports.measures import milliseconds
from eval.reports.types import EMPTY, Cell, Chart, Row, Table

Series = tuple[str, str, str]
"""Part of the record, key in it, name in the chart."""

_STATES: dict[str, tuple[Series, ...]] = {
    "cold": (
        ("cold", "ttft_any_ms", "any, evidence first"),
        ("cold", "ttft_grounded_ms", "grounded"),
        ("dense_cold", "ttft_at_least_ms", "dense"),
    ),
    "warm": (
        ("warm", "ttft_warm_ms", "warm"),
        ("dense_warm", "ttft_warm_ms", "dense, warm"),
    ),
}
_CAPTIONS = {
    "cold": "No page of the document was there. Any: the first token, its evidence read first. "
    "Grounded: the first token after the whole document was read. Dense: every token attends to "
    "all before it; where it is hollow the model's window forbids asking, and reading alone took "
    "so long.",
    "warm": "The document was read before.",
}


def first_token_parts(record: BenchRecord, number: int) -> Iterator[Table | Chart]:
    """One table and one chart for each state of the cache."""
    for state, series in _STATES.items():
        found = [curve for one in series if (curve := _curve(record, one)) is not None]
        if not found:
            continue
        title = f"TTFT by length, {state}: {record.name}"
        yield _table(title, found, record, state)
        yield Chart(
            title,
            f"{_CAPTIONS[state]} Medians of {len(record.rounds)} rounds.",
            curves(f"ttft-{number}-{state}", found, "tokens of the document", "TTFT"),
        )


def _curve(record: BenchRecord, series: Series) -> Curve | None:
    part, key, name = series
    spots = []
    for entry in record.results[part]:
        if entry[key] is None:
            continue
        tokens = entry["tokens"]
        rounds = [
            figures[part][key]
            for one in record.rounds
            for figures in one["figures"]
            if figures["tokens"] == tokens and figures[part] is not None
        ]
        bound = key == "ttft_at_least_ms" and entry["ttft_grounded_ms"] is None
        spots.append(Spot(tokens, float(entry[key]), min(rounds), max(rounds), bound))
    return Curve(name, tuple(spots)) if spots else None


def _table(title: str, found: list[Curve], record: BenchRecord, state: str) -> Table:
    lengths = sorted({spot.at for curve in found for spot in curve.spots})
    columns = [curve.name for curve in found]
    ratios = {one["tokens"]: one for one in record.results["ratios"]} if state == "cold" else {}
    if ratios:
        columns += ["dense / grounded", "dense / any"]
    rows = []
    for length in lengths:
        cells = [_cell(curve, length) for curve in found]
        if ratios:
            ratio = ratios.get(length)
            cells += [
                EMPTY
                if ratio is None
                else Cell(f"{'≥ ' if ratio['lower_bound'] else ''}{ratio[key]:.2f}x")
                for key in ("dense_to_grounded", "dense_to_any")
            ]
        rows.append(Row(f"{short_length(length)} tokens", tuple(cells)))
    return Table(
        title,
        "document",
        tuple(columns),
        tuple(rows),
        notes=("Median of the rounds, with the quickest and the slowest round. ≥: a lower bound.",),
    )


def _cell(curve: Curve, length: float) -> Cell:
    spot = next((spot for spot in curve.spots if spot.at == length), None)
    if spot is None:
        return EMPTY
    return Cell(
        f"{'≥ ' if spot.bound else ''}{milliseconds(spot.middle)}",
        f"{milliseconds(spot.low)} to {milliseconds(spot.high)}",
    )
