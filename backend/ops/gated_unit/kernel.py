# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program for a stretch of a row, or for a row whose scale is wanted; in float32 between
reading and writing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.row_quantise.kernel import quantised
from backend.ops.tuning.warps import choose_warps

STRETCH = 1024
"""Most elements of a program."""

_WARPS = 4
"""On a card without a tuned number of them."""

_ROW_WARP_ELEMENTS = 1024
"""Elements of a whole row for each warp."""


def gated_unit(both: torch.Tensor, warps: int | None = None) -> torch.Tensor:
    """See the package. `warps` replaces the tuned number."""
    rows, width = both.shape[0], both.shape[1] // 2
    out = torch.empty((rows, width), dtype=both.dtype, device=both.device)
    stretch = min(triton.next_power_of_2(width), STRETCH)
    _gated_kernel[(rows, triton.cdiv(width, stretch))](
        both,
        out,
        WIDTH=width,
        STRETCH=stretch,
        num_warps=warps or warps_of(stretch, both.dtype, both.device),
    )
    return out


def gated_rows(both: torch.Tensor, largest: float) -> tuple[torch.Tensor, torch.Tensor]:
    """See the package."""
    rows, width = both.shape[0], both.shape[1] // 2
    out = torch.empty((rows, width), dtype=torch.float8_e4m3fn, device=both.device)
    scale = torch.empty((rows, 1), dtype=torch.float32, device=both.device)
    padded = triton.next_power_of_2(width)
    _gated_rows_kernel[(rows,)](
        both,
        out,
        scale,
        LARGEST=largest,
        WIDTH=width,
        PADDED=padded,
        num_warps=min(max(padded // _ROW_WARP_ELEMENTS, 1), 16),
    )
    return out, scale


def warps_of(stretch: int, dtype: torch.dtype, device: torch.device) -> int:
    """Warps of a stretch of so many elements."""
    return choose_warps("gated_unit", stretch, dtype, device, _WARPS)


@triton.jit
def _gated_kernel(both, out, WIDTH: tl.constexpr, STRETCH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    inside = column < WIDTH
    result = _gated(both + row * 2 * WIDTH, column, inside, WIDTH)
    tl.store(out + row * WIDTH + column, result.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _gated_rows_kernel(
    both, out, scale, LARGEST: tl.constexpr, WIDTH: tl.constexpr, PADDED: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, PADDED)
    inside = column < WIDTH
    result = _gated(both + row * 2 * WIDTH, column, inside, WIDTH)
    # Rounded as it would have been written.
    small, step = quantised(result.to(both.dtype.element_ty).to(tl.float32), LARGEST)
    tl.store(out + row * WIDTH + column, small.to(out.dtype.element_ty), mask=inside)
    tl.store(scale + row, step)


@triton.jit
def _gated(start, column, inside, WIDTH: tl.constexpr):
    gate = tl.load(start + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + WIDTH + column, mask=inside, other=0.0).to(tl.float32)
    return gate * tl.sigmoid(gate) * up
