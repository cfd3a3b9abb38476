"""`bench protocol` on a tiny model: whole runs, the limit, failing requests, engines that hang."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.stream import TokenStream
from backend.ticket import ReadTicket
from backend.types import DocumentTokens, Request
from eval.benchmarks.engine_settings import EngineChoice
from eval.benchmarks.mixed.load import LoadShape
from eval.benchmarks.protocol.arms import ARMS, Arm, arm_config
from eval.benchmarks.protocol.cell import run_cell
from eval.benchmarks.protocol.load import LoadMaker
from eval.benchmarks.protocol.types import CellRecord, RequestRecord
from eval.benchmarks.protocol.visit import Limit, Visit
from eval.errors import EvalError
from kvstore.types import PAGE_TOKENS

BLOCK = 64
SHAPE = LoadShape(
    requests=6, lengths=(128, 512), long_share=0.34, concurrency=3, rounds=1, hit_share=0.5,
    output_tokens=3, seed=1,
)  # fmt: skip
LONG = replace(SHAPE, lengths=(1024,))
"""Of sixteen blocks, of which a question on 20 tokens needs eight at most."""
FULL, DENSE = ARMS["full"], ARMS["dense"]
_END_S = 60.0
"""Longer than anything here takes on a busy machine."""


def open_engine(model: Path, budget: int = 8 << 20) -> Engine:
    return Engine.open(
        EngineConfig(model=model, precision="float32", block_tokens=BLOCK, kv_budget=budget)
    )


@pytest.fixture
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = open_engine(tiny_llama)
    yield engine
    engine.close()


def send(engine: Engine, load: tuple[Any, ...], arm: Arm = FULL, **more: float) -> CellRecord:
    limits = {"limit_s": _END_S, "grace_s": _END_S} | more
    return run_cell(
        engine, load, arm=arm, cell="cold", round_number=1, concurrency=SHAPE.concurrency,
        limit_s=limits["limit_s"], grace_s=limits["grace_s"],
    )  # fmt: skip


def exact(record: RequestRecord, *metrics: str) -> list[float]:
    assert record.times is not None
    found = [record.times[metric] for metric in metrics]
    assert not any(one.at_least for one in found)
    return [one.value for one in found]


class Spoilt:
    """An engine of which something does not work."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)


class Unread(Spoilt):
    """Documents are never read, but for what a question needs."""

    def __init__(self, engine: Engine) -> None:
        super().__init__(engine)
        self.given = threading.Event()

    def read(self, document: DocumentTokens, *, lazy: bool = False) -> ReadTicket:
        ticket = self._engine.read(document, lazy=True)
        self.given.set()
        return ticket


def test_the_mixed_cell_finds_what_the_cold_one_left(engine: Engine) -> None:
    load = LoadMaker(engine, SHAPE, FULL, 100).round(0)
    cold, mixed = send(engine, load.cold), send(engine, load.mixed)
    for cell in (cold, mixed):
        assert {one.status for one in cell.records} == {"done"}, cell.records
        assert not cell.cut and 1 <= cell.peak <= SHAPE.concurrency
        for record in cell.records:
            any_ms, grounded, warm, read, total = exact(
                record, "ttft_any", "ttft_grounded", "ttft_warm", "read", "total"
            )
            assert 0 < any_ms < total and 0 < read < grounded < total and 0 < warm < total
    assert cold.label == "cold" and cold.reuse_rate == 0
    assert all(one.computed == one.tokens for one in cold.records)
    assert cold.counters["read_tokens"] == sum(one.tokens for one in cold.records)
    # All pages have room: what was there is everything that was asked about again.
    assert mixed.label == "mixed"
    for record in mixed.records:
        assert record.reused == (record.tokens if record.again else 0)
    assert sum(one.again for one in mixed.records) == 3


def test_without_reuse_nothing_is_left(engine: Engine) -> None:
    load = LoadMaker(engine, SHAPE, ARMS["no_reuse"], 100).round(0)
    send(engine, load.cold)
    mixed = send(engine, load.mixed, ARMS["no_reuse"])
    assert mixed.label == "cold" and any(one.again for one in mixed.records)


def test_a_question_that_waits_for_the_document_comes_after_it(engine: Engine) -> None:
    load = LoadMaker(engine, SHAPE, ARMS["evidence_last"], 100).round(0)
    for record in send(engine, load.cold, ARMS["evidence_last"]).records:
        any_ms, grounded, read = exact(record, "ttft_any", "ttft_grounded", "read")
        assert any_ms == grounded > read


