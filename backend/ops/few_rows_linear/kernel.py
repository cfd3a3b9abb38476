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
    *,
    gated: bool,
) -> torch.Tensor:
    """See the package."""
    rows, width = x.shape
    outputs = len(weight)
    results = outputs // 2 if gated else outputs
    out = torch.empty((rows, results), dtype=x.dtype, device=x.device)
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
        GATED=gated,
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
    GATED: tl.constexpr,
    NATIVE: tl.constexpr,
    ROWS: tl.constexpr,
    OUTS: tl.constexpr,
    PARTS: tl.constexpr,
    INS: tl.constexpr,
    EVEN: tl.constexpr,
):
    # What is read for outputs that are not there is thrown away: so loads of weights need no mask.
    output = tl.minimum(tl.program_id(0) * OUTS + tl.arange(0, OUTS), OUTPUTS - 1)
    if GATED:
        # A gate, and beside it what it is for, which is in the other half.
        output = output // 2 + output % 2 * (OUTPUTS // 2)
    row = tl.arange(0, ROWS)
    real = row < rows
    column = (tl.arange(0, PARTS) * INS)[:, None] + tl.arange(0, INS)[None, :]
    weights = weight + output.to(tl.int64)[None, :, None] * WIDTH + column[:, None, :]
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
        sums *= tl.load(scale + output)[:, None]
    if BIASED:
        sums += tl.load(bias + output).to(tl.float32)[:, None]
    kind = out.dtype.element_ty
    if GATED:
        _store(out, _gated(sums.to(kind).to(tl.float32), OUTS, ROWS), rows, OUTPUTS // 2)
    else:
        _store(out, sums, rows, OUTPUTS)


@triton.jit
def _gated(sums, OUTS: tl.constexpr, ROWS: tl.constexpr):
    pairs = tl.permute(tl.reshape(sums, (OUTS // 2, 2, ROWS)), (0, 2, 1))
    gate, up = tl.split(pairs)
    return gate * tl.sigmoid(gate) * up


@triton.jit
def _store(out, results, rows, WIDTH: tl.constexpr):
    """A program's results, [results of a row, rows]."""
    result = tl.program_id(0) * results.shape[0] + tl.arange(0, results.shape[0])
    row = tl.arange(0, results.shape[1])
    place = row.to(tl.int64)[None, :] * WIDTH + result[:, None]
    kept = (result < WIDTH)[:, None] & (row < rows)[None, :]
    tl.store(out + place, results.to(out.dtype.element_ty), mask=kept)
