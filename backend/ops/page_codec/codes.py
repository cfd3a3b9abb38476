# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Numbers to codes and back, inside of a kernel: int8, e4m3, and the steps of int4.

Bit for bit what `kvstore.formats` does on a CPU: divisions are rounded to nearest, e4m3, bfloat16
and the step bytes are made of bits, so that nothing depends on a GPU's own conversions (which
Triton's interpreter lacks, and GPUs before compute capability 8.9 too).
"""

from __future__ import annotations

import triton
import triton.language as tl

_TINY = tl.constexpr(1.1754943508222875e-38)
_NEAREST = tl.constexpr(12582912.0)
"""1.5 * 2 ** 23: added and taken away again, it rounds smaller numbers to nearest even."""

_LARGEST_E4M3 = tl.constexpr(448.0)
_LARGEST_BF16 = tl.constexpr(3.3895313892515355e38)
_MIDDLE = tl.constexpr(160)
"""See `kvstore.formats.int4.MIDDLE`."""


@triton.jit
def nearest(x):
    """Numbers below 2 ** 22, rounded to nearest even."""
    return (x + _NEAREST) - _NEAREST


@triton.jit
def scale_of(top, faults, LARGEST: tl.constexpr):
    """The scale of numbers of which the largest is `top`; `faults` of them are not numbers."""
    scale = tl.maximum(tl.div_rn(top, LARGEST), _TINY)
    return tl.where(faults > 0, float("nan"), scale)


@triton.jit
def codes_of(x, scale, FP8: tl.constexpr):
    """The codes of x, as uint8."""
    scaled = tl.div_rn(x, scale)
    if FP8:
        size = tl.minimum(tl.abs(scaled), _LARGEST_E4M3)
        bits = size.to(tl.uint32, bitcast=True)
        # Rounded to three bits of mantissa, the exponent counted from 7 on instead of 127.
        normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - 960
        # Below 2 ** -6 units of 2 ** -9: what a sum with 2 ** 14 leaves in its last bits.
        small = (size + 16384.0).to(tl.uint32, bitcast=True) - 0x46800000
        code = tl.where(size < 0.015625, small, normal)
        code = tl.where(scaled == scaled, code, 0x7F)
        sign = (scaled.to(tl.uint32, bitcast=True) >> 24) & 0x80
        return (code | sign).to(tl.uint8)
    else:
        whole = tl.where(scaled == scaled, nearest(scaled), 0.0)
        whole = tl.minimum(tl.maximum(whole, -127.0), 127.0)
        return whole.to(tl.int8).to(tl.uint8, bitcast=True)


@triton.jit
def numbers_of(code, FP8: tl.constexpr, NATIVE: tl.constexpr):
    """What codes (uint8) stand for, in float32, before the scale. With NATIVE the GPU converts
    e4m3 itself. A code that is no number may come back as one: its scale is none."""
    if not FP8:
        return code.to(tl.int8, bitcast=True).to(tl.float32)
    elif NATIVE:
        return code.to(tl.float8e4nv, bitcast=True).to(tl.float32)
    else:
        bits = code.to(tl.uint16)
        # The same bits in float16 have an exponent that counts from 15 on instead of 7.
        half = ((bits & 0x80) << 8) | ((bits & 0x7F) << 7)
        return half.to(tl.float16, bitcast=True).to(tl.float32) * 256.0


@triton.jit
def _eighth(place):
    """Mantissa bits of 2 ** (place / 8) in float32, `place` from 0 to 7."""
    low = tl.where(place == 1, 759234, 0)
    low = tl.where(place == 2, 1587184, low)
    low = tl.where(place == 3, 2490071, low)
    high = tl.where(place == 5, 4548394, 3474675)
    high = tl.where(place == 6, 5719293, high)
    high = tl.where(place == 7, 6996167, high)
    return tl.where(place < 4, low, high)


@triton.jit
def step_of(byte):
    """The step that a step byte (int32) stands for."""
    place = byte - _MIDDLE
    bits = ((place >> 3) + 127) << 23 | _eighth(place & 7)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def least_of(bits):
    """A bfloat16 (its bits as int16) in float32."""
    return (bits.to(tl.int32) << 16).to(tl.float32, bitcast=True)


@triton.jit
def least_and_step(low, high, faults):
    """Bits of the least number (int16) and the step byte (int32) of groups of four-bit codes."""
    spoiled = (high - high) + (low - low)
    good = (faults == 0) & (spoiled == spoiled)
    low = tl.where(good, low, 0.0)
    high = tl.where(good, high, 0.0)
    cut = tl.minimum(tl.maximum(low, -_LARGEST_BF16), _LARGEST_BF16)
    raw = cut.to(tl.int32, bitcast=True)
    least = (raw + 0x7FFF + ((raw >> 16) & 1)) >> 16
    span = tl.maximum(high - least_of(least), high - low)
    bits = tl.maximum(tl.div_rn(span, 15.0), _TINY).to(tl.int32, bitcast=True)
    mantissa = bits & 0x7FFFFF
    eighths = (mantissa > 0).to(tl.int32)
    for place in tl.static_range(1, 8):
        eighths += (mantissa > _eighth(tl.full([], place, tl.int32))).to(tl.int32)
    byte = ((bits >> 23) - 127) * 8 + eighths + _MIDDLE
    byte = tl.minimum(tl.maximum(byte, 0), 255)
    # A group with something that is no number is none: its least number says so.
    return tl.where(good, least, 0x7FC0).to(tl.int16), tl.where(good, byte, 0)


@triton.jit
def nibbles_of(x, least, step):
    """Four-bit codes of x, as int32."""
    scaled = tl.div_rn(x - least, step)
    scaled = tl.where(scaled == scaled, scaled, 0.0)
    whole = nearest(tl.minimum(tl.maximum(scaled, 0.0), 15.0))
    return whole.to(tl.int32)


@triton.jit
def channel_keys(byte, leasts, steps, slot, column, WIDTH: tl.constexpr):
    """Both halves of keys in four bits, a least number and a step for each channel of 32 tokens."""
    HALF: tl.constexpr = WIDTH // 2
    first = (slot < 32)[:, None]
    narrow = column < HALF
    a = (byte & 15).to(tl.float32)
    b = (byte >> 4).to(tl.float32)
    least = least_of(tl.load(leasts + column, mask=narrow, other=0))[None, :]
    other = least_of(tl.load(leasts + WIDTH + column, mask=narrow, other=0))[None, :]
    step = step_of(tl.load(steps + column, mask=narrow, other=0).to(tl.int32))[None, :]
    more = step_of(tl.load(steps + WIDTH + column, mask=narrow, other=0).to(tl.int32))[None, :]
    key_a = a * tl.where(first, step, more) + tl.where(first, least, other)
    least = least_of(tl.load(leasts + HALF + column, mask=narrow, other=0))[None, :]
    other = least_of(tl.load(leasts + WIDTH + HALF + column, mask=narrow, other=0))[None, :]
    step = step_of(tl.load(steps + HALF + column, mask=narrow, other=0).to(tl.int32))[None, :]
    more = step_of(tl.load(steps + WIDTH + HALF + column, mask=narrow, other=0).to(tl.int32))[
        None, :
    ]
    key_b = b * tl.where(first, step, more) + tl.where(first, least, other)
    return key_a, key_b


@triton.jit
def token_values(
    code, leasts, steps, slot, used, WIDTH: tl.constexpr, PADDED: tl.constexpr, PAGE: tl.constexpr
):
    """Values in four bits, a least number and a step for each 32 channels of a token."""
    GROUPS: tl.constexpr = (WIDTH + 31) // 32
    MANY: tl.constexpr = PADDED // 32
    group = tl.arange(0, MANY)
    there = used[:, None] & (group < GROUPS)[None, :]
    at = slot[:, None] * GROUPS + group[None, :]
    least = least_of(tl.load(leasts + at, mask=there, other=0))
    step = step_of(tl.load(steps + at, mask=there, other=0).to(tl.int32))
    least = tl.reshape(tl.broadcast_to(least[:, :, None], (PAGE, MANY, 32)), (PAGE, PADDED))
    step = tl.reshape(tl.broadcast_to(step[:, :, None], (PAGE, MANY, 32)), (PAGE, PADDED))
    return code.to(tl.float32) * step + least