def test_a_dense_document_beyond_the_window_has_lower_bounds(tiny_llama: Path) -> None:
    shape = LoadShape(
        requests=2, lengths=(512, 4096), long_share=0.5, concurrency=2, rounds=1, hit_share=0.0,
        output_tokens=3, seed=1,
    )  # fmt: skip
    engine = open_engine(tiny_llama)
    try:
        load = LoadMaker(engine, shape, DENSE, 100).round(0)
        records = {one.tokens: one for one in send(engine, load.cold, DENSE).records}
    finally:
        engine.close()
    assert {one.status for one in records.values()} == {"done"}
    any_ms, grounded = exact(records[512], "ttft_any", "ttft_grounded")
    assert any_ms == grounded
    times = records[4096].times
    assert times is not None
    # The model has 4,096 positions: reading it was possible, asking about it is not.
    assert times["ttft_any"] == times["ttft_grounded"] and times["ttft_any"].at_least
    assert times["ttft_any"].value == times["read"].value and not times["read"].at_least
    assert "ttft_warm" not in times
    assert [one.computed for one in records.values()] == [one.tokens for one in records.values()]


@pytest.mark.parametrize("arm", [FULL, ARMS["evidence_last"]])
def test_a_request_under_way_at_the_limit_took_at_least_so_long(
    tiny_llama: Path, engine: Engine, arm: Arm
) -> None:
    load = LoadMaker(engine, LONG, arm, 20).round(0)
    planned = next(one for one in load.cold if not one.kept)
    unread: Any = Unread(engine)
    limit = Limit(unread)
    found: list[RequestRecord] = []
    client = threading.Thread(
        target=lambda: found.append(Visit(unread, planned, arm.order, limit).run(0.0))
    )
    client.start()
    assert unread.given.wait(_END_S)
    limit.come()
    client.join(_END_S)
    (record,) = found
    assert record.status == "unfinished" and record.times is not None
    for metric in ("ttft_grounded", "read", "total"):
        assert record.times[metric].at_least and record.times[metric].value > 0
    # It may have been answered before the limit, but only where it is asked at once.
    assert record.times["ttft_any"].at_least or arm is FULL
    assert "ttft_warm" not in record.times
    assert engine.progress(planned.given.key) is None, "its pages are not given back"


def test_a_cell_ends_at_its_limit(engine: Engine) -> None:
    load = LoadMaker(engine, LONG, FULL, 20).round(0)
    unread: Any = Unread(engine)
    cell = send(unread, load.cold, limit_s=0.3)
    assert cell.cut
    statuses = [one.status for one in cell.records]
    assert set(statuses) <= {"unfinished", "not sent"}
    assert statuses.count("not sent") >= len(load.cold) - SHAPE.concurrency
    # The engine is there for the next one.
    assert {one.status for one in send(engine, load.mixed).records} == {"done"}


def test_a_failing_request_is_recorded_and_the_others_are_served(engine: Engine) -> None:
    load = LoadMaker(engine, SHAPE, FULL, 100).round(0)
    unlucky = load.cold[2].questions[1].request_id

    class Refusing(Spoilt):
        def generate(self, request: Request) -> TokenStream:
            if request.request_id == unlucky:
                raise RuntimeError("no luck")
            return self._engine.generate(request)

    refusing: Any = Refusing(engine)
    records = send(refusing, load.cold).records
    assert records[2].status == "failed" and records[2].fault == "RuntimeError: no luck"
    assert [one.status for one in records].count("done") == len(records) - 1


