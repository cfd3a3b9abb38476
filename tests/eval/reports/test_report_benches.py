"""Records of benchmarks, made by the benchmarks' own code, as tables and charts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from eval.benchmarks.first_token import WholeRead
from eval.benchmarks.mixed.summary import cell_fields
from eval.benchmarks.mixed.summary import summarise as summarise_load
from eval.benchmarks.mixed.types import CellRecord, Fault, RequestRecord, Reuse
from eval.benchmarks.record import make_record, write_record
from eval.benchmarks.ttft_figures import Figures, round_fields, summarise
from eval.errors import RunError
from eval.reports.benches.figures import bench_parts
from eval.reports.benches.record import load_bench
from eval.reports.types import Chart, Table

Parts = tuple[tuple[Table, ...], tuple[Chart, ...]]
Show = Callable[..., Parts]


@pytest.fixture
def show(tmp_path: Path) -> Show:
    """show(bench, rounds, results) -> tables and charts of such a record."""

    def shown(bench: str, rounds: list[Any], results: Any) -> Parts:
        record = make_record(bench, device="cpu", config={}, rounds=rounds, results=results)
        path = tmp_path / f"{bench}.json"
        write_record(path, record)
        return bench_parts([load_bench(path)])

    return shown


def figures(tokens: int, factor: float, *, window: bool = True) -> Figures:
    dense = WholeRead(
        read_ms=4000 * factor,
        ttft_grounded_ms=5000 * factor if window else None,
        ttft_warm_ms=300 * factor if window else None,
    )
    return Figures(
        tokens=tokens,
        ttft_any_ms=500 * factor,
        any_read_tokens=1024,
        ttft_grounded_ms=1000 * factor,
        read_ms=900 * factor,
        ttft_warm_ms=50 * factor,
        dense=dense,
    )


def values(table: Table) -> dict[str, list[str]]:
    return {row.label: [cell.value for cell in row.cells] for row in table.rows}


def test_first_token_times_stand_by_length_cold_and_warm_apart(show: Show) -> None:
    rounds = [
        [figures(4096, factor), figures(16384, 4 * factor, window=False)]
        for factor in (1.0, 3.0, 2.0)
    ]
    kept = [round_fields(n, found) for n, found in enumerate(rounds, start=1)]
    (facts, cold, warm), charts = show("ttft", kept, summarise(rounds))
    assert facts.words and "ttft" in values(facts)["benchmark"]
    assert cold.columns == (
        "any, evidence first", "grounded", "dense", "dense / grounded", "dense / any",
    )  # fmt: skip
    assert values(cold)["4K tokens"] == ["1,000 ms", "2,000 ms", "10.0 s", "5.00x", "10.00x"]
    assert values(cold)["16K tokens"][2:] == ["≥ 32.0 s", "≥ 4.00x", "≥ 8.00x"]
    assert cold.rows[0].cells[0].interval == "500 ms to 1,500 ms"
    assert values(warm) == {"4K tokens": ["100 ms", "600 ms"], "16K tokens": ["400 ms", "–"]}
    assert [chart.title for chart in charts] == [
        "TTFT by length, cold: ttft.json", "TTFT by length, warm: ttft.json",
    ]  # fmt: skip


def request(number: int, kind: str, *, failed: bool = False) -> RequestRecord:
    marks = {"arrival": 1.0 * number, "sent": number + 5.0, "accepted": 160.0 + number}
    if not failed:
        marks |= {
            "askable": 170.0 + number,
            "first_text": 190.0 + number,
            "read_complete": 400.0 + number,
            "grounded_text": 450.0 + number,
            "warm_asked": 500.0,
            "warm_text": 520.0,
            "done": 600.0,
        }
    return RequestRecord(
        request_id=f"r{number}",
        kind="long" if kind == "long" else "short",
        planned_tokens=16384 if kind == "long" else 1024,
        status="failed" if failed else "done",
        timeline=marks,
        fault=Fault("read", "timeout", "<b>too late</b>") if failed else None,
        document_tokens=1024,
        computed_tokens=1024,
        reused_tokens=0,
    )


def load_cell(name: str, requests: int = 12) -> CellRecord:
    records = [request(n, "long" if n % 4 == 0 else "short") for n in range(requests)]
    return CellRecord(
        cell=name,
        claim="cold" if name == "cold" else "mixed",
        label="cold" if name == "cold" else "mixed",
        reuse=Reuse(1000, 0 if name == "cold" else 500, "engine counters"),
        wall_ms=1000.0,
        peak_in_flight=4,
        loop_lag_ms=(0.1, 0.2),
        counters={},
        records=(*records, request(99, "short", failed=True)),
    )


def test_each_cell_of_a_mixed_load_has_its_measured_label(show: Show) -> None:
    rounds = [[load_cell("cold"), load_cell("mixed")] for _ in range(3)]
    kept = [{"cells": [cell_fields(cell) for cell in cells]} for cells in rounds]
    (_, cold, mixed), charts = show("mixed", kept, summarise_load(rounds))
    assert cold.title == "Mixed traffic, cold load, measured cold (hit rate 0.000): mixed.json"
    assert mixed.title.startswith("Mixed traffic, mixed load, measured mixed (hit rate 0.500)")
    assert cold.columns == ("short", "long")
    assert values(cold)["requests"] == ["30", "9"]
    assert values(cold)["failed"] == ["3", "0"]
    assert any("Failures: read: timeout (3)." in note for note in cold.notes)
    grounded = next(row for row in cold.rows if row.label.startswith("TTFT grounded"))
    assert "n = 27" in grounded.cells[0].note and "P99" not in grounded.cells[0].note
    assert len(charts) == 4
    # The failed request's cross is drawn in the colour of failures.
    assert "var(--stage-5)" in charts[1].svg
    assert "r99" not in charts[1].svg


def test_decoding_stands_by_context_and_batch(show: Show) -> None:
    cells = [
        {"source": source, "context": context, "batch": batch, "decoding": decoding}
        for source in ("prompt", "evidence")
        for context in (512, 2048)
        for batch, decoding in ((1, "greedy"), (1, "sampled"), (8, "greedy"))
    ]
    rounds = [
        {
            "round": number,
            "figures": [
                cell | {"ms_per_token": 10.0 * place + number, "tokens_per_s": 5.0}
                for place, cell in enumerate(cells)
            ],
        }
        for number in (1, 2, 3)
    ]
    results = {
        "cells": [
            c | {"ms_per_token": 10.0 * p + 2, "mean_context": 1.0} for p, c in enumerate(cells)
        ],
        "skipped": [],
    }
    (_, prompts, evidence), charts = show("decode", rounds, results)
    assert prompts.columns == ("context 512", "context 2K")
    assert values(prompts)["batch 8, greedy"] == ["22.0 ms", "52.0 ms"]
    assert values(evidence)["batch 1, sampled"] == ["72.0 ms", "102 ms"]
    assert prompts.rows[0].cells[0].interval == "1 ms to 3 ms"
    assert len(charts) == 2


def test_kernels_stand_beside_their_peers(show: Show) -> None:
    row = {
        "op": "decode_attention", "shape": "9/3", "dtype": "bfloat16", "name": "batched",
        "peer": False, "status": "measured", "relative_error": 0.004, "max_error": 0.1, "ms": 0.44,
        "gflops": 2.0, "gflops_share": 0.057, "gbytes_per_s": 1.0, "gbytes_share": 0.148, "why": "",
    }  # fmt: skip
    results = {
        "ceilings": {},
        "kernels": [
            row,
            row | {"name": "sdpa flash", "peer": True, "status": "unavailable", "ms": None,
                   "relative_error": None, "gflops_share": None, "gbytes_share": None,
                   "why": "no such kernel"},
            row | {"status": "compared", "ms": None, "relative_error": 0.02},
        ],
        "wrong": [],
    }  # fmt: skip
    (_, table), charts = show("kernels", [], results)
    assert charts == ()
    assert [cell.value for cell in table.rows[0].cells] == ["0.44 ms", "6%", "15%", "4.0e-03"]
    assert table.rows[1].note == "peer, unavailable, no such kernel"
    assert len(table.rows) == 2 and "2.0e-02" in table.notes[1]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "no JSON"),
        ("[]", "no record of fineprint bench"),
        ('{"bench": "ttft"}', "no record of fineprint bench"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "other.json"
    path.write_text(content)
    with pytest.raises(RunError, match=said):
        load_bench(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"can't be read: No such file.*--bench"):
        load_bench(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("bench", "said"), [("ttft", "not as bench ttft writes them"), ("other", "has tables for ttft")]
)
def test_records_of_another_shape_are_refused(show: Show, bench: str, said: str) -> None:
    with pytest.raises(RunError, match=said):
        show(bench, [], {"cold": [{"tokens": 1}]})


def test_a_record_keeps_its_rounds(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    body = make_record("ttft", device="cpu", config={"a": 1}, rounds=[{"b": 2}], results={})
    path.write_text(json.dumps(body))
    record = load_bench(path)
    assert (record.name, record.config, record.rounds) == ("r.json", {"a": 1}, [{"b": 2}])
