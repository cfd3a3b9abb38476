# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Cells of pages into rows, in one launch for all layers, heads, keys and values."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from backend.ops.page_codec.codes import least_of, numbers_of, step_of
from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS

_TOKENS = 32
_NATIVE = (8, 9)
"""GPUs of this compute capability and later convert e4m3."""


def decode_pages(
    data: torch.Tensor,
    refs: torch.Tensor,
    tokens: int,
    form: PackedFormat,
    width: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """See the package."""
    _, layers, parts, heads, _ = data.shape
    out = torch.empty((parts, layers, heads, tokens, width), dtype=dtype, device=data.device)
    halves = PAGE_TOKENS // _TOKENS
    grid = (len(refs) * halves, layers * heads, parts)
    common = (data.stride(0), data.stride(1), data.stride(2), data.stride(3), heads)
    if form.coding == "int4":
        half = -(-width // 2)
        _, key_least, key_step, _ = form.starts(width, 0)
        _, value_least, value_step, _ = form.starts(width, 1)
        _nibble_kernel[grid](
            data,
            data.view(torch.int16),
            out,
            refs,
            *common,
            out.stride(0),
            tokens,
            key_least,
            key_step,
            value_least,
            value_step,
            WIDTH=width,
            HALF=half,
            PADDED=triton.next_power_of_2(half),
            GROUPS=-(-width // 32),
            TOKENS=_TOKENS,
            PAGE=PAGE_TOKENS,
            num_warps=4,
        )
        return out
    _scaled_kernel[grid](
        data,
        data.view(torch.float32),
        out,
        refs,
        *common,
        out.stride(0),
        tokens,
        form.starts(width, 0)[1],
        WIDTH=width,
        PADDED=triton.next_power_of_2(width),
        TOKENS=_TOKENS,
        PAGE=PAGE_TOKENS,
        EACH=form.fields(width, 0)[1].rows == PAGE_TOKENS,
        FP8=form.coding == "fp8",
        NATIVE=native_fp8(data.device),
        num_warps=4,
    )
    return out


def native_fp8(device: torch.device) -> bool:
    """Whether the device converts e4m3 by itself."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= _NATIVE


@triton.jit(do_not_specialize=["tokens", "out_part"])
def _scaled_kernel(
    data,
    words,
    out,
    refs,
    page_stride,
    layer_stride,
    part_stride,
    head_stride,
    heads,
    out_part,
    tokens,
    scales_at,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    TOKENS: tl.constexpr,
    PAGE: tl.constexpr,
    EACH: tl.constexpr,
    FP8: tl.constexpr,
    NATIVE: tl.constexpr,
):
    HALVES: tl.constexpr = PAGE // TOKENS
    half = tl.program_id(0) % HALVES
    entry = refs + tl.program_id(0) // HALVES * 4
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2).to(tl.int64)
    page = tl.load(entry).to(tl.int64)
    first = tl.load(entry + 1)
    count = tl.load(entry + 2)
    start = tl.load(entry + 3)
    slot = half * TOKENS + tl.arange(0, TOKENS)
    column = tl.arange(0, PADDED)
    wanted = (slot >= first) & (slot < first + count)
    inside = wanted[:, None] & (column < WIDTH)[None, :]
    place = page * page_stride + row // heads * layer_stride + row % heads * head_stride
    place += part * part_stride
    code = tl.load(data + place + slot[:, None] * WIDTH + column[None, :], mask=inside, other=0)
    scales = words + (place + scales_at) // 4
    scale = tl.load(scales + slot)[:, None] if EACH else tl.load(scales + half)
    number = numbers_of(code, FP8, NATIVE) * scale
    target = out + part * out_part + (row * tokens + start - first + slot)[:, None] * WIDTH
    tl.store(target + column[None, :], number.to(out.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["tokens", "out_part"])
def _nibble_kernel(
    data,
    shorts,
    out,
    refs,
    page_stride,
    layer_stride,
    part_stride,
    head_stride,
    heads,
    out_part,
    tokens,
    key_least,
    key_step,
    value_least,
    value_step,
    WIDTH: tl.constexpr,
    HALF: tl.constexpr,
    PADDED: tl.constexpr,
    GROUPS: tl.constexpr,
    TOKENS: tl.constexpr,
    PAGE: tl.constexpr,
):
    HALVES: tl.constexpr = PAGE // TOKENS
    half = tl.program_id(0) % HALVES
    entry = refs + tl.program_id(0) // HALVES * 4
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2).to(tl.int64)
    page = tl.load(entry).to(tl.int64)
    first = tl.load(entry + 1)
    count = tl.load(entry + 2)
    start = tl.load(entry + 3)
    slot = half * TOKENS + tl.arange(0, TOKENS)
    left = tl.arange(0, PADDED)
    right = HALF + left
    wanted = ((slot >= first) & (slot < first + count))[:, None]
    of_left = wanted & (left < HALF)[None, :]
    of_right = of_left & (right < WIDTH)[None, :]
    place = page * page_stride + row // heads * layer_stride + row % heads * head_stride
    place += part * part_stride
    byte = tl.load(data + place + slot[:, None] * HALF + left[None, :], mask=of_left, other=0)
    if part == 0:
        leasts = shorts + (place + key_least) // 2
        steps = data + place + key_step
        at = half * WIDTH + (slot * 0)[:, None]
        a_at = at + left[None, :]
        b_at = at + right[None, :]
    else:
        leasts = shorts + (place + value_least) // 2
        steps = data + place + value_step
        at = (slot * GROUPS)[:, None]
        a_at = at + (left // 32)[None, :]
        b_at = at + (right // 32)[None, :]
    a_least = least_of(tl.load(leasts + a_at, mask=of_left, other=0))
    b_least = least_of(tl.load(leasts + b_at, mask=of_right, other=0))
    a_step = step_of(tl.load(steps + a_at, mask=of_left, other=0).to(tl.int32))
    b_step = step_of(tl.load(steps + b_at, mask=of_right, other=0).to(tl.int32))
    code = byte.to(tl.int32)
    kind = out.dtype.element_ty
    target = out + part * out_part + (row * tokens + start - first + slot)[:, None] * WIDTH
    a = (code & 15).to(tl.float32) * a_step + a_least
    tl.store(target + left[None, :], a.to(kind), mask=of_left)
    b = (code >> 4).to(tl.float32) * b_step + b_least
    tl.store(target + right[None, :], b.to(kind), mask=of_right)
