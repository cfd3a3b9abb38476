# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""A program has some outputs of all rows, and reads their weights once.

A tensor core takes sixteen rows, whose sums know nothing of one another, and every output's sum
goes through the inputs in order. So neither rows nor tiles change a result.
Inputs are not split among programs: that would take a second kernel, and layers with fewer outputs
than would fill a GPU have few weights.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.few_rows_linear.tiles import LinearTiles
from backend.ops.page_codec.codes import numbers_of
from backend.ops.page_codec.decode import native_fp8

_LEAST_ROWS = 1
"""Of a tile; the compiler fills a tensor core's up, and what is loaded early takes less room."""
_ALONE_INPUTS = 512
"""Inputs at a time of a row by itself: in e4m3 a load of 16 bytes for each thread of a warp."""


def few_rows_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor | None,
    bias: torch.Tensor | None,
    tiles: LinearTiles,
) -> torch.Tensor:
    """See the package."""
    rows, width = x.shape
    outputs = len(weight)
    out = torch.empty((rows, outputs), dtype=x.dtype, device=x.device)
    given = (
        x,
        weight if scale is None else weight.view(torch.uint8),
        out if scale is None else scale,
        out if bias is None else bias,
        out,
    )
    shape = {
        "WIDTH": width,
        "OUTPUTS": outputs,
        "FP8": scale is not None,
        "BIASED": bias is not None,
        "NATIVE": native_fp8(x.device),
    }
    if rows == 1 and tiles.alone:
        _row_kernel[(triton.cdiv(outputs, tiles.alone),)](
            *given, **shape, OUTS=tiles.alone, INS=_ALONE_INPUTS, STAGES=tiles.stages
        )
        return out
    _rows_kernel[(triton.cdiv(outputs, tiles.outputs),)](
        *given,
        rows,
        **shape,
        ROWS=max(triton.next_power_of_2(rows), _LEAST_ROWS),
        OUTS=tiles.outputs,
        INS=tiles.inputs,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return out


@triton.jit(do_not_specialize=["rows"])
def _rows_kernel(
    x,
    weight,
    scale,
    bias,
    out,
    rows,
    WIDTH: tl.constexpr,
    OUTPUTS: tl.constexpr,
    FP8: tl.constexpr,
    BIASED: tl.constexpr,
    NATIVE: tl.constexpr,
    ROWS: tl.constexpr,
    OUTS: tl.constexpr,
    INS: tl.constexpr,
):
    output = tl.program_id(0) * OUTS + tl.arange(0, OUTS)
    there = output < OUTPUTS
    row = tl.arange(0, ROWS)
    real = row < rows
    column = tl.arange(0, INS)
    weights = weight + output.to(tl.int64)[:, None] * WIDTH
    given = x + row[:, None] * WIDTH
    total = tl.zeros([ROWS, OUTS], tl.float32)
    for first in range(0, WIDTH, INS):
        place = first + column
        inside = (place < WIDTH)[None, :]
        some = tl.load(weights + place[None, :], mask=there[:, None] & inside, other=0)
        asked = tl.load(given + place[None, :], mask=real[:, None] & inside, other=0.0)
        if FP8:
            # Exact in 16 bits too.
            some = numbers_of(some, True, NATIVE).to(x.dtype.element_ty)
        total = tl.dot(asked, tl.trans(some), total, input_precision="ieee")
    if FP8:
        total *= tl.load(scale + output, mask=there, other=0.0)[None, :]
    if BIASED:
        total += tl.load(bias + output, mask=there, other=0.0).to(tl.float32)[None, :]
    line = row.to(tl.int64)[:, None] * OUTPUTS + output[None, :]
    kept = real[:, None] & there[None, :]
    tl.store(out + line, total.to(out.dtype.element_ty), mask=kept)


@triton.jit
def _row_kernel(
    x,
    weight,
    scale,
    bias,
    out,
    WIDTH: tl.constexpr,
    OUTPUTS: tl.constexpr,
    FP8: tl.constexpr,
    BIASED: tl.constexpr,
    NATIVE: tl.constexpr,
    OUTS: tl.constexpr,
    INS: tl.constexpr,
    STAGES: tl.constexpr,
):
    output = tl.program_id(0) * OUTS + tl.arange(0, OUTS)
    there = output < OUTPUTS
    column = tl.arange(0, INS)
    weights = weight + output.to(tl.int64)[:, None] * WIDTH
    sums = tl.zeros([OUTS, INS], tl.float32)
    # Loads that no tensor core waits for are begun early only where the loop says so.
    for first in tl.range(0, WIDTH, INS, num_stages=STAGES):
        place = first + column
        inside = place < WIDTH
        some = tl.load(weights + place[None, :], mask=there[:, None] & inside[None, :], other=0)
        asked = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        number = numbers_of(some, True, NATIVE) if FP8 else some.to(tl.float32)
        sums += number * asked[None, :]
    total = tl.sum(sums, 1)
    if FP8:
        total *= tl.load(scale + output, mask=there, other=0.0)
    if BIASED:
        total += tl.load(bias + output, mask=there, other=0.0).to(tl.float32)
    tl.store(out + output, total.to(out.dtype.element_ty), mask=there)
