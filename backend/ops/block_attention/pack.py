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
from backend.ops.block_attention.reference import SMALLEST
from backend.ops.page_codec.codes import codes_of
from kvstore.formats.fp8 import LARGEST

_ROWS = 8
"""Key rows of one program; divides SEGMENT_ROWS."""
_CODED_ROWS = 32
"""The same in e4m3: values of a channel are written side by side, a byte each."""

_LARGEST = tl.constexpr(LARGEST)
_SMALLEST = tl.constexpr(SMALLEST)


def pack(
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotated keys and values, each [kv_heads, rows, width], width the next power of two."""
    size = (k.shape[1], len(plan.source), triton.next_power_of_2(k.shape[2]))
    keys, values = k.new_empty(size), v.new_empty(size)
    _launch(k, v, plan, extra, cos, sin, keys, values, None)
    return keys, values


def pack_e4m3(
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Codes (uint8) of rotated keys [kv_heads, rows, width] and of values [kv_heads, width, rows],
    and the scales of both, [2, kv_heads, rows] in float32."""
    heads, rows, width = k.shape[1], len(plan.source), triton.next_power_of_2(k.shape[2])
    keys = torch.empty((heads, rows, width), dtype=torch.uint8, device=k.device)
    values = torch.empty((heads, width, rows), dtype=torch.uint8, device=k.device)
    scales = torch.empty((2, heads, rows), dtype=torch.float32, device=k.device)
    _launch(k, v, plan, extra, cos, sin, keys, values, scales)
    return keys, values, scales


def _launch(
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scales: torch.Tensor | None,
) -> None:
    each = _ROWS if scales is None else _CODED_ROWS
    assert SEGMENT_ROWS % each == 0
    heads, width = k.shape[1:]
    rows = len(plan.source)
    extra_k, extra_v = (k, v) if extra is None else extra
    _pack_kernel[(rows // each,)](
        k,
        v,
        extra_k,
        extra_v,
        keys,
        values,
        cos if scales is None else scales,
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
        PADDED=triton.next_power_of_2(width),
        ROWS=each,
        FP8=scales is not None,
        num_warps=2 if scales is None else 4,
    )


@triton.jit(do_not_specialize=["rows", "extra_rows"])
def _pack_kernel(
    k,
    v,
    extra_k,
    extra_v,
    keys,
    values,
    scales,
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
    FP8: tl.constexpr,
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
        line = head * rows.to(tl.int64) + row
        target = line[:, None] * PADDED + column[None, :]
        turned = plain * turn_c + shifted * turn_s
        if FP8:
            scale = row_scale(turned)
            tl.store(scales + line, scale)
            tl.store(keys + target, codes_of(turned, scale[:, None], True))
            # A product in e4m3 wants the values of a channel side by side.
            scale = row_scale(value.to(tl.float32))
            tl.store(scales + HEADS * rows.to(tl.int64) + line, scale)
            target = (head * PADDED + column).to(tl.int64)[None, :] * rows + row[:, None]
            tl.store(values + target, codes_of(value.to(tl.float32), scale[:, None], True))
        else:
            tl.store(keys + target, turned.to(keys.dtype.element_ty))
            tl.store(values + target, value)


@triton.jit
def row_scale(x):
    """The smallest power of two with which each row of x [rows, width] fits into e4m3."""
    faults = tl.sum((x != x).to(tl.int32), 1)
    peak = tl.max(tl.where(x == x, tl.abs(x), 0.0), 1)
    least = tl.maximum(peak, _SMALLEST) / _LARGEST
    scale = ((least.to(tl.int32, bitcast=True) + 0x7FFFFF) & 0x7F800000).to(
        tl.float32, bitcast=True
    )
    return tl.where(faults > 0, float("nan"), scale)
