"""Linear layers at the few rows of a step of decoding, against torch's product and, in FP8, the one
that quantises its rows on the way.

Weights are what is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn import functional

from backend.layers.linear import Fp8Linear
from backend.ops.few_rows_linear import few_rows_linear
from backend.ops.row_quantise import row_quantise
from eval.benchmarks.kernels.case import Call, Case, Contender, ModelShape, Setup, size_of
from eval.benchmarks.kernels.ceilings import has_fp8

_ROWS, _ODD_ROWS = (1, 4, 16), (3, 17)
_TOLERANCE, _QUANTISED_TOLERANCE = 1e-2, 6e-2


def cases(setup: Setup) -> Iterator[Case]:
    """See the package. On a CPU there is no kernel, so no case."""
    if setup.device.type != "cuda":
        return
    for shape in setup.shapes:
        for name, width, outputs in layers_of(shape):
            for rows in (*_ODD_ROWS, *_ROWS):
                if rows in _ROWS or name == "q/k/v":
                    label = f"{shape.name} {name} {width}x{outputs}, {rows} rows"
                    yield from _cases(setup, label, rows, width, outputs, timed=rows in _ROWS)


def layers_of(shape: ModelShape) -> Iterator[tuple[str, int, int]]:
    """(name, inputs, outputs) of the linear layers, as the decoder joins them."""
    read = shape.heads * shape.head_dim
    yield "q/k/v", shape.hidden, read + 2 * shape.kv_heads * shape.head_dim
    yield "out", read, shape.hidden
    yield "gate/up", shape.hidden, 2 * shape.intermediate
    yield "down", shape.intermediate, shape.hidden
    if shape.vocab:
        yield "head", shape.hidden, shape.vocab


def _cases(
    setup: Setup, label: str, rows: int, width: int, outputs: int, *, timed: bool
) -> Iterator[Case]:
    generator = setup.generator(rows, width, outputs)
    x = setup.normal(generator, rows, width, dtype=torch.bfloat16)
    weight = setup.normal(generator, outputs, width, dtype=torch.bfloat16) * width**-0.5
    values, scale = row_quantise(weight, impl="reference")
    flat = scale.flatten()
    beside = size_of(x) + 2 * rows * outputs

    def contender(name: str, call: Call, moved: int, *, peer: bool = False) -> Contender:
        return Contender(name, call, beside + moved, "bfloat16", peer)

    def case(dtype: str, reference: Call, made: list[Contender], tolerance: float) -> Case:
        flops = 2.0 * rows * width * outputs
        return Case(
            "few_rows_linear", label, dtype, reference, tuple(made), flops, tolerance, timed
        )

    whole, packed = size_of(weight), size_of(values, scale)
    torch_bf16 = contender("torch bf16", partial(functional.linear, x, weight), whole, peer=True)
    exact = partial(few_rows_linear, x, weight, impl="reference")
    ours = contender("bf16", partial(few_rows_linear, x, weight, impl="triton"), whole)
    yield case("bfloat16", exact, [ours, torch_bf16], _TOLERANCE)
    exact = partial(few_rows_linear, x, values, flat, impl="reference")
    ours = contender(
        "fp8 weights", partial(few_rows_linear, x, values, flat, impl="triton"), packed
    )
    yield case("fp8", exact, [ours], _TOLERANCE)
    peers = [torch_bf16]
    if has_fp8(setup.device) and Fp8Linear.takes(weight):
        layer = Fp8Linear(weight)
        peers.append(contender("fp8, rows quantised", partial(layer, x), packed, peer=True))
    yield case("fp8", exact, peers, _QUANTISED_TOLERANCE)
