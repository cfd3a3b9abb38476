"""`bench kernels`: the registry, right before fast, shares of ceilings, the real cases on odd
shapes."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from app.errors import BadParameter
from backend.ops import prefix_attention as prefix_op
from eval.benchmarks.kernels import case as case_module
from eval.benchmarks.kernels import ceilings as ceilings_module
from eval.benchmarks.kernels import comparison
from eval.benchmarks.kernels.case import (
    SHAPES,
    Case,
    Contender,
    ModelShape,
    Setup,
    copies_to_stream,
)
from eval.benchmarks.kernels.cases import prefix_attention as prefix_cases
from eval.benchmarks.kernels.ceilings import measure_ceilings
from eval.benchmarks.kernels.clock import time_ms
from eval.benchmarks.kernels.comparison import Result, compare, measure, summarise
from eval.benchmarks.kernels.registry import find_ops, op_names
from eval.benchmarks.kernels.tables import kernel_tables
from eval.benchmarks.tables import render

CPU = torch.device("cpu")
SMALL = ModelShape("small", 2, 3, 64, 128, 192)
LIMITS = {
    "gemm_float32_gflops": 1e3,
    "gemm_bfloat16_gflops": 2e3,
    "gemm_int8_gflops": 4e3,
    "read_gbytes_per_s": 20.0,
}
X = torch.arange(1.0, 101.0)


@pytest.fixture(autouse=True)
def few_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs of a few kilobytes would be copied hundreds of times."""
    monkeypatch.setattr(case_module, "STREAM_BYTES", 256 << 10)


def peer_that_refuses() -> torch.Tensor:
    raise RuntimeError("no kernel for this\nand a trace")


def make_case(*contenders: Contender, timed: bool = True) -> Case:
    return Case("op", "100", "float32", X.clone, contenders, 1e6, 1e-3, timed)


def contender(name: str, factor: float, *, peer: bool = False) -> Contender:
    return Contender(name, lambda: X * factor, 4e5, "float32", peer)


def test_every_file_of_cases_is_found() -> None:
    folder = Path(prefix_cases.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert set(op_names()) == files
    assert {"prefix_attention", "decode_attention", "linear"} <= files
    assert list(find_ops(("linear",))) == ["linear"]
    with pytest.raises(BadParameter, match="No cases for an op 'conv'"):
        find_ops(("conv",))


def test_a_wrong_kernel_is_never_timed() -> None:
    results = compare(
        make_case(contender("good", 1.0), contender("bad", 1.01), contender("nan", float("nan"))),
        CPU,
        LIMITS,
    )
    assert [one.status for one in results] == ["measured", "wrong", "wrong"]
    good, bad, nan = results
    assert good.relative_error == 0.0
    assert bad.relative_error == pytest.approx(0.01, rel=1e-3)
    assert bad.max_error == pytest.approx(1.0, rel=1e-3)
    assert bad.ms is None
    assert nan.gflops is None


def test_shares_are_of_the_measured_ceilings() -> None:
    found = compare(make_case(contender("good", 1.0)), CPU, LIMITS)[0]
    assert found.ms is not None
    assert found.gflops == pytest.approx(1e6 / found.ms / 1e6)
    assert found.gflops is not None
    assert found.gflops_share == pytest.approx(found.gflops / 1e3)
    assert found.gbytes_per_s == pytest.approx(4e5 / found.ms / 1e6)
    assert found.gbytes_share == pytest.approx(4e5 / found.ms / 1e6 / 20)


def test_a_peer_may_refuse_and_ours_may_not() -> None:
    absent = Contender("peer", peer_that_refuses, 1.0, "float32", peer=True)
    found = compare(make_case(absent), CPU, LIMITS)[0]
    assert (found.status, found.why) == ("unavailable", "no kernel for this")
    with pytest.raises(RuntimeError, match="no kernel"):
        compare(make_case(Contender("ours", peer_that_refuses, 1.0, "float32")), CPU, LIMITS)


def test_a_row_of_calls_is_timed_by_the_call() -> None:
    calls: list[int] = []

    def call(number: int) -> None:
        calls.append(number)
        time.sleep(0.004)

    others = [partial(call, number) for number in range(1, 4)]
    ms = time_ms(partial(call, 0), CPU, others)
    assert 4 <= ms < 16
    assert calls[:8] == [0, 1, 2, 3, 0, 1, 2, 3]


def test_inputs_to_stream_are_more_than_the_cache_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_module, "STREAM_BYTES", 96 << 20)
    setup = Setup(CPU, 1, (SMALL,))
    assert copies_to_stream(setup, 1 << 20) == 96
    assert copies_to_stream(setup, 1) == 400
    on_gpu = Setup(torch.device("cuda"), 1, (SMALL,))
    assert copies_to_stream(on_gpu, 1 << 20) == 0


def test_odd_shapes_are_compared_only() -> None:
    found = compare(make_case(contender("good", 1.0), timed=False), CPU, LIMITS)[0]
    assert (found.status, found.ms) == ("compared", None)


