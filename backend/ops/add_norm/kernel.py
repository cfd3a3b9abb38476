# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program a row, which is read and written once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.row_quantise.kernel import quantised
from backend.ops.tuning.warps import choose_warps

_WARP_ELEMENTS = 512
"""Elements of a row for each warp, on a card without a tuned number of them."""


def add_norm(
    stream: torch.Tensor,
    delta: torch.Tensor | None,
    weight: torch.Tensor,
    eps: float,
    warps: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See the package. `warps` replaces the tuned number."""
    rows, width = stream.shape
    normed = torch.empty_like(stream)
    padded = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](
        stream,
        stream if delta is None else delta,
        weight,
        normed,
        normed,
        eps,
        LARGEST=None,
        WIDTH=width,
        PADDED=padded,
        ADDS=delta is not None,
        num_warps=warps or warps_of(padded, stream.dtype, stream.device),
    )
    return stream, normed


def add_norm_rows(
    stream: torch.Tensor,
    delta: torch.Tensor | None,
    weight: torch.Tensor,
    eps: float,
    largest: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See the package."""
    rows, width = stream.shape
    values = torch.empty(stream.shape, dtype=torch.float8_e4m3fn, device=stream.device)
    scale = torch.empty((rows, 1), dtype=torch.float32, device=stream.device)
    padded = triton.next_power_of_2(width)
    _add_norm_kernel[(rows,)](
        stream,
        stream if delta is None else delta,
        weight,
        values,
        scale,
        eps,
        LARGEST=largest,
        WIDTH=width,
        PADDED=padded,
        ADDS=delta is not None,
        num_warps=warps_of(padded, stream.dtype, stream.device),
    )
    return stream, values, scale


def warps_of(padded: int, dtype: torch.dtype, device: torch.device) -> int:
    """Warps of a row of so many elements, padded to a power of two."""
    default = min(max(padded // _WARP_ELEMENTS, 1), 16)
    return choose_warps("add_norm", padded, dtype, device, default)


@triton.jit
def _add_norm_kernel(
    stream,
    delta,
    weight,
    normed,
    scales,
    eps,
    LARGEST: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ADDS: tl.constexpr,
):
    """Without LARGEST the norm is stored as it is, else as multiples of its row's scale."""
    column = tl.arange(0, PADDED)
    inside = column < WIDTH
    start = tl.program_id(0).to(tl.int64) * WIDTH
    kind = stream.dtype.element_ty
    row = tl.load(stream + start + column, mask=inside, other=0.0)
    if ADDS:
        added = tl.load(delta + start + column, mask=inside, other=0.0).to(tl.float32)
        row = (row.to(tl.float32) + added).to(kind)
        tl.store(stream + start + column, row, mask=inside)
    exact = row.to(tl.float32)
    scale = tl.rsqrt(tl.sum(exact * exact, 0) / WIDTH + eps)
    gain = tl.load(weight + column, mask=inside, other=0.0)
    result = (exact * scale * gain).to(kind)
    if LARGEST is None:
        tl.store(normed + start + column, result, mask=inside)
    else:
        small, step = quantised(result.to(tl.float32), LARGEST)
        tl.store(normed + start + column, small.to(normed.dtype.element_ty), mask=inside)
        tl.store(scales + tl.program_id(0), step)
