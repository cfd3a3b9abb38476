"""The mixed load's tables: one for each cell, never cold and warm figures in one column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from eval.benchmarks.mixed.summary import KINDS
from eval.benchmarks.tables import make_table, render, show

Json = Mapping[str, Any]

COLUMNS = (
    ("ttft_any_ms", "ttft_any"),
    ("ttft_any_from_question_ms", "from the question"),
    ("read_ms", "read"),
    ("ttft_grounded_ms", "ttft_grounded"),
    ("ttft_warm_ms", "ttft_warm"),
    ("total_ms", "total"),
)


def show_mixed(record: Json) -> str:
    """Tables and notes as text."""
    results = record["results"]
    return render(*mixed_tables(results)) + "\n".join(notes(results))


def mixed_tables(results: Mapping[str, Any]) -> list[Table]:
    """A table a cell: P50 / P95 in milliseconds, medians of the rounds."""
    return [_table(name, cell) for name, cell in results.items()]


def notes(results: Mapping[str, Any]) -> list[str]:
    """What a reader should know besides: failures, refusals waited out, missing measurements."""
    said = []
    for name, cell in results.items():
        if cell["failed"]:
            faults = ", ".join(f"{fault} ({count})" for fault, count in cell["faults"].items())
            said.append(f"{name}: {cell['failed']} of {cell['requests']} failed: {faults}")
        if cell["label"] == "unknown":
            said.append(
                f"{name}: the server does not tell what it had cached: cold or warm unknown"
            )
        answers = cell["answers"]
        if answers["retries"]:
            said.append(f"{name}: {answers['retries']} refusals (server full) were waited out")
        said.append(
            f"{name}: {answers['right']} of {answers['asked']} answers hold the right amount"
        )
    return said


def _table(name: str, cell: Json) -> Table:
    rate = "not told" if cell["hit_rate"] is None else f"{cell['hit_rate']:.3f}"
    title = (
        f"{name} load, measured: {cell['label']} (hit rate {rate}); ms, P50 / P95, medians of "
        f"{cell['rounds']} round{'s' if cell['rounds'] > 1 else ''}"
    )
    rows = []
    for kind in KINDS:
        figures = cell["kinds"][kind]
        if figures["requests"]:
            shown = [_shown(figures["metrics"][metric]) for metric, _ in COLUMNS]
            rows.append([kind, show(figures["requests"]), show(figures["failed"]), *shown])
    return make_table(title, ["requests", "n", "failed", *(head for _, head in COLUMNS)], rows)


def _shown(metric: Json) -> str:
    text = f"{show(metric['p50'])} / {show(metric['p95'])}"
    if metric["p99_all_rounds"] is not None:
        text += f"\nP99 {show(metric['p99_all_rounds'])}"
    return text
