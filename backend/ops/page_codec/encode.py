# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Rows of keys and values into the cells of pages, in one launch (int4: one for each of the two).

A program makes 32 tokens of one page and head: scales of one token and of 32 are both whole there.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.page_codec.codes import (
    codes_of,
    least_and_step,
    least_of,
    nibbles_of,
    scale_of,
    step_of,
)
from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS

_TOKENS = 32
_LARGEST = {"int8": 127.0, "fp8": 448.0}
_WIDE = 128
"""Padded head sizes from here on take eight warps."""


def encode_pages(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    rows: torch.Tensor,
    form: PackedFormat,
) -> None:
    """See the package."""
    heads, width = k.shape[1:]
    halves = PAGE_TOKENS // _TOKENS
    cell = data.shape[-1]
    common = (rows, data.stride(0), layer * data.stride(1), data.stride(2), data.stride(3))
    if form.coding == "int4":
        half = -(-width // 2)
        padded = triton.next_power_of_2(half)
        for part, source in enumerate((k, v)[: data.shape[2]]):
            _, least_at, step_at, end = form.starts(width, 0 if part == 0 else 1)
            _nibble_kernel[(len(rows) * halves, heads)](
                data,
                data.view(torch.int16),
                source,
                *common,
                source.stride(0),
                source.stride(1),
                least_at,
                step_at,
                end,
                PART=part,
                CELL=cell,
                WIDTH=width,
                HALF=half,
                PADDED=padded,
                GROUPS=-(-width // 32),
                TOKENS=_TOKENS,
                PAGE=PAGE_TOKENS,
                num_warps=8 if padded >= _WIDE else 4,
            )
        return
    padded = triton.next_power_of_2(width)
    _, scales_at, end = form.starts(width, 0)
    _scaled_kernel[(len(rows) * halves, heads, data.shape[2])](
        data,
        data.view(torch.float32),
        k,
        v,
        *common,
        k.stride(0),
        k.stride(1),
        v.stride(0),
        v.stride(1),
        scales_at,
        end,
        CELL=cell,
        WIDTH=width,
        PADDED=padded,
        TOKENS=_TOKENS,
        PAGE=PAGE_TOKENS,
        EACH=form.fields(width, 0)[1].rows == PAGE_TOKENS,
        FP8=form.coding == "fp8",
        LARGEST=_LARGEST[form.coding],
        num_warps=8 if padded > _WIDE else 4,
    )


@triton.jit
def _zeros(cell, end, CELL: tl.constexpr):
    """Nothing of before is left behind the fields."""
    behind = tl.arange(0, 128)
    for first in range(end, CELL, 128):
        tl.store(cell + first + behind, tl.zeros([128], tl.uint8), mask=first + behind < CELL)


@triton.jit
def _scaled_kernel(
    data,
    words,
    k,
    v,
    rows,
    page_stride,
    layer_offset,
    part_stride,
    head_stride,
    k_row,
    k_head,
    v_row,
    v_head,
    scales_at,
    end,
    CELL: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    TOKENS: tl.constexpr,
    PAGE: tl.constexpr,
    EACH: tl.constexpr,
    FP8: tl.constexpr,
    LARGEST: tl.constexpr,
):
    HALVES: tl.constexpr = PAGE // TOKENS
    half = tl.program_id(0) % HALVES
    entry = rows + tl.program_id(0) // HALVES * 3
    head = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2).to(tl.int64)
    page = tl.load(entry).to(tl.int64)
    first = tl.load(entry + 1)
    count = tl.load(entry + 2)
    slot = half * TOKENS + tl.arange(0, TOKENS)
    token = (first + tl.minimum(slot, count - 1)).to(tl.int64)
    column = tl.arange(0, PADDED)
    inside = (column < WIDTH)[None, :] & (slot >= 0)[:, None]
    # A branch: the two differ in their strides.
    if part == 0:  # noqa: SIM108
        source = k + token * k_row + head * k_head
    else:
        source = v + token * v_row + head * v_head
    x = tl.load(source[:, None] + column[None, :], mask=inside, other=0.0).to(tl.float32)
    fault = (x != x).to(tl.int32)
    size = tl.where(fault > 0, 0.0, tl.abs(x))
    place = page * page_stride + layer_offset + part * part_stride + head * head_stride
    scales = words + (place + scales_at) // 4
    if EACH:
        scale = scale_of(tl.max(size, 1), tl.max(fault, 1), LARGEST)
        tl.store(scales + slot, scale)
        code = codes_of(x, scale[:, None], FP8)
    else:
        one = scale_of(tl.max(tl.max(size, 1), 0), tl.max(tl.max(fault, 1), 0), LARGEST)
        tl.store(scales + half, one)
        code = codes_of(x, one, FP8)
    tl.store(data + place + slot[:, None] * WIDTH + column[None, :], code, mask=inside)
    if half == 0:
        _zeros(data + place, end, CELL)


@triton.jit
def _nibble_kernel(
    data,
    shorts,
    source,
    rows,
    page_stride,
    layer_offset,
    part_stride,
    head_stride,
    row_stride,
    source_head,
    least_at,
    step_at,
    end,
    PART: tl.constexpr,
    CELL: tl.constexpr,
    WIDTH: tl.constexpr,
    HALF: tl.constexpr,
    PADDED: tl.constexpr,
    GROUPS: tl.constexpr,
    TOKENS: tl.constexpr,
    PAGE: tl.constexpr,
):
    HALVES: tl.constexpr = PAGE // TOKENS
    half = tl.program_id(0) % HALVES
    entry = rows + tl.program_id(0) // HALVES * 3
    head = tl.program_id(1).to(tl.int64)
    page = tl.load(entry).to(tl.int64)
    first = tl.load(entry + 1)
    count = tl.load(entry + 2)
    slot = half * TOKENS + tl.arange(0, TOKENS)
    token = (first + tl.minimum(slot, count - 1)).to(tl.int64)
    # The low halves of the bytes are the channels `left`, the high halves the channels `right`.
    left = tl.arange(0, PADDED)
    right = tl.minimum(HALF + left, WIDTH - 1)
    inside = (left < HALF)[None, :] & (slot >= 0)[:, None]
    read = (source + token * row_stride + head * source_head)[:, None]
    a = tl.load(read + left[None, :], mask=inside, other=0.0).to(tl.float32)
    b = tl.load(read + right[None, :], mask=inside, other=0.0).to(tl.float32)
    place = page * page_stride + layer_offset + PART * part_stride + head * head_stride
    leasts = shorts + (place + least_at) // 2
    steps = data + place + step_at
    if PART == 0:
        # Groups of 32 tokens of a channel.
        a_bits, a_byte = least_and_step(
            tl.min(a, 0), tl.max(a, 0), tl.max((a != a).to(tl.int32), 0)
        )
        b_bits, b_byte = least_and_step(
            tl.min(b, 0), tl.max(b, 0), tl.max((b != b).to(tl.int32), 0)
        )
        at = half * WIDTH
        tl.store(leasts + at + left, a_bits, mask=left < HALF)
        tl.store(steps + at + left, a_byte.to(tl.uint8), mask=left < HALF)
        other = HALF + left < WIDTH
        tl.store(leasts + at + HALF + left, b_bits, mask=other)
        tl.store(steps + at + HALF + left, b_byte.to(tl.uint8), mask=other)
        low = nibbles_of(a, least_of(a_bits)[None, :], step_of(a_byte)[None, :])
        high = nibbles_of(b, least_of(b_bits)[None, :], step_of(b_byte)[None, :])
    else:
        # Groups of 32 channels of a token. One may have channels on both sides.
        a_least = tl.zeros([TOKENS, PADDED], tl.float32)
        b_least = tl.zeros([TOKENS, PADDED], tl.float32)
        a_step = tl.full([TOKENS, PADDED], 1.0, tl.float32)
        b_step = tl.full([TOKENS, PADDED], 1.0, tl.float32)
        for group in range(0, GROUPS):
            of_a = inside & (left // 32 == group)[None, :]
            of_b = inside & (right // 32 == group)[None, :]
            bottom = tl.minimum(
                tl.min(tl.where(of_a, a, float("inf")), 1),
                tl.min(tl.where(of_b, b, float("inf")), 1),
            )
            top = tl.maximum(
                tl.max(tl.where(of_a, a, float("-inf")), 1),
                tl.max(tl.where(of_b, b, float("-inf")), 1),
            )
            faults = tl.max((of_a & (a != a)).to(tl.int32), 1)
            faults += tl.max((of_b & (b != b)).to(tl.int32), 1)
            bits, byte = least_and_step(bottom, top, faults)
            tl.store(leasts + slot * GROUPS + group, bits)
            tl.store(steps + slot * GROUPS + group, byte.to(tl.uint8))
            least = least_of(bits)[:, None]
            step = step_of(byte)[:, None]
            a_least = tl.where(of_a, least, a_least)
            b_least = tl.where(of_b, least, b_least)
            a_step = tl.where(of_a, step, a_step)
            b_step = tl.where(of_b, step, b_step)
        low = nibbles_of(a, a_least, a_step)
        high = nibbles_of(b, b_least, b_step)
    both = (low | (high << 4)).to(tl.uint8)
    tl.store(data + place + slot[:, None] * HALF + left[None, :], both, mask=inside)
    if half == 0:
        _zeros(data + place, end, CELL)
