"""The protocol's tables: one for each cell, cold and mixed never in one, and one of ratios."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from eval.benchmarks.mixed.summary import KINDS
from eval.benchmarks.protocol.arms import ARMS
from eval.benchmarks.tables import make_table, render, show

Json = Mapping[str, Any]
SHOWN = ("ttft_any", "ttft_grounded", "ttft_warm")
"""Metrics of the tables; the record has more."""


def show_protocol(record: Json) -> str:
    """Tables and notes as text."""
    results = record["results"]
    names = dict.fromkeys(name for arm in results["arms"].values() for name in arm)
    tables = [_cell_table(name, results["arms"]) for name in names]
    if any(results["ratios"].values()):
        tables += [_ratio_table(name, results["ratios"]) for name in names]
    return render(*tables) + "\n".join(_notes(results))


def _cell_table(name: str, arms: Json) -> Table:
    rows = []
    for arm, cells in arms.items():
        if (cell := cells.get(name)) is None:
            continue
        for kind in KINDS:
            one = cell["kinds"][kind]
            if not one["requests"]:
                continue
            rows.append(
                [
                    f"{arm}, {kind}",
                    _counts(one),
                    *(_pair(one["metrics"][metric], 0) for metric in SHOWN),
                    show(cell["wall_s"], 1),
                    _share(cell["reuse_rate"]),
                    _share(_part(cell["read_again_tokens"], cell["computed_tokens"])),
                ]
            )
    heads = ["arm", "done / sent", *SHOWN, "cell, s", "reused", "read again"]
    return make_table(f"{name} load: ms, P50 / P95, medians of the rounds", heads, rows)


def _ratio_table(name: str, ratios: Json) -> Table:
    rows = []
    for arm, cells in ratios.items():
        for kind, metrics in cells.get(name, {}).items():
            if metrics:
                shown = [_pair(metrics.get(metric), 2) for metric in SHOWN]
                rows.append([f"{arm}, {kind}", *shown])
    return make_table(f"{name} load: times the whole engine's, P50 / P95", ["arm", *SHOWN], rows)


def _notes(results: Json) -> list[str]:
    """What a reader should know besides."""
    said = [
        "≥: a lower bound, some requests were given up or their documents too long to ask about"
    ]
    for arm, cells in results["arms"].items():
        for name, cell in cells.items():
            where = f"{arm}, {name}"
            if cell["label"] != name and (name == "cold" or ARMS[arm].reuse):
                said.append(f"{where}: measured as {cell['label']}")
            if cell["cut"]:
                said.append(
                    f"{where}: the time was over in {cell['cut']} of {cell['rounds']} rounds"
                )
            for fault, count in cell["faults"].items():
                said.append(f"{where}: {count} failed: {fault}")
            again = sum(cell["kinds"][kind]["warm_read_again"] for kind in KINDS)
            if again:
                said.append(
                    f"{where}: {again} third questions had to have their evidence read again"
                )
    for arm, why in results.get("failures", {}).items():
        said.append(f"{arm} was not (wholly) measured: {why}")
    return said


def _counts(kind: Json) -> str:
    sent = kind["requests"] - kind["not_sent"]
    failed = f", {kind['failed']} failed" if kind["failed"] else ""
    return f"{kind['done']} / {sent}{failed}"


def _pair(metric: Json | None, digits: int) -> str:
    if metric is None:
        return show(None)
    return " / ".join(_bound(metric[share], digits) for share in ("p50", "p95"))


def _bound(bound: Json | None, digits: int) -> str:
    if bound is None:
        return show(None)
    return ("≥" if bound["at_least"] else "") + show(bound["value"], digits)


def _part(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _share(value: float | None) -> str:
    return show(value) if value is None else f"{value:.0%}"
