# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Lays the keys and values of a launch out for the attention kernels, keys rotated on the way.

One pass over the keys: each is rotated once, at the position its reader gives it, where rotating
in the attention loop would do it again for every tile of queries that sees it. The result is
head-major, `[kv_heads, rows, width]`, in runs padded with zeros (see `ReadPlan`).
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.block_attention.plan import SEGMENT_ROWS, ReadPlan

_ROWS = 8
"""Key rows of one program; divides SEGMENT_ROWS."""


def pack(
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotated keys and values, each [kv_heads, rows, width], width the next power of two."""
    assert SEGMENT_ROWS % _ROWS == 0
    heads, width = k.shape[1:]
    rows = len(plan.source)
    size = (heads, rows, triton.next_power_of_2(width))
    keys, values = k.new_empty(size), v.new_empty(size)
    extra_k, extra_v = (k, v) if extra is None else extra
    _pack_kernel[(rows // _ROWS,)](
        k,
        v,
        extra_k,
        extra_v,
        keys,
        values,
        plan.source,
        plan.position,
        cos,
        sin,
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        extra_k.stride(0),
        extra_k.stride(1),
        extra_v.stride(0),
        extra_v.stride(1),
        cos.stride(0),
        sin.stride(0),
        rows,
        plan.extra_rows,
        HEADS=heads,
        WIDTH=width,
        PADDED=size[2],
        ROWS=_ROWS,
        num_warps=2,
    )
    return keys, values


@triton.jit
def _pack_kernel(
    k,
    v,
    extra_k,
    extra_v,
    keys,
    values,
    source,
    position,
    cos,
    sin,
    k_row,
    k_head,
    v_row,
    v_head,
    extra_k_row,
    extra_k_head,
    extra_v_row,
    extra_v_head,
    cos_row,
    sin_row,
    rows,
    extra_rows,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ROWS: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, PADDED)
    rolled = (column + WIDTH // 2) % WIDTH
    origin = tl.load(source + row).to(tl.int64)
    inside = (column < WIDTH)[None, :]
    real = (origin >= 0)[:, None] & inside
    is_extra = (origin < extra_rows)[:, None] & real
    is_token = (origin >= extra_rows)[:, None] & real
    token = tl.maximum(origin - extra_rows, 0)
    listed = tl.maximum(origin, 0)
    place = tl.load(position + row).to(tl.int64)
    turn_c = tl.load(cos + place[:, None] * cos_row + column[None, :], mask=real, other=0.0)
    turn_s = tl.load(sin + place[:, None] * sin_row + column[None, :], mask=real, other=0.0)
    for head in range(HEADS):
        own = k + token[:, None] * k_row + head * k_head
        other = extra_k + listed[:, None] * extra_k_row + head * extra_k_head
        plain = tl.load(own + column[None, :], mask=is_token, other=0.0).to(tl.float32)
        plain += tl.load(other + column[None, :], mask=is_extra, other=0.0).to(tl.float32)
        shifted = tl.load(own + rolled[None, :], mask=is_token, other=0.0).to(tl.float32)
        shifted += tl.load(other + rolled[None, :], mask=is_extra, other=0.0).to(tl.float32)
        own = v + token[:, None] * v_row + head * v_head
        other = extra_v + listed[:, None] * extra_v_row + head * extra_v_head
        value = tl.load(own + column[None, :], mask=is_token, other=0.0)
        value += tl.load(other + column[None, :], mask=is_extra, other=0.0)
        target = (head * rows.to(tl.int64) + row)[:, None] * PADDED + column[None, :]
        turned = plain * turn_c + shifted * turn_s
        tl.store(keys + target, turned.to(keys.dtype.element_ty))
        tl.store(values + target, value)
