# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program a row, which is read once. `quantised` serves other kernels, too, whose rows are for
products in FP8."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_WARP_ELEMENTS = 1024


def row_quantise(x: torch.Tensor, largest: float) -> tuple[torch.Tensor, torch.Tensor]:
    """See the package."""
    rows, width = x.shape
    out = torch.empty(x.shape, dtype=torch.float8_e4m3fn, device=x.device)
    scale = torch.empty((rows, 1), dtype=torch.float32, device=x.device)
    padded = triton.next_power_of_2(width)
    _quantise_kernel[(rows,)](
        x,
        out,
        scale,
        LARGEST=largest,
        WIDTH=width,
        PADDED=padded,
        num_warps=min(max(padded // _WARP_ELEMENTS, 1), 16),
    )
    return out, scale


@triton.jit
def _quantise_kernel(
    x, out, scale, LARGEST: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, PADDED)
    inside = column < WIDTH
    exact = tl.load(x + row * WIDTH + column, mask=inside, other=0.0).to(tl.float32)
    small, step = quantised(exact, LARGEST)
    tl.store(out + row * WIDTH + column, small.to(out.dtype.element_ty), mask=inside)
    tl.store(scale + row, step)


@triton.jit
def quantised(exact, LARGEST: tl.constexpr):
    """A row in float32 as multiples of its scale, at most LARGEST, and the scale. A row with
    something that is no number has a scale that is none, since no code says so."""
    faults = tl.sum((exact != exact).to(tl.int32), 0)
    clean = tl.where(exact == exact, exact, 0.0)
    step = tl.maximum(tl.max(tl.abs(clean), 0), 1e-12) / LARGEST
    small = tl.minimum(tl.maximum(clean / step, -LARGEST), LARGEST)
    return small, tl.where(faults > 0, float("nan"), step)
