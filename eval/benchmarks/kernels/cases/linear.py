"""Linear layers in the engine's number formats against torch's product of the same weights.

The reference is the float32 product with the weights as they are stored, so that the error is that
of arithmetic and of quantised activations; int8 weights are drawn anew and their rounding counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch.nn import functional

from backend.layers.linear import DenseLinear, Fp8Linear, Int8Linear, Linear
from backend.layers.weight_only import Int4WeightLinear, Int8WeightLinear
from backend.models.decoder import WIDE_ROWS
from eval.benchmarks.kernels.case import (
    Case,
    Contender,
    ModelShape,
    Setup,
    copies_to_stream,
    size_of,
)
from eval.benchmarks.kernels.ceilings import has_fp8

_ROWS = {"cpu": (1, 4, 512), "cuda": (1, 32, 4096, 32768)}
_ODD_ROWS = (3, 15, 16, 111)
_GROUP = 32
_TOLERANCE = {"bfloat16": 1e-2, "int8": 3e-2, "fp8": 6e-2}
"""Of normal numbers with a scale per row: 1 to 2 percent in int8, 3 to 4 in e4m3."""


def cases(setup: Setup) -> Iterator[Case]:
    """See the package."""
    kind = setup.device.type
    for shape in setup.shapes:
        layers = {
            "q/k/v": (shape.hidden, (shape.heads + 2 * shape.kv_heads) * shape.head_dim),
            "gate/up": (shape.hidden, 2 * shape.intermediate),
            "down": (shape.intermediate, shape.hidden),
        }
        for name, (width, outputs) in layers.items():
            for rows in (*_ODD_ROWS, *_ROWS[kind]):
                timed = rows in _ROWS[kind]
                yield from _cases(setup, shape, f"{name} {width}x{outputs}", rows, width, outputs,
                                  timed=timed)  # fmt: skip


def _cases(
    setup: Setup,
    shape: ModelShape,
    name: str,
    rows: int,
    width: int,
    outputs: int,
    *,
    timed: bool,
) -> Iterator[Case]:
    generator = setup.generator(rows, width, outputs)
    x = setup.normal(generator, rows, width, dtype=torch.bfloat16)
    flops = 2.0 * rows * width * outputs
    label = f"{shape.name} {name}, {rows:,} rows"

    few = timed and rows < WIDE_ROWS

    def contender(
        layer: str, make: Callable[[], Linear], moved: int, gemm: str, *, peer: bool = False
    ) -> Contender:
        """With few rows the weights are the work, and come from memory."""
        count = copies_to_stream(setup, moved) if few else 0
        calls = [partial(make(), x) for _ in range(1 + count)]
        return Contender(layer, calls[0], moved, gemm, peer, tuple(calls[1:]))

    def case(weight: torch.Tensor, made: list[Contender], dtype: str, tolerance: float) -> Case:
        def plain() -> Linear:
            copied = weight.to(torch.bfloat16, copy=True)
            return lambda x: functional.linear(x, copied)

        peer = contender("torch bf16", plain, moved + 2 * weight.numel(), "bfloat16", peer=True)
        exact = weight.float()
        return Case(
            "linear", label, dtype, lambda: functional.linear(x.float(), exact),
            (*made, peer), flops, tolerance, timed,
        )  # fmt: skip

    weight = setup.normal(generator, outputs, width, dtype=torch.bfloat16) * width**-0.5
    moved, full = size_of(x) + 2 * rows * outputs, weight.float()
    dense = contender(
        "dense", lambda: DenseLinear(weight.clone()), moved + size_of(weight), "bfloat16"
    )
    yield case(weight, [dense], "bfloat16", _TOLERANCE["bfloat16"])
    if setup.device.type == "cuda" and has_fp8(setup.device) and Fp8Linear.takes(weight):
        eight = contender("fp8", lambda: Fp8Linear(weight.clone()), moved + weight.numel(), "fp8")
        yield case(weight, [eight], "fp8", _TOLERANCE["fp8"])
    if setup.device.type == "cpu":
        stored = moved + weight.numel()
        made = [
            contender("int8", lambda: Int8Linear(full), stored, "int8"),
            contender("int8 weights", lambda: Int8WeightLinear(full), stored, "bfloat16"),
        ]
        yield case(weight, made, "int8", _TOLERANCE["int8"])
        codes, scales, weight4 = _four_bits(setup, generator, outputs, width)
        half = moved + weight.numel() // 2 + size_of(scales) // 2
        four = contender("int4 weights", lambda: Int4WeightLinear(codes, scales), half, "bfloat16")
        yield case(weight4, [four], "int4", _TOLERANCE["bfloat16"])


def _four_bits(
    setup: Setup, generator: torch.Generator, outputs: int, width: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes, scales and the weights that they stand for."""
    codes = torch.randint(
        0, 16, (outputs, width), generator=generator, device=setup.device, dtype=torch.int32
    )
    size = (width // _GROUP, outputs)
    step = (setup.normal(generator, *size, dtype=torch.float32).abs() + 0.5) * width**-0.5 / 5
    middle = setup.normal(generator, *size, dtype=torch.float32) * width**-0.5 / 5
    step, middle = (part.to(torch.bfloat16).float() for part in (step, middle))
    spread = [part.t().repeat_interleave(_GROUP, 1) for part in (step, middle)]
    weight = (codes - 8) * spread[0] + spread[1]
    return codes, torch.stack((step, middle), -1), weight
