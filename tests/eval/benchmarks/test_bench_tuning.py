"""`bench kernels --tune`: what is tried and what of it goes into the card's table.

The kernels' own candidates run in a process of their own, under Triton's interpreter, on tiny
inputs; on a GPU the test marked `gpu` tries some of them compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from triton.runtime.errors import OutOfResources
from typer.testing import CliRunner

from app.cli import build
from app.errors import BadParameter
from backend.errors import BackendError
from backend.ops.tuning import Card, Choice, find_entry, lookup, read_table, use_tables
from eval.benchmarks.kernels.case import SHAPES, Call, ModelShape, Setup
from eval.benchmarks.kernels.tuning import (
    block_attention,
    few_rows_linear,
    latent_block_attention,
    page_attention,
    row_ops,
    writing,
)
from eval.benchmarks.kernels.tuning.command import tune_card
from eval.benchmarks.kernels.tuning.loop import Tunable, tune

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
CPU = torch.device("cpu")
CARD = Card("Test Card 1", (7, 7))
SETUP = Setup(CPU, 0, (ModelShape("tiny", 2, 3, 64, 60, 1100), ModelShape("odd", 1, 1, 80, 50, 90)))
SIZES = block_attention.Sizes(large=(40, 24), small=(33, 1, 18))
WIDTHS = {row_ops.add_norms: [64], row_ops.gated_units: [128, 1024]}
LATENTS = latent_block_attention.Sizes(3, 24, 10, large=(20, 9), small=(17, 1))
X = torch.arange(1.0, 9.0)


@pytest.fixture(autouse=True)
def own_tables() -> Iterator[None]:
    yield
    lookup._own.clear()
    lookup._tables.cache_clear()
    find_entry.cache_clear()


def tunable(run: Callable[[Choice], torch.Tensor], *candidates: int) -> Tunable:
    return Tunable(
        "op", 64, ("bfloat16",), "an input", "TFLOP/s", 100.0,
        tuple({"size": size} for size in candidates), X, 1e-2, run, run,
    )  # fmt: skip


def paced(call: Call) -> float:
    """Milliseconds: as many as the first number that comes back says."""
    return float(call()[0])


def by_size(choice: Choice) -> torch.Tensor:
    """Right, and as slow as it is large."""
    return X * (1 + choice["size"] * 1e-4)


def clock_of(*ms: float) -> Callable[[Call], float]:
    left = list(ms)
    return lambda call: left.pop(0)


def test_the_fastest_right_candidate_is_chosen() -> None:
    def run(choice: Choice) -> torch.Tensor:
        if choice["size"] == 3:
            return X * 1.5
        if choice["size"] == 4:
            return X * float("nan")
        if choice["size"] == 5:
            raise OutOfResources(300_000, 101_376, "shared memory")
        if choice["size"] == 6:
            raise RuntimeError("PassManager::run failed\nand a trace")
        return by_size(choice)

    said: list[str] = []
    entry = tune(tunable(run, 1, 2, 3, 4, 5, 6, 7), clock_of(10, 4, 8), "test", said.append)
    assert entry.choice == {"size": 2}
    assert [attempt.speed for attempt in entry.attempts] == [10, 25, None, None, None, None, 12.5]
    problems = [attempt.problem for attempt in entry.attempts]
    assert problems[0] == problems[1] == problems[6] == ""
    assert problems[2].startswith("wrong: relative error 0.5")
    assert "nan" in problems[3] and "shared memory" in problems[4]
    assert problems[5] == "PassManager::run failed"
    assert len(said) == 7 and said[1] == "op, width 64, 2 of 7: {'size': 2}: 25 TFLOP/s"
    assert (entry.unit, entry.on, entry.source) == ("TFLOP/s", "an input", "test")


@pytest.mark.parametrize(("ms", "chosen"), [(9.95, 1), (9.5, 2)])
def test_what_is_in_use_stays_unless_another_is_clearly_faster(ms: float, chosen: int) -> None:
    entry = tune(tunable(by_size, 1, 2), clock_of(10, ms), "test")
    assert entry.choice == {"size": chosen}


def test_no_candidate_that_runs_is_a_failure_and_other_errors_are_not_caught() -> None:
    def fails(choice: Choice) -> torch.Tensor:
        raise RuntimeError("no kernel image")

    with pytest.raises(BackendError, match="No candidate of op at width 64 runs: no kernel image"):
        tune(tunable(fails, 1, 2), paced, "test")

    def lost(choice: Choice) -> torch.Tensor:
        raise torch.AcceleratorError("an illegal memory access was encountered")

    with pytest.raises(torch.AcceleratorError):
        tune(tunable(lost, 1), paced, "test")


def test_entries_go_into_the_cards_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    best = [2]

    def tunables(setup: Setup, dtype: torch.dtype) -> Iterator[Tunable]:
        assert (setup, dtype) == (SETUP, torch.bfloat16)
        for width in (64, 128):

            def run(choice: Choice) -> torch.Tensor:
                return X if choice["size"] == best[0] else X + 1

            yield replace(tunable(run, 1, 2, 3), width=width)

    monkeypatch.setattr(writing, "TUNABLES", {"op": tunables})
    monkeypatch.setattr(writing, "time_ms", lambda call, device: 10.0)
    folder = tmp_path / "made" / "here"
    path, entries = writing.tune_ops((), SETUP, CARD, folder, "test", lambda _: None)
    assert path == folder / "test-card-1.json"
    assert read_table(path).entries == entries
    assert [(entry.width, entry.choice["size"]) for entry in entries] == [(64, 2), (128, 2)]
    use_tables(folder)
    found = find_entry("op", 128, torch.bfloat16, CARD)
    assert found == entries[1]
    # Tuned again, it replaces what was there and keeps the rest.
    best[0] = 3
    _, again = writing.tune_ops(("op",), SETUP, CARD, folder, "test", lambda _: None)
    assert read_table(path).entries == again
    assert {entry.choice["size"] for entry in again} == {3}
    with pytest.raises(BadParameter, match="Nothing to tune of 'conv'; there are op"):
        writing.tune_ops(("op", "conv"), SETUP, CARD, folder, "test", lambda _: None)


def test_the_command_needs_a_gpu(tmp_path: Path) -> None:
    arguments = ["bench", "kernels", "--tune", "--device", "cpu", "--tables", str(tmp_path)]
    result = CliRunner().invoke(build(), arguments, catch_exceptions=False)
    assert result.exit_code == 2
    assert "--device cuda" in result.stderr
    assert not list(tmp_path.iterdir())


def test_every_op_with_candidates_keeps_what_is_in_use_first() -> None:
    setup = replace(SETUP, shapes=SHAPES["cuda"][1:])
    found = list(block_attention.tunables(setup, torch.float16, SIZES))
    # Both shapes have heads of 64; the Hopper kernel has no candidates off a Hopper.
    assert [(one.op, one.width) for one in found] == [("block_attention", 64)]
    assert found[0].candidates[0] == {"rows": 64, "keys": 32, "warps": 4, "stages": 2}
    assert len({tuple(choice.items()) for choice in found[0].candidates}) == 24
    assert "14/2 heads of 64, float16" in found[0].on
    assert found[0].dtypes == ("bfloat16", "float16")
    (latents,) = latent_block_attention.tunables(setup, torch.float16, LATENTS)
    assert (latents.op, latents.width) == ("latent_block_attention", 32)
    assert latents.candidates[0] == {"rows": 32, "keys": 32, "warps": 8, "stages": 1}
    assert "3 heads on latents of 24 and 10, float16" in latents.on
    assert not list(page_attention.warp_tunables(setup, torch.bfloat16))
    # Outputs of q/k/v, of both products of the stream, of gate and up: three powers of two.
    layers = list(few_rows_linear.tunables(SETUP, torch.float16, 1))
    assert [(one.op, one.width) for one in layers[::6]] == [
        ("few_rows_linear", 64), ("few_rows_linear", 1024), ("few_rows_linear", 4096)
    ]  # fmt: skip
    assert [one.op for one in layers[:6]] == [
        f"{name}_rows_linear" for name in ("few", "some", "many") for _ in range(2)
    ]
    assert [one.dtypes for one in layers[:2]] == [("bfloat16", "float16"), ("float8_e4m3fn",)]
    assert layers[3].candidates[0] == {"outputs": 32, "stages": 3}
    assert "tiny down 1100x60, 16 rows, weights in float8_e4m3fn" in layers[3].on
    assert not list(few_rows_linear.tunables(SETUP, torch.float16, 5000))


kernels = () if INTERPRETED else pytest.mark.gpu


@pytest.mark.parametrize("place", [pytest.param("here", marks=kernels)])
def test_candidates_run(place: str) -> None:
    device = CPU if INTERPRETED else torch.device("cuda")
    setup = replace(SETUP, device=device)
    for one in block_attention.tunables(setup, torch.float16, SIZES):
        compare(replace(one, candidates=(one.candidates[0], one.candidates[-1])))
    for one in latent_block_attention.tunables(setup, torch.float16, LATENTS):
        compare(replace(one, candidates=(one.candidates[0], one.candidates[-1])))
    for one in page_attention.tunables(setup, torch.float16, page_attention.Lists(2, 130)):
        assert len({tuple(choice.items()) for choice in one.candidates}) == 36
        compare(replace(one, candidates=(one.candidates[0], one.candidates[-1])))
    for one in page_attention.warp_tunables(setup, torch.bfloat16, page_attention.Lists(2, 130)):
        assert len({tuple(choice.items()) for choice in one.candidates}) in (18, 19)
        compare(replace(one, candidates=(one.candidates[0], one.candidates[-1])))
    odd = replace(setup, shapes=SETUP.shapes[1:])
    for one in few_rows_linear.tunables(odd, torch.float16, 200):
        assert len({tuple(choice.items()) for choice in one.candidates}) == 8
        compare(replace(one, candidates=(one.candidates[0], one.candidates[-1])))
    for make in (row_ops.add_norms, row_ops.gated_units):
        found = list(make(setup, torch.float16, 7))
        assert [one.width for one in found] == WIDTHS[make]
        for one in found:
            assert len({choice["warps"] for choice in one.candidates}) == 5
            compare(one)


def compare(few: Tunable) -> None:
    """All candidates are right; the last is the fastest."""
    count = len(few.candidates)
    entry = tune(few, clock_of(*range(count, 0, -1)), "test")
    assert [attempt.problem for attempt in entry.attempts] == [""] * count
    assert entry.choice == few.candidates[-1]
    assert entry.attempts[-1].speed == pytest.approx(few.work, rel=1e-4)


@pytest.mark.gpu
def test_the_command_writes_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def small(setup: Setup, dtype: torch.dtype) -> Iterator[Tunable]:
        for one in block_attention.tunables(replace(setup, shapes=SETUP.shapes), dtype, SIZES):
            yield replace(one, candidates=one.candidates[:3])

    monkeypatch.setattr(writing, "TUNABLES", {"block_attention": small})
    tune_card(torch.device("cuda"), (), tmp_path, 0, as_json=True, out=None)
    (path,) = tmp_path.glob("*.json")
    assert read_table(path).entries


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_candidates_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "candidates_run", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "1 passed" in done.stdout
