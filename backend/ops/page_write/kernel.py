# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One program a row (and, in a step, which has few rows, a key-value head). A step's places are
worked out on the device, so that a recorded launch serves every step."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.page_attention import PageLists
from kvstore.types import PAGE_TOKENS


def page_write(
    data: torch.Tensor, layer: int, k: torch.Tensor, v: torch.Tensor, lists: PageLists
) -> None:
    """See the package."""
    rows, heads, width = k.shape
    _write_kernel[(rows, heads)](
        data,
        k,
        v,
        lists.refs,
        lists.requests,
        lists.requests.stride(0),
        lists.most_rows,
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        data.stride(0),
        layer * data.stride(1),
        data.stride(2),
        data.stride(3),
        data.stride(4),
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        PAGE=PAGE_TOKENS,
        num_warps=1,
    )


def place_write(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    pages: torch.Tensor,
    slots: torch.Tensor,
) -> None:
    """See the package."""
    rows, heads, width = k.shape
    _place_kernel[(rows,)](
        data,
        k,
        v,
        pages,
        slots,
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        data.stride(0),
        layer * data.stride(1),
        data.stride(2),
        data.stride(3),
        data.stride(4),
        HEADS=heads,
        MANY=triton.next_power_of_2(heads),
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        num_warps=2,
    )


@triton.jit
def _place_kernel(
    data,
    k,
    v,
    pages,
    slots,
    k_row,
    k_head,
    v_row,
    v_head,
    page_stride,
    layer_offset,
    value_stride,
    head_stride,
    token_stride,
    HEADS: tl.constexpr,
    MANY: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    head = tl.arange(0, MANY)[:, None]
    column = tl.arange(0, PADDED)[None, :]
    inside = (head < HEADS) & (column < WIDTH)
    target = data + tl.load(pages + row).to(tl.int64) * page_stride + layer_offset
    target += tl.load(slots + row).to(tl.int64) * token_stride
    key = tl.load(k + row * k_row + head * k_head + column, mask=inside)
    value = tl.load(v + row * v_row + head * v_head + column, mask=inside)
    place = target + head * head_stride + column
    tl.store(place, key, mask=inside)
    tl.store(place + value_stride, value, mask=inside)


@triton.jit(do_not_specialize=["entry_row", "each"])
def _write_kernel(
    data,
    k,
    v,
    refs,
    requests,
    entry_row,
    each,
    k_row,
    k_head,
    v_row,
    v_head,
    page_stride,
    layer_offset,
    value_stride,
    head_stride,
    token_stride,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    PAGE: tl.constexpr,
):
    row = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    entry = requests + row // each * entry_row
    place = tl.load(entry + 4) - each + row % each - tl.load(entry + 6)
    if place < 0:
        return
    page = tl.load(refs + (tl.load(entry + 5) + place // PAGE) * 4).to(tl.int64)
    target = data + page * page_stride + layer_offset + head * head_stride
    target += place % PAGE * token_stride
    column = tl.arange(0, PADDED)
    inside = column < WIDTH
    key = tl.load(k + row.to(tl.int64) * k_row + head * k_head + column, mask=inside)
    value = tl.load(v + row.to(tl.int64) * v_row + head * v_head + column, mask=inside)
    tl.store(target + column, key, mask=inside)
    tl.store(target + value_stride + column, value, mask=inside)
