"""Cases of linear layers for a few rows: the layers of a decoder, and the same work for all."""

from __future__ import annotations

from functools import partial
from typing import cast

import pytest
import torch

from eval.benchmarks.kernels.case import SHAPES, Contender, ModelShape, Setup
from eval.benchmarks.kernels.cases import few_rows_linear
from eval.benchmarks.kernels.cases.few_rows_linear import layers_of
from eval.benchmarks.kernels.registry import find_ops

CPU = torch.device("cpu")
SMALL = ModelShape("small", 2, 3, 64, 128, 192)


def test_without_a_gpu_there_is_no_case() -> None:
    (make,) = find_ops(("few_rows_linear",)).values()
    assert list(make(Setup(CPU, 1, (SMALL,)))) == []


def test_layers_are_those_of_the_decoder() -> None:
    weights = {name: (width, outputs) for name, width, outputs in layers_of(SHAPES["cuda"][0])}
    assert weights == {
        "q/k/v": (4096, 6144),
        "out": (4096, 4096),
        "gate/up": (4096, 28_672),
        "down": (14_336, 4096),
        "head": (4096, 128_256),
    }
    assert [name for name, _, _ in layers_of(SMALL)] == ["q/k/v", "out", "gate/up", "down"]


@pytest.mark.parametrize("rows", [1, 3, 17])
def test_contenders_do_the_same_work(rows: int) -> None:
    setup = Setup(CPU, 3, (SMALL,))
    found = list(few_rows_linear._cases(setup, "q/k/v", rows, 128, 640, timed=False))
    assert [(case.dtype, len(case.contenders)) for case in found] == [
        ("bfloat16", 2), ("fp8", 1), ("fp8", 1)
    ]  # fmt: skip
    moved: dict[str, set[float]] = {}
    for case in found:
        expected = case.reference().float()
        for one in case.contenders:
            out = one.call() if one.peer else by_reference(one)
            off = (out.float() - expected).norm() / expected.norm()
            assert off < case.tolerance, one.name
            moved.setdefault(one.name, set()).add(one.bytes)
    beside = 2 * rows * (128 + 640)
    assert moved == {
        "bf16": {beside + 2 * 128 * 640},
        "torch bf16": {beside + 2 * 128 * 640},
        "fp8 weights": {beside + 128 * 640 + 4 * 640},
    }


def by_reference(contender: Contender) -> torch.Tensor:
    call = cast("partial[torch.Tensor]", contender.call)
    assert call.keywords["impl"] == "triton"
    found: torch.Tensor = call.func(*call.args, impl="reference")
    return found