def test_medians_of_speed_and_the_worst_of_errors() -> None:
    def result(ms: float | None, error: float, status: str = "measured") -> Result:
        return Result("op", "s", "f", "k", False, status, error, error, ms)  # type: ignore[arg-type]

    limits = [{"a": 1.0}, {"a": 5.0}, {"a": 2.0}]
    good = summarise(limits, [[result(3, 0.1)], [result(9, 0.3)], [result(4, 0.2)]])
    assert good["ceilings"] == {"a": 2.0}
    assert good["wrong"] == []
    kernels = good["kernels"]
    assert isinstance(kernels, list)
    assert (kernels[0]["ms"], kernels[0]["relative_error"]) == (4, 0.3)
    bad = summarise(limits[:2], [[result(3, 0.1)], [result(None, 0.3, "wrong")]])
    assert bad["wrong"] == ["op k, s"]


def test_flops_count_what_is_not_masked() -> None:
    case = next(prefix_cases.cases(Setup(CPU, 1, (SMALL,))))
    # One token on 1,000: it sees 1,001 keys; two products of 2 x 64 operations, six heads.
    assert case.flops == 4 * 64 * 6 * 1001
    dense = prefix_cases._case(Setup(CPU, 1, (SMALL,)), SMALL, torch.float32, 5, 2, timed=False)
    mask = torch.ones(5, 7, dtype=torch.bool).tril(2)
    assert dense.flops == 4 * 64 * 6 * int(mask.sum())


@pytest.mark.parametrize("op", ["prefix_attention", "decode_attention", "linear"])
def test_ours_agree_with_the_reference_on_odd_shapes(op: str) -> None:
    setup = Setup(CPU, 7, (SMALL,))
    compared = 0
    for case in find_ops((op,))[op](setup):
        if case.timed:
            continue
        for found in compare(case, CPU, LIMITS):
            assert found.peer or found.status == "compared", found
            compared += 1
    assert compared >= 6


@pytest.mark.parametrize("op", ["prefix_attention", "decode_attention", "linear"])
def test_peers_compute_the_same(op: str) -> None:
    # The smallest timed case of each number format: what is not the same can't be a peer.
    seen = set()
    for case in find_ops((op,))[op](Setup(CPU, 3, (SMALL,))):
        if not case.timed or case.flops > 2e8 or case.dtype in seen:
            continue
        seen.add(case.dtype)
        statuses = {one.name: one.status for one in compare(case, CPU, LIMITS) if one.peer}
        assert statuses
        assert "wrong" not in statuses.values()
    assert seen


def test_inputs_differ_from_round_to_round_and_repeat_with_a_seed() -> None:
    def first(seed: int) -> torch.Tensor:
        return next(prefix_cases.cases(Setup(CPU, seed, (SMALL,)))).reference()

    assert torch.equal(first(1), first(1))
    assert not torch.equal(first(1), first(2))


def test_ceilings_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ceilings_module._GEMM_SIDE, "cpu", 256)
    monkeypatch.setitem(ceilings_module._MEMORY_BYTES, "cpu", 1 << 20)
    found = measure_ceilings(Setup(CPU, 1, (SMALL,)))
    assert found.keys() >= LIMITS.keys() | {"copy_gbytes_per_s"}
    assert all(value > 0 for value in found.values())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small shapes, few cases, given ceilings."""
    monkeypatch.setitem(SHAPES, "cpu", (SMALL,))
    monkeypatch.setitem(prefix_cases._TIMED, "cpu", ((32, 8),))
    monkeypatch.setattr(comparison, "measure_ceilings", lambda setup: dict(LIMITS))


def run(*arguments: str) -> tuple[int, str, str]:
    from app.cli import build

    result = CliRunner().invoke(
        build(), ["bench", "kernels", "--device", "cpu", *arguments], catch_exceptions=False
    )
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_a_record(quick: None, tmp_path: Path) -> None:
    out = tmp_path / "kernels.json"
    code, stdout, _ = run("--op", "prefix_attention", "--rounds", "2", "--json", "--out", str(out))
    assert code == 0
    record = json.loads(stdout)
    assert record == json.loads(out.read_text("utf-8"))
    assert record["config"]["ops"] == ["prefix_attention"]
    assert [one["round"] for one in record["rounds"]] == [1, 2]
    rows = record["results"]["kernels"]
    timed = {row["name"] for row in rows if row["status"] == "measured"}
    assert timed == {"tiled", "fused", "sdpa math", "sdpa flash"}
    text = render(*kernel_tables(record["results"]))
    assert "× best peer" in text
    assert "agrees" in text


def test_a_kernel_that_disagrees_fails_the_command(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return prefix_op.fused.prefix_attention(q, k, v) * 1.1

    monkeypatch.setattr(prefix_op.tiled, "prefix_attention", broken)
    code, stdout, stderr = run("--op", "prefix_attention", "--rounds", "1")
    assert code == 1
    assert "WRONG" in stdout
    assert "prefix_attention tiled" in stderr


def test_an_unknown_op_is_bad_input(quick: None) -> None:
    code, _, stderr = run("--op", "conv")
    assert code == 2
    assert "page_attention, page_codec, page_score, prefix_attention" in stderr


def test_every_round_has_new_inputs(quick: None) -> None:
    seeds: list[int] = []

    def cases(setup: Setup) -> Iterator[Case]:
        seeds.append(setup.seed)
        yield make_case(contender("good", 1.0))

    rounds, _ = measure({"op": cases}, CPU, (SMALL,), rounds=3, seed=4)
    assert len(rounds) == 3
    assert len(set(seeds)) == 3
