"""Candidates of the product for a few rows, with weights in 16 bits and in e4m3. Bound by memory.
None changes a result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from itertools import product

import torch

from backend.ops.few_rows_linear import LinearTiles, choose_linear_tiles, few_rows_linear
from backend.ops.few_rows_linear.tiles import FEWEST_ROWS, padded_outputs, table_of
from backend.ops.row_quantise import row_quantise
from backend.ops.tuning import Choice
from eval.benchmarks.kernels.case import Setup, name_of, size_of
from eval.benchmarks.kernels.cases.few_rows_linear import layers_of
from eval.benchmarks.kernels.tuning.loop import Tunable, dtypes_of

_ROWS = (1, 16, 32)
_ODD = (3, 111, 70)
"""Rows, inputs and outputs of what is compared."""
_LEAST_OUTPUTS = 4096
"""Weights of narrower layers are read in a few microseconds, whatever the tiles."""
_TOLERANCE = 1e-2

_Layer = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


def tunables(
    setup: Setup, dtype: torch.dtype, least_outputs: int = _LEAST_OUTPUTS
) -> Iterator[Tunable]:
    """One for each padded number of outputs of the first shape's layers, few, some and many rows,
    and format of the weights; rows are of `dtype`."""
    shape = setup.shapes[0]
    widths: dict[int, tuple[str, int, int]] = {}
    for name, width, outputs in layers_of(shape):
        if outputs >= least_outputs:
            widths[padded_outputs(outputs)] = f"{shape.name} {name}", width, outputs
    for padded, (name, width, outputs) in sorted(widths.items()):
        for rows, fp8 in product(_ROWS, (False, True)):
            if fp8 and name.endswith("head"):
                # It is never in FP8.
                continue
            large = _layer(setup, dtype, rows, width, outputs, fp8=fp8)
            small = _layer(setup, dtype, *_ODD, fp8=fp8)
            yield _tunable(setup, f"{name} {width}x{outputs}, {rows} rows", padded, small, large)


def _tunable(setup: Setup, on: str, padded: int, small: _Layer, large: _Layer) -> Tunable:
    x, weight, scale = large
    in_use = choose_linear_tiles(len(x), len(weight), weight.dtype, setup.device)
    return Tunable(
        op=table_of(len(x)),
        width=padded,
        dtypes=dtypes_of(weight.dtype),
        on=f"{on}, weights in {name_of(weight.dtype)}",
        unit="GB/s",
        work=(size_of(weight) if scale is None else size_of(weight, scale)) / 1e6,
        candidates=_candidates(in_use, len(x)),
        expected=few_rows_linear(*small, impl="reference"),
        tolerance=_TOLERANCE,
        small=partial(_run, small),
        large=partial(_run, large),
    )


def _candidates(in_use: LinearTiles, rows: int) -> tuple[Choice, ...]:
    """Some rows are read once a program, so that it has more outputs to read them for."""
    outputs = (16, 32) if rows <= FEWEST_ROWS else (32, 64)
    made = [LinearTiles(size, stages) for size, stages in product(outputs, (5, 4, 3, 2))]
    return tuple(asdict(one) for one in dict.fromkeys((in_use, *made)))


def _layer(
    setup: Setup, dtype: torch.dtype, rows: int, width: int, outputs: int, *, fp8: bool
) -> _Layer:
    generator = setup.generator(rows, width, outputs)
    x = setup.normal(generator, rows, width, dtype=dtype)
    weight = setup.normal(generator, outputs, width, dtype=dtype) * width**-0.5
    if not fp8:
        return x, weight, None
    values, scale = row_quantise(weight, impl="reference")
    return x, values, scale.flatten()


def _run(layer: _Layer, choice: Choice) -> torch.Tensor:
    return few_rows_linear(*layer, impl="triton", tiles=LinearTiles(**choice))
