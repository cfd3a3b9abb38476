"""`bench kernels`: each op beside its reference and its peers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eval.reports.benches.record import BenchRecord
from eval.reports.measures import milliseconds
from eval.reports.types import EMPTY, Cell, Chart, Row, Table


def kernel_parts(record: BenchRecord, number: int) -> Iterator[Table | Chart]:
    """One table an op; kernels have no chart, so `number` is not needed."""
    entries = record.results["kernels"]
    for op in dict.fromkeys(entry["op"] for entry in entries):
        ours = [entry for entry in entries if entry["op"] == op]
        compared = [entry for entry in ours if entry["status"] == "compared"]
        worst = max((entry["relative_error"] or 0.0 for entry in compared), default=0.0)
        yield Table(
            f"Kernels, {op}: {record.name}",
            "shape, type, kernel",
            ("time", "arithmetic, of the ceiling", "memory, of the ceiling", "error"),
            tuple(_row(entry) for entry in ours if entry["status"] != "compared"),
            notes=(
                "Ceilings are measured in the same run. Error: relative, against the reference.",
                f"{len(compared)} further shapes were only compared with the reference; largest "
                f"relative error {worst:.1e}.",
            ),
        )


def _row(entry: Mapping[str, Any]) -> Row:
    error = entry["relative_error"]
    state = "" if entry["status"] == "measured" else str(entry["status"])
    return Row(
        f"{entry['shape']}, {entry['dtype']}, {entry['name']}",
        (
            EMPTY if entry["ms"] is None else Cell(milliseconds(entry["ms"])),
            _share(entry["gflops_share"]),
            _share(entry["gbytes_share"]),
            EMPTY if error is None else Cell(f"{error:.1e}"),
        ),
        ", ".join(part for part in ("peer" if entry["peer"] else "", state, entry["why"]) if part),
    )


def _share(value: float | None) -> Cell:
    return EMPTY if value is None else Cell(f"{100 * value:.0f}%")