def test_a_document_larger_than_the_pool_fails_alone(tiny_llama: Path) -> None:
    engine = open_engine(tiny_llama)
    try:
        page = engine.kv_page_bytes
    finally:
        engine.close()
    # Room for the short documents side by side, never for a long one.
    engine = open_engine(tiny_llama, budget=(512 // PAGE_TOKENS - 1) * page)
    try:
        load = LoadMaker(engine, SHAPE, FULL, 50).round(0)
        records = send(engine, load.cold).records
    finally:
        engine.close()
    for one in records:
        if one.kind == "long":
            assert one.status == "failed" and "RequestTooLarge" in one.fault
        else:
            assert one.status == "done", one.fault


@pytest.mark.parametrize("arm", [FULL, ARMS["evidence_last"], ARMS["first_come"], DENSE])
def test_documents_that_do_not_fit_together_are_all_served(tiny_llama: Path, arm: Arm) -> None:
    engine = open_engine(tiny_llama)
    pages = 1024 // PAGE_TOKENS * 3 // 2
    config = replace(engine.settings, kv_budget=pages * engine.kv_page_bytes)
    engine.close()
    engine = Engine.open(arm_config(arm, config, EngineChoice(), 1024))
    try:
        load = LoadMaker(engine, LONG, arm, 100).round(0)
        cells = [send(engine, load.cold, arm), send(engine, load.mixed, arm)]
    finally:
        engine.close()
    for one in (record for cell in cells for record in cell.records):
        assert one.status == "done", one.fault
        assert one.computed + (one.reused or 0) >= one.tokens


def test_an_engine_that_hangs_ends_the_cell(engine: Engine) -> None:
    load = LoadMaker(engine, SHAPE, FULL, 100).round(0)
    release = threading.Event()

    class Hanging(Spoilt):
        def generate(self, request: Request) -> TokenStream:
            release.wait(_END_S)
            return self._engine.generate(request)

    hanging: Any = Hanging(engine)
    try:
        with pytest.raises(EvalError, match="hangs"):
            send(hanging, load.cold, limit_s=0.2, grace_s=0.2)
    finally:
        release.set()


def bench(tiny_llama: Path, *arguments: str) -> tuple[int, str, str]:
    from app.cli import build

    options = [
        "--model", str(tiny_llama), "--device", "cpu", "--precision", "float32",
        "--block-tokens", "64", "--kv-budget", "32", "--evidence", "100", "--lengths", "128,256",
        "--requests", "4", "--concurrency", "2", "--answer-tokens", "3",
    ]  # fmt: skip
    result = CliRunner().invoke(build(), ["bench", "protocol", *options, *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_measures_arms_and_writes_their_record(
    tiny_llama: Path, tmp_path: Path
) -> None:
    out = tmp_path / "protocol.json"
    code, stdout, _ = bench(tiny_llama, "--arms", "full,dense:mixed", "--rounds", "2",
                            "--other-rounds", "1", "--json", "--out", str(out))  # fmt: skip
    assert code == 0
    record = json.loads(stdout)
    assert record == json.loads(out.read_text("utf-8"))
    assert record["bench"] == "protocol"
    cells = [(one["arm"], one["cell"], one["round"]) for one in record["rounds"]]
    assert cells == [
        ("full", "cold", 1), ("full", "mixed", 1), ("full", "cold", 2), ("full", "mixed", 2),
        ("dense", "mixed", 1),
    ]  # fmt: skip
    for one in record["rounds"]:
        assert {request["status"] for request in one["requests"]} == {"done"}
    results = record["results"]
    assert results["failures"] == {}
    for metric in ("ttft_any", "ttft_grounded"):
        assert results["dense_to_full"]["mixed"][metric]["p50"]["value"] > 0
    assert results["ratios"]["dense"].keys() == {"mixed"}
    assert record["config"]["engines"]["dense"]["first_come"] is True
    assert record["config"]["engines"]["full"]["first_come"] is False


def test_the_mixed_cell_alone_has_its_documents_read_before(tiny_llama: Path) -> None:
    code, stdout, _ = bench(tiny_llama, "--arms", "full", "--rounds", "1", "--cells", "mixed",
                            "--json")  # fmt: skip
    assert code == 0
    (cell,) = json.loads(stdout)["rounds"]
    assert cell["cell"] == "mixed" and cell["label"] == "mixed"
    assert sum(one["again"] for one in cell["requests"]) == 2


def test_an_arm_that_fails_leaves_the_others(
    tiny_llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from eval.benchmarks.protocol import measure

    def choose(engine: Engine, longest: int) -> object:
        raise RuntimeError("no kernel")

    monkeypatch.setattr(measure, "choose", choose)
    code, stdout, stderr = bench(tiny_llama, "--arms", "full,dense", "--rounds", "1",
                                 "--cells", "cold")  # fmt: skip
    assert code == 1
    assert "full, short" in stdout and "dense was not (wholly) measured" in stdout
    assert "no kernel" in stderr


def test_wrong_choices_are_refused_before_anything_opens(tiny_llama: Path) -> None:
    for wrong in (["--arms", "best"], ["--cells", "warm"], ["--preset", "none"]):
        assert bench(tiny_llama, *wrong)[0] == 2
