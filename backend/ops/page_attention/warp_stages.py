# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""What a page's turn takes, copied to shared memory some pages ahead of `warp_part`.

A cell's keys and values, scales of codes, and the cosines and sines that queries are turned by. A
thread reads back what it copied itself, in the same words, so the layouts here only see to it that
threads side by side use different banks. It knows neither queries nor products.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy

from backend.ops.page_attention.warp_words import key_layout, value_layout

LINE = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))
"""Of numbers that are copied one by one."""

_VECTOR = gl.constexpr(gl.BlockedLayout([4], [32], [4], [0]))
_FLAT = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0]))


@gluon.constexpr_function
def _shared_keys(words):
    # Eight lanes read 64 bytes of two rows.
    return gl.SwizzledSharedLayout(min(16, words), 1, max(1, words // 16), [1, 0])


@gluon.constexpr_function
def _shared_values(words):
    # Eight or sixteen lanes read 32 bytes of four rows.
    lines = max(1, 32 // words)
    return gl.SwizzledSharedLayout(8, lines, 4 // lines, [2, 1, 0])


@gluon.jit
def key_stages(STAGES: gl.constexpr, WORDS: gl.constexpr):
    """Room for half a row of keys of a page's tokens."""
    return gl.allocate_shared_memory(gl.int32, [STAGES, 64, WORDS], _shared_keys(WORDS))


@gluon.jit
def value_stages(STAGES: gl.constexpr, WORDS: gl.constexpr):
    """Room for values of the even or of the odd tokens of a page."""
    return gl.allocate_shared_memory(gl.int32, [STAGES, 4, 8, WORDS], _shared_values(WORDS))


@gluon.jit
def number_stages(STAGES: gl.constexpr, COUNT: gl.constexpr):
    """Room for so many float32."""
    return gl.allocate_shared_memory(gl.float32, [STAGES, COUNT], _FLAT)


@gluon.jit
def place_of(ref):
    """A page, and the position of its first slot."""
    return gl.load(ref), gl.load(ref + 3) - gl.load(ref + 1)


@gluon.jit
def copy_page(
    page,
    start,
    last,
    stage,
    pool,
    tables,
    stages,
    CODING: gl.constexpr,
    EACH: gl.constexpr,
    ROW: gl.constexpr,
    HALF: gl.constexpr,
):
    """Copy what the turn of a page takes, whose first slot stands at `start`, into `stage` of
    `stages`: rows of ROW words of keys and values, and the tables' rows of how far the position
    `last` is from there. EACH token has scales of its own, or 32 share them."""
    data, scales, page_stride, place, value_stride, key_scales, value_scales = pool
    cos, sin, cos_row, sin_row = tables
    keys_a, keys_b, even, odd, key_units, value_units, cosines, sines = stages
    KEYS: gl.constexpr = key_layout(ROW // 2)
    VALUES: gl.constexpr = value_layout(ROW)
    at = page.to(gl.int64) * page_stride + place
    slot = gl.arange(0, 64, layout=gl.SliceLayout(1, KEYS))
    word = gl.arange(0, ROW // 2, layout=gl.SliceLayout(0, KEYS))
    words = data + at + (slot[:, None] * ROW + word[None, :])
    async_copy.async_copy_global_to_shared(keys_a.index(stage), words)
    async_copy.async_copy_global_to_shared(keys_b.index(stage), words + ROW // 2)
    warp = gl.arange(0, 4, layout=gl.SliceLayout(1, gl.SliceLayout(2, VALUES)))
    pair = gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(2, VALUES)))
    word = gl.arange(0, ROW, layout=gl.SliceLayout(0, gl.SliceLayout(1, VALUES)))
    token = warp[:, None, None] * 16 + pair[None, :, None] * 2
    words = data + at + value_stride + (token * ROW + word[None, None, :])
    async_copy.async_copy_global_to_shared(even.index(stage), words)
    async_copy.async_copy_global_to_shared(odd.index(stage), words + ROW)
    if CODING != "plain":
        slot = gl.arange(0, 64, layout=LINE)
        units = scales + at + (slot if EACH else slot // 32)
        async_copy.async_copy_global_to_shared(key_units.index(stage), units + key_scales)
        units += value_stride + value_scales
        async_copy.async_copy_global_to_shared(value_units.index(stage), units)
    channel = gl.arange(0, HALF, layout=_VECTOR)
    # A page beyond the list has no angle: nothing of it is seen.
    angle = gl.maximum(last - start, 0)
    async_copy.async_copy_global_to_shared(cosines.index(stage), cos + angle * cos_row + channel)
    async_copy.async_copy_global_to_shared(
        sines.index(stage), sin + angle * sin_row + HALF + channel
    )
