"""`bench decode`: cells, requests, and the clock for sequences that run together."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.errors import BadParameter
from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.errors import RequestTooLarge
from backend.types import DocumentTokens, Request, SamplingParams
from eval.benchmarks.decode import parse_source, require_format
from eval.benchmarks.decode_cells import Cell, choose_cells, requests_of
from eval.benchmarks.decode_clock import DecodeTime, decode_together
from eval.benchmarks.tables import decode_tables, render
from eval.errors import EvalError

TEXTS = tuple(range(3, 500)) * 8


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(
        EngineConfig(model=tiny_llama, precision="float32", block_tokens=256, kv_budget=16 << 20)
    )
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def document(engine: Engine) -> DocumentTokens:
    document = DocumentTokens("d", TEXTS[:2048], engine.split_blocks(2048))
    engine.read(document).wait(60)
    return document


def test_cells_that_take_minutes_on_a_cpu_are_left_out_and_named() -> None:
    cells, skipped = choose_cells((512, 8192), (1, 8), device="cpu")
    assert Cell("evidence", 512, 8, "greedy") in cells
    assert {(s.source, s.context, s.batch) for s in skipped} == {
        ("prompt", 8192, 8),
        ("evidence", 8192, 8),
    }
    assert all("--all-cells" in one.why for one in skipped)
    _, on_gpu = choose_cells((512, 8192), (1, 8), device="cuda")
    assert [(s.source, s.context, s.batch) for s in on_gpu] == [("prompt", 8192, 8)]
    cells, skipped = choose_cells((512, 8192), (1, 8), device="cpu", every=True)
    assert skipped == []
    # Batch 1 is measured with and without guessing.
    assert len(cells) == 2 * 2 * 3
    cells, _ = choose_cells((512, 8192), (1, 8), device="cpu", every=True, sampled=True)
    assert len(cells) == 2 * 2 * 4
    assert Cell("evidence", 512, 8, "sampled") in cells
    cells, _ = choose_cells((512,), (1, 8), device="cpu", sources=parse_source("prompt"))
    assert {cell.source for cell in cells} == {"prompt"}
    assert parse_source(None) == ("prompt", "evidence")
    with pytest.raises(BadParameter, match="prompt, evidence"):
        parse_source("cache")


@pytest.mark.parametrize("source", ["prompt", "evidence"])
@pytest.mark.parametrize("batch", [1, 3])
def test_sequences_are_timed_while_all_of_them_run(
    engine: Engine, document: DocumentTokens, source: str, batch: int
) -> None:
    cell = Cell(source, 700, batch, "greedy")  # type: ignore[arg-type]
    requests = requests_of(engine, cell, 8, TEXTS, document, random.Random(1))
    assert len({request.prompt_ids for request in requests}) == batch
    started = time.perf_counter()
    timed = decode_together(engine, requests, 8)
    assert 0 < timed.seconds < time.perf_counter() - started
    assert timed.sequences == batch
    # In step: nobody is more than a step ahead.
    assert 8 * batch <= timed.tokens <= 9 * batch
    assert 600 < timed.context < 900
    assert timed.ms_per_token == pytest.approx(1e3 * batch / timed.tokens_per_s)


def test_a_context_as_long_as_the_window_leaves_room_for_the_answer(
    engine: Engine, document: DocumentTokens
) -> None:
    cell = Cell("prompt", 4096, 2, "sampled")
    requests = requests_of(engine, cell, 8, TEXTS * 2, document, random.Random(1))
    for request in requests:
        assert len(request.prompt_ids) + request.sampling.max_tokens == 4096
        assert request.sampling.temperature == 1.0


def test_evidence_lies_on_pages_and_fills_the_context(
    engine: Engine, document: DocumentTokens
) -> None:
    cell = Cell("evidence", 1024, 1, "greedy")
    request = requests_of(engine, cell, 8, TEXTS, document, random.Random(1))[0]
    assert all(place % 64 == 0 for span in request.evidence for place in span)
    held = sum(last - first for first, last in request.evidence)
    assert 1024 - 64 < held + len(request.prompt_ids) <= 1024


def test_contexts_without_room_are_refused(engine: Engine, document: DocumentTokens) -> None:
    with pytest.raises(EvalError, match="no room"):
        requests_of(engine, Cell("evidence", 64, 1, "greedy"), 8, TEXTS, document,
                    random.Random(1))  # fmt: skip
    with pytest.raises(EvalError, match="can't be cut"):
        requests_of(engine, Cell("prompt", 900, 1, "greedy"), 8, TEXTS[:100], document,
                    random.Random(1))  # fmt: skip


def test_an_answer_that_ends_too_soon_is_no_measurement(engine: Engine) -> None:
    short = Request("short", TEXTS[:50], SamplingParams(max_tokens=4, ignore_eos=True))
    with pytest.raises(EvalError, match="made only 3 of 8 tokens"):
        decode_together(engine, [short], 8)
    with pytest.raises(RequestTooLarge):
        decode_together(engine, [Request("long", TEXTS * 2, short.sampling)], 8)


def test_rates_count_all_sequences() -> None:
    timed = DecodeTime(seconds=2.0, tokens=40, sequences=4, context=10.0)
    assert timed.tokens_per_s == 20.0
    # Each made 10 tokens in 2 seconds.
    assert timed.ms_per_token == 200.0


def test_only_formats_that_exist_are_accepted(engine: Engine) -> None:
    require_format(engine, "auto")
    require_format(engine, "fp32")
    with pytest.raises(BadParameter, match="not built yet"):
        require_format(engine, "fp8")
    with pytest.raises(BadParameter, match="32 bits here"):
        require_format(engine, "bf16")
    with pytest.raises(BadParameter, match="No KV format"):
        require_format(engine, "fp64")


def test_the_command_prints_a_record_and_a_table(tiny_llama: Path, tmp_path: Path) -> None:
    from app.cli import build

    out = tmp_path / "decode.json"
    arguments = ["bench", "decode", "--contexts", "512", "--batch", "1,2", "--tokens", "4",
                 "--document", "1K", "--rounds", "2", "--model", str(tiny_llama), "--device", "cpu",
                 "--precision", "float32", "--kv-budget", "32", "--out", str(out)]  # fmt: skip
    result = CliRunner().invoke(build(), arguments, catch_exceptions=False)
    assert result.exit_code == 0
    assert "greedy, guessing" in result.stdout
    record = json.loads(out.read_text("utf-8"))
    assert record["bench"] == "decode"
    assert len(record["rounds"]) == 2
    cells = record["results"]["cells"]
    assert {(c["source"], c["batch"], c["decoding"]) for c in cells} == {
        (source, batch, decoding)
        for source in ("prompt", "evidence")
        for batch, decoding in ((1, "greedy"), (1, "sampled"), (2, "greedy"))
    }
    result = CliRunner().invoke(build(), [*arguments, "--format", "int4", "--json"])
    assert result.exit_code == 2
    assert "not built yet" in json.loads(result.stdout)["error"]["message"]


def test_what_was_left_out_is_in_the_table() -> None:
    cells, skipped = choose_cells((8192,), (8,), device="cpu")
    assert cells == []
    from dataclasses import asdict

    text = render(*decode_tables({"cells": [], "skipped": [asdict(one) for one in skipped]}))
    assert "not measured" in text
    assert "--all-cells" in text
