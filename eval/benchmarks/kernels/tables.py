"""The tables of `bench kernels`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from rich.table import Table

from eval.benchmarks.tables import Rows, make_table, show


def kernel_tables(results: Mapping[str, object]) -> list[Table]:
    """Ceilings, speeds by op, errors on odd shapes, peers that were not there."""
    rows = cast(Rows, results["kernels"])
    ceilings = cast(Mapping[str, float], results["ceilings"])
    tables = [
        make_table(
            "ceilings of this run",
            ["what", "measured"],
            [[key, show(value)] for key, value in ceilings.items()],
        )
    ]
    for op in dict.fromkeys(str(row["op"]) for row in rows):
        measured = [row for row in rows if row["op"] == op and row["status"] == "measured"]
        if measured:
            tables.append(_speeds(op, measured))
    tables.append(_errors(rows))
    absent = {
        (str(row["op"]), str(row["name"]), str(row["why"]))
        for row in rows
        if row["status"] == "unavailable"
    }
    if absent:
        tables.append(
            make_table(
                "peers that don't take some input",
                ["op", "peer", "it says"],
                [[op, name, why[:70]] for op, name, why in sorted(absent)],
            )  # fmt: skip
        )
    return tables


def _speeds(op: str, rows: Rows) -> Table:
    best: dict[tuple[object, object], float] = {}
    for row in rows:
        if row["peer"]:
            key = row["shape"], row["dtype"]
            best[key] = min(best.get(key, float("inf")), cast(float, row["ms"]))
    lines = []
    for row in rows:
        ms, peer = cast(float, row["ms"]), best.get((row["shape"], row["dtype"]))
        lines.append(
            [
                str(row["shape"]),
                ("peer: " if row["peer"] else "") + str(row["name"]),
                show(ms, 3),
                show(row["gflops"]),
                _percent(row["gflops_share"]),
                show(row["gbytes_per_s"], 1),
                _percent(row["gbytes_share"]),
                "–" if row["peer"] or peer is None else show(peer / ms, 2),
            ]
        )
    columns = ["shape", "kernel", "ms", "GFLOP/s", "of GEMM", "GB/s", "of read", "× best peer"]
    return make_table(f"{op} (higher × is faster)", columns, lines)


def _errors(rows: Rows) -> Table:
    worst: dict[tuple[str, str, str], tuple[float, int, bool]] = {}
    for row in rows:
        if row["peer"] or row["relative_error"] is None:
            continue
        key = str(row["op"]), str(row["name"]), str(row["dtype"])
        error, count, wrong = worst.get(key, (0.0, 0, False))
        found = cast(float, row["relative_error"])
        worst[key] = max(error, found), count + 1, wrong or row["status"] == "wrong"
    return make_table(
        "against the reference, fresh random inputs, odd shapes among them",
        ["op", "kernel", "format", "shapes", "worst relative error", "result"],
        [
            [*key, str(count), f"{error:.1e}", "WRONG" if wrong else "agrees"]
            for key, (error, count, wrong) in worst.items()
        ],
    )


def _percent(value: object) -> str:
    return "–" if value is None else f"{cast(float, value):.0%}"
