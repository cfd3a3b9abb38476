# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program for a stretch of a row; in float32 between reading and writing."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

_STRETCH = 1024
"""Most elements of a program."""


def gated_unit(both: torch.Tensor) -> torch.Tensor:
    """See the package."""
    rows, width = both.shape[0], both.shape[1] // 2
    out = torch.empty((rows, width), dtype=both.dtype, device=both.device)
    stretch = min(triton.next_power_of_2(width), _STRETCH)
    _gated_kernel[(rows, triton.cdiv(width, stretch))](
        both, out, WIDTH=width, STRETCH=stretch, num_warps=4
    )
    return out


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
