"""`bench ttft` on a tiny model: documents that share nothing, the cold guard, figures, tables."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from backend.engine import Engine
from backend.engine_config import EngineConfig
from backend.types import EngineCounters
from eval.benchmarks import ttft as ttft_module
from eval.benchmarks.coldness import require_cold
from eval.benchmarks.dense_attention import choose
from eval.benchmarks.documents import load_pieces, sample_files
from eval.benchmarks.engine_documents import (
    UniqueDocument,
    blocks_touched,
    make_document,
    require_unique,
    scattered,
    stretch_for,
    whole_blocks,
)
from eval.benchmarks.first_token import WholeRead, evidence_first, whole_read
from eval.benchmarks.tables import render, ttft_tables
from eval.benchmarks.ttft import TtftPlan, make_sets, measure, require_room
from eval.benchmarks.ttft_figures import Figures, summarise
from eval.errors import EvalError, NotCold

BLOCK = 256
PLAN = TtftPlan((512, 1024), rounds=2, dense_max=512, evidence_tokens=200)


@pytest.fixture(scope="module")
def engine(tiny_llama: Path) -> Iterator[Engine]:
    engine = Engine.open(
        EngineConfig(model=tiny_llama, precision="float32", block_tokens=BLOCK, kv_budget=8 << 20)
    )
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def pieces() -> tuple[str, ...]:
    # The tiny tokenizer knows few words: four times the tokens of a real one.
    return load_pieces(sample_files(), stretch=stretch_for(BLOCK) // 4)


def make(engine: Engine, pieces: tuple[str, ...], seed: int, tokens: int = 1024) -> UniqueDocument:
    return make_document(
        engine, f"d{seed}", tokens, seed=seed, pieces=pieces, evidence_tokens=200, evidence_ranges=3
    )


def forget(engine: Engine, *names: str) -> None:
    """Waits until their pages are free."""
    for name in names:
        engine.forget(name)
    until = time.monotonic() + 10
    while engine.counters.pages_used and time.monotonic() < until:
        time.sleep(0.01)
    assert engine.counters.pages_used == 0


def test_documents_of_a_run_share_no_block(engine: Engine, pieces: tuple[str, ...]) -> None:
    sets = make_sets(engine, PLAN, pieces)
    documents = [document for one in sets for document in one.documents()]
    assert [one.round for one in sets] == [0, 1, 2, 1, 2]
    assert {document.tokens for document in documents} == {512, 1024}
    # Dense ones only up to 512 tokens, and in one block.
    assert [one.dense is not None for one in sets] == [True, True, True, False, False]
    assert sets[1].dense is not None
    assert sets[1].dense.blocks == ((0, 512),)
    require_unique(documents)
    names = [document.name for document in documents]
    assert len(set(names)) == len(names)


def test_a_shared_block_is_found_before_the_run(engine: Engine, pieces: tuple[str, ...]) -> None:
    one, two = make(engine, pieces, 1), make(engine, pieces, 2)
    require_unique([one, two])
    ids = two.ids[:BLOCK] + one.ids[BLOCK : 2 * BLOCK] + two.ids[2 * BLOCK :]
    with pytest.raises(EvalError, match="block 1 of d2 holds the tokens of block 1 of d1"):
        require_unique([one, replace(two, ids=ids)])
    twice = replace(one, ids=one.ids[:BLOCK] * 4)
    with pytest.raises(EvalError, match="block 1 of d1"):
        require_unique([twice])


def test_blocks_without_a_salt_are_refused(engine: Engine) -> None:
    with pytest.raises(EvalError, match="no salt"):
        make(engine, ("word " * 2000,), 3)


def test_a_document_is_cold_once(engine: Engine, pieces: tuple[str, ...]) -> None:
    document = make(engine, pieces, 4)
    early = evidence_first(engine, document)
    assert 0 < early.read_tokens < document.tokens
    with pytest.raises(NotCold, match="0 of"):
        evidence_first(engine, document)
    # Some of its blocks are there now.
    with pytest.raises(NotCold, match="Reading d4"):
        whole_read(engine, document)
    forget(engine, document.name)
    whole = whole_read(engine, document)
    assert whole.ttft_grounded_ms is not None
    assert whole.ttft_warm_ms is not None
    assert whole.ttft_grounded_ms > whole.read_ms > 0
    with pytest.raises(NotCold):
        whole_read(engine, document)
    forget(engine, document.name)


def test_one_block_shared_with_another_document_is_not_cold(
    engine: Engine, pieces: tuple[str, ...]
) -> None:
    one, two = make(engine, pieces, 5), make(engine, pieces, 6)
    whole_read(engine, one)
    ids = two.ids[:BLOCK] + one.ids[BLOCK : 2 * BLOCK] + two.ids[2 * BLOCK :]
    mixed = replace(two, ids=ids)
    with pytest.raises(NotCold, match="768 of 1,024"):
        whole_read(engine, mixed)
    engine.forget(mixed.name)
    with pytest.raises(NotCold):
        evidence_first(engine, replace(mixed, name="d6 again", evidence=((BLOCK, BLOCK + 10),)))
    forget(engine, one.name, "d6 again")


def test_the_guard_counts_hits_and_computed_tokens() -> None:
    before = EngineCounters(10, 5, 0, 0, 0, 8)
    require_cold("x", before=before, after=before, needed_tokens=64, computed_tokens=64)
    after = replace(before, hits=12)
    require_cold(
        "x", before=before, after=after, needed_tokens=64, computed_tokens=64, own_hits=2
    )  # fmt: skip
    with pytest.raises(NotCold, match="1 blocks were found"):
        require_cold(
            "x", before=before, after=after, needed_tokens=64, computed_tokens=64, own_hits=1
        )  # fmt: skip
    with pytest.raises(NotCold, match="63 of 64"):
        require_cold("x", before=before, after=before, needed_tokens=64, computed_tokens=63)


@given(
    seed=st.integers(0, 10**6),
    tokens=st.integers(1, 5000),
    wanted=st.integers(1, 3000),
    ranges=st.integers(1, 9),
)
def test_evidence_is_disjoint_and_as_long_as_wanted(
    seed: int, tokens: int, wanted: int, ranges: int
) -> None:
    spans = scattered(random.Random(seed), tokens, wanted, ranges)
    assert sum(last - first for first, last in spans) == min(wanted, tokens)
    ordered = sorted(spans)
    assert ordered[0][0] >= 0
    assert ordered[-1][1] <= tokens
    assert all(a[1] <= b[0] for a, b in zip(ordered, ordered[1:], strict=False))
    assert all(first < last for first, last in spans)


def test_lengths_are_whole_blocks() -> None:
    assert [whole_blocks(n, 512) for n in (100, 512, 4096, 5000)] == [100, 512, 4096, 4608]
    assert blocks_touched(((0, 4), (4, 8), (8, 10)), [(3, 5), (8, 10)]) == [[0, 1], [2]]


def test_what_has_no_room_names_the_budget(engine: Engine) -> None:
    held = engine.counters.pages_total * 64
    require_room(engine, (held - 64,))
    with pytest.raises(EvalError, match="--kv-budget") as error:
        require_room(engine, (512, 10 * held))
    needed = (10 * held // 64 + 1) * engine.kv_page_bytes / 1e6
    assert f"needs {needed:,.0f} MB" in error.value.message


def test_what_has_no_memory_is_refused(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    class Memory:
        available = 1_500_000

    monkeypatch.setattr(ttft_module.psutil, "virtual_memory", Memory)
    require_room(engine, (1024,))
    with pytest.raises(EvalError, match="1 MB of memory are free"):
        require_room(engine, (8192,))


def test_dense_attention_is_chosen_in_what_is_computed_with(tiny_llama: Path) -> None:
    # Pages in FP8 had it timed in float32, which the fastest kernels do not take.
    config = EngineConfig(
        model=tiny_llama,
        precision="bfloat16",
        block_tokens=BLOCK,
        kv_budget=8 << 20,
        kv_format="fp8_token_head",
    )
    engine = Engine.open(config)
    try:
        assert choose(engine, 64).dtype == "torch.bfloat16"
    finally:
        engine.close()


def test_figures_and_medians_of_a_run(engine: Engine, pieces: tuple[str, ...]) -> None:
    steps: list[str] = []
    rounds, results = measure(engine, PLAN, pieces, steps.append)
    assert steps[0] == "making documents"
    assert [one["round"] for one in rounds] == [1, 2]
    for one in rounds:
        figures = one["figures"]
        assert isinstance(figures, list)
        assert [figure["tokens"] for figure in figures] == [512, 1024]
        for figure in figures:
            assert figure["warm"]["ttft_warm_ms"] > 0
            assert (
                figure["cold"]["ttft_grounded_ms"]
                > 1e3 * figure["tokens"] / (figure["cold"]["read_tokens_per_s"])
            )
        assert figures[0]["dense_cold"] is not None
        assert figures[1]["dense_cold"] is None
    forget(engine)
    cold, dense = results["cold"], results["dense_cold"]
    assert isinstance(cold, list)
    assert isinstance(dense, list)
    assert [row["tokens"] for row in cold] == [512, 1024]
    assert [row["tokens"] for row in dense] == [512]
    json.dumps([rounds, results])
    attention = results["dense_attention"]
    assert isinstance(attention, dict)
    assert attention["used"] == "tiled"
    assert attention["layer_ms"].keys() == {"tiled", "sdpa"}
    text = render(*ttft_tables(results))
    assert "ttft_grounded" in text
    cold_part, warm_part = text.split("warm, ms", 1)
    assert "ttft_warm" not in cold_part
    assert "ttft_any" not in warm_part.split("dense reading")[0]


def test_ratios_are_taken_in_the_round_and_bounds_are_labelled() -> None:
    def figures(grounded: float, dense: float, asked: float | None) -> Figures:
        return Figures(1024, 10.0, 64, grounded, grounded, 5.0, WholeRead(dense, asked, asked))

    rounds = [[figures(100, 900, None)], [figures(200, 400, None)], [figures(400, 4400, None)]]
    ratios = summarise(rounds)["ratios"]
    # 9, 2 and 11: the ratio of the medians would be 900 / 200 = 4.5.
    assert ratios == [
        {
            "tokens": 1024,
            "lower_bound": True,
            "dense_to_grounded": 9.0,
            "dense_to_any": 90.0,
            "dense_warm_to_warm": None,
        }
    ]
    text = render(*ttft_tables(summarise(rounds)))
    assert "≥ 900" in text
    assert "≥ 9.0" in text
    asked = summarise([[figures(100, 900, 1000.0)]])
    assert asked["dense_warm"] == [{"tokens": 1024, "ttft_warm_ms": 1000.0}]
    assert "≥ " not in render(*ttft_tables(asked)).split("window is too short to ask)")[1]


def bench(*arguments: str) -> tuple[int, str, str]:
    from app.cli import build

    result = CliRunner().invoke(build(), ["bench", *arguments], catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def options(tiny_llama: Path) -> list[str]:
    return ["--model", str(tiny_llama), "--device", "cpu", "--precision", "float32",
            "--block-tokens", "512", "--kv-budget", "32", "--evidence", "200"]  # fmt: skip


def test_the_command_prints_one_object_and_writes_it(tiny_llama: Path, tmp_path: Path) -> None:
    out = tmp_path / "records" / "ttft.json"
    code, stdout, _ = bench("ttft", "--lengths", "1K", "--rounds", "2", "--json", "--out", str(out),
                            *options(tiny_llama))  # fmt: skip
    assert code == 0
    record = json.loads(stdout)
    assert record == json.loads(out.read_text("utf-8"))
    assert record["bench"] == "ttft"
    assert {"environment", "config", "rounds", "results", "command"} <= record.keys()
    assert record["config"]["engine"]["block_tokens"] == 512
    assert len(record["rounds"]) == 2
    assert record["results"]["cold"][0]["tokens"] == 1024


def test_a_run_that_was_not_cold_fails(tiny_llama: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(engine: Engine, plan: TtftPlan, pieces: tuple[str, ...]) -> list[object]:
        first, *others = make_sets(engine, plan, pieces)
        same = others[0]
        # Read before and never forgotten, under another name.
        engine.read(replace(same.whole, name="before").as_read(engine)).wait()
        return [first, *others]

    monkeypatch.setattr(ttft_module, "make_sets", repeated)
    code, stdout, stderr = bench("ttft", "--lengths", "1K", "--rounds", "1", "--json",
                                 *options(tiny_llama))  # fmt: skip
    assert code == 1
    assert json.loads(stdout)["error"]["code"] == "not_cold"
    assert "no cold measurement" in stderr


def test_bad_input_ends_with_two(tiny_llama: Path, tmp_path: Path) -> None:
    for arguments in (
        ["--lengths", "4X"],
        ["--lengths", "512K"],
        ["--text", str(tmp_path / "missing.txt")],
    ):
        code, _, stderr = bench("ttft", *arguments, *options(tiny_llama))
        assert code == 2, arguments
        assert stderr.strip().splitlines()[-1].startswith("fineprint: ")
