# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program for a stretch of a row; in float32 between reading and writing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.tuning.warps import choose_warps

STRETCH = 1024
"""Most elements of a program."""

_WARPS = 4
"""On a card without a tuned number of them."""


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


def warps_of(stretch: int, dtype: torch.dtype, device: torch.device) -> int:
    """Warps of a stretch of so many elements."""
    return choose_warps("gated_unit", stretch, dtype, device, _WARPS)


@triton.jit
def _gated_kernel(both, out, WIDTH: tl.constexpr, STRETCH: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * STRETCH + tl.arange(0, STRETCH)
    inside = column < WIDTH
    start = both + row * 2 * WIDTH
    gate = tl.load(start + column, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(start + WIDTH + column, mask=inside, other=0.0).to(tl.float32)
    result = gate * tl.sigmoid(gate) * up
    tl.store(out + row * WIDTH + column, result.to(out.dtype.element_ty), mask=inside)
