"""From records to figures: percentiles in each round, medians over the rounds, ratios to the whole
engine. Ratios are taken within a round, before the median. It measures nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eval.benchmarks.mixed.summary import KINDS
from eval.benchmarks.protocol.arms import FULL
from eval.benchmarks.protocol.bounds import Bound, middle, percentile, ratio
from eval.benchmarks.protocol.types import METRICS, CellRecord, Fields

SHARES = {"p50": 50.0, "p95": 95.0}
_HEADLINE = ("ttft_any", "ttft_grounded")


def summarise(cells: Sequence[CellRecord]) -> Fields:
    """`arms`: by arm, cell, kind of request and metric. `ratios`: the same against `full`.
    `dense_to_full`: those of the longest documents, by cell, where both were measured."""
    arms = list(dict.fromkeys(cell.arm for cell in cells))
    ratios = {arm: _ratios(cells, arm) for arm in arms if arm != FULL}
    return {
        "arms": {
            arm: {name: _cell(_of(cells, arm, name)) for name in _names(cells, arm)} for arm in arms
        },
        "ratios": ratios,
        "dense_to_full": {
            name: {metric: kinds["long"][metric] for metric in _HEADLINE}
            for name, kinds in ratios.get("dense", {}).items()
            if kinds["long"]
        },
    }


def _names(cells: Sequence[CellRecord], arm: str) -> list[str]:
    return list(dict.fromkeys(cell.cell for cell in cells if cell.arm == arm))


def _of(cells: Sequence[CellRecord], arm: str, name: str) -> list[CellRecord]:
    return [cell for cell in cells if cell.arm == arm and cell.cell == name]


def _cell(rounds: Sequence[CellRecord]) -> Fields:
    records = [record for cell in rounds for record in cell.records]
    done = [record for record in records if record.status == "done"]
    rates = [Bound(rate) for cell in rounds if (rate := cell.reuse_rate) is not None]
    labels = dict.fromkeys(cell.label for cell in rounds)
    tokens = sum(record.tokens for record in done)
    return {
        "label": "/".join(labels),
        "rounds": len(rounds),
        "cut": sum(cell.cut for cell in rounds),
        "wall_s": _value(middle([Bound(cell.wall_s) for cell in rounds])),
        "reuse_rate": _value(middle(rates)),
        "document_tokens": tokens,
        "read_again_tokens": sum(record.read_again for record in records),
        "computed_tokens": sum(cell.counters["read_tokens"] for cell in rounds),
        "evicted_blocks": sum(cell.counters["evicted"] for cell in rounds),
        "faults": dict(Counter(record.fault for record in records if record.fault)),
        "kinds": {kind: _kind(rounds, kind) for kind in KINDS},
    }


def _kind(rounds: Sequence[CellRecord], kind: str) -> Fields:
    records = [one for cell in rounds for one in cell.records if one.kind == kind]
    statuses = Counter(record.status for record in records)
    done = [record for record in records if record.status == "done"]
    return {
        "requests": len(records),
        **{
            name.replace(" ", "_"): statuses[name]
            for name in ("done", "failed", "unfinished", "not sent")
        },
        "warm_read_again": sum(bool((one.read_for or {}).get("warm")) for one in done),
        "metrics": {metric: _metric(rounds, kind, metric) for metric in METRICS},
    }


def _metric(rounds: Sequence[CellRecord], kind: str, metric: str) -> Fields:
    each = [_values(cell, kind, metric) for cell in rounds]
    found: Fields = {
        "n": sum(map(len, each)),
        "bounds": sum(one.at_least for values in each for one in values),
    }
    for name, share in SHARES.items():
        told = [one for values in each if (one := percentile(values, share)) is not None]
        found[name] = _bound(middle(told))
    return found


def _values(cell: CellRecord, kind: str, metric: str) -> list[Bound]:
    """Of requests that did not fail."""
    return [
        record.times[metric]
        for record in cell.records
        if record.kind == kind
        and record.status != "failed"
        and record.times is not None
        and metric in record.times
    ]


def _ratios(cells: Sequence[CellRecord], arm: str) -> dict[str, dict[str, dict[str, Fields]]]:
    """By cell, kind and metric."""
    return {
        name: {
            kind: {
                metric: fields
                for metric in METRICS
                if any((fields := _ratio(cells, arm, name, kind, metric)).values())
            }
            for kind in KINDS
        }
        for name in _names(cells, arm)
    }


def _ratio(cells: Sequence[CellRecord], arm: str, name: str, kind: str, metric: str) -> Fields:
    base = {cell.round: _values(cell, kind, metric) for cell in _of(cells, FULL, name)}
    own = {cell.round: _values(cell, kind, metric) for cell in _of(cells, arm, name)}
    found: Fields = {}
    for share_name, share in SHARES.items():
        told = [
            one
            for number in own
            if (
                one := ratio(
                    percentile(own[number], share), percentile(base.get(number, []), share)
                )
            )
            is not None
        ]
        found[share_name] = _bound(middle(told))
    return found


def _bound(bound: Bound | None) -> Fields | None:
    return None if bound is None else bound.fields()


def _value(bound: Bound | None) -> float | None:
    return None if bound is None else bound.value
