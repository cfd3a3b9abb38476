# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""A program has some outputs of all rows, and reads their weights once.

Each of its warps takes every fourth stretch of inputs through a tensor core, the weights as the
factor of which a core takes 16 lines and rows as that of 8. So four sums of an output grow side by
side, where one would wait for itself longer than for memory, and they are added at the end. Which
inputs belong to which sum does not depend on tiles or rows, and a row's sums know nothing of other
rows: neither changes a result.
Inputs are not split among programs: that would take a second kernel, and layers with fewer outputs
than would fill a GPU have few weights.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.few_rows_linear.tiles import PARTS, LinearTiles, stretch_of
from backend.ops.page_codec.codes import numbers_of
from backend.ops.page_codec.decode import native_fp8


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
    stretch = stretch_of(x.dtype)
    _rows_kernel[(triton.cdiv(outputs, tiles.outputs),)](
        x,
        weight if scale is None else weight.view(torch.uint8),
        out if scale is None else scale,
        out if bias is None else bias,
        out,
        rows,
        WIDTH=width,
        OUTPUTS=outputs,
        FP8=scale is not None,
        BIASED=bias is not None,
        NATIVE=native_fp8(x.device),
        ROWS=triton.next_power_of_2(rows),
        OUTS=tiles.outputs,
        PARTS=PARTS,
        INS=stretch,
        EVEN=width % (PARTS * stretch) == 0,
        num_warps=PARTS,
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
    PARTS: tl.constexpr,
    INS: tl.constexpr,
    EVEN: tl.constexpr,
):
    output = tl.program_id(0) * OUTS + tl.arange(0, OUTS)
    there = output < OUTPUTS
    # What is read for outputs that are not there is thrown away: so loads of weights need no mask.
    read = tl.minimum(output, OUTPUTS - 1)
    row = tl.arange(0, ROWS)
    real = row < rows
    column = (tl.arange(0, PARTS) * INS)[:, None] + tl.arange(0, INS)[None, :]
    weights = weight + read.to(tl.int64)[None, :, None] * WIDTH + column[:, None, :]
    given = x + row[None, :, None] * WIDTH + column[:, None, :]
    total = tl.zeros([PARTS, OUTS, ROWS], tl.float32)
    for first in range(0, WIDTH, PARTS * INS):
        if EVEN:
            some = tl.load(weights + first)
            asked = tl.load(given + first, mask=real[None, :, None], other=0.0)
        else:
            inside = (first + column < WIDTH)[:, None, :]
            some = tl.load(weights + first, mask=inside, other=0)
            asked = tl.load(given + first, mask=real[None, :, None] & inside, other=0.0)
        if FP8:
            # Exact in 16 bits too.
            some = numbers_of(some, True, NATIVE).to(x.dtype.element_ty)
        total = tl.dot(some, tl.permute(asked, (0, 2, 1)), total, input_precision="ieee")
    sums = tl.sum(total, 0)
    if FP8:
        sums *= tl.load(scale + read)[:, None]
    if BIASED:
        sums += tl.load(bias + read).to(tl.float32)[:, None]
    place = row.to(tl.int64)[None, :] * OUTPUTS + output[:, None]
    kept = there[:, None] & real[None, :]
    tl.store(out + place, sums.to(out.dtype.element_ty), mask=kept)
