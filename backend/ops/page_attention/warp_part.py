# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""One part of a page list, as `part` reads it, for a few query rows; a warp has tokens of its own.

Of a page's 64 tokens every warp takes 16, with a softmax and a sum of values that are its own until
the part ends, so warps wait for each other only where they share the turned queries. Tokens are the
rows of both products and queries their columns, of which eight are the fewest. Keys and values go
from memory into the registers that the products read, in the order in which they lie there: which
channel is multiplied when makes no difference to a sum, so queries are laid out likewise. Codes of
eight bits are exact in float16, in which their keys are turned.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2

from backend.ops.page_attention.warp_words import (
    channel_rows,
    float16_pairs,
    inner_places,
    inverse,
    key_layout,
    query_layout,
    transposed_weights,
    turned_keys,
    value_layout,
    value_pairs,
)

_LEAST_SCALE = gl.constexpr(1.1754943508222875e-38)
_TOKENS = gl.constexpr(16)
"""Tokens of a page that a warp has."""

_WARPS = gl.constexpr(4)


@gluon.jit
def _page_of(ref):
    # Page, first token in use, tokens, position of the first one.
    return gl.load(ref), gl.load(ref + 1), gl.load(ref + 2), gl.load(ref + 3)


@gluon.jit
def _turns(cos, sin, cos_row, sin_row, angle, HALF: gl.constexpr, LAYOUT: gl.constexpr):
    channel = gl.arange(0, HALF, layout=gl.SliceLayout(0, LAYOUT))
    # A page beyond the list has none: nothing of it is seen.
    angle = gl.maximum(angle, 0)
    return gl.load(cos + angle * cos_row + channel), gl.load(sin + angle * sin_row + HALF + channel)


@gluon.jit(do_not_specialize=["rows", "parts", "ahead", "entry_row"])
def warp_part_kernel(
    q,
    data,
    scales,
    partial,
    marks,
    used_parts,
    refs,
    requests,
    entry_row,
    cos,
    sin,
    q_row,
    q_head,
    page_stride,
    layer_offset,
    value_stride,
    head_stride,
    key_scales,
    value_scales,
    cos_row,
    sin_row,
    rows,
    parts,
    ahead,
    scale,
    GROUP: gl.constexpr,
    HEADS: gl.constexpr,
    WIDTH: gl.constexpr,
    ROWS: gl.constexpr,
    PAGE: gl.constexpr,
    LEAST: gl.constexpr,
    CODING: gl.constexpr,
    EACH: gl.constexpr,
):
    """As `part_kernel`, but `data` is in words of 4 bytes (int32), and so are strides and fields;
    `scales` are the same words in float32. Tokens and cells have no gaps between them."""
    gl.static_assert(PAGE == _WARPS * _TOKENS)
    PACKED: gl.constexpr = CODING != "plain"
    HALF: gl.constexpr = WIDTH // 2
    ROW: gl.constexpr = WIDTH // 4 if PACKED else WIDTH // 2
    KIND: gl.constexpr = gl.float16 if PACKED else q.dtype.element_ty
    KEYS: gl.constexpr = key_layout(ROW // 2)
    VALUES: gl.constexpr = value_layout(ROW)
    ASKED: gl.constexpr = gl.BlockedLayout([1, 4], [32 * 4 // HALF, HALF // 4], [_WARPS, 1], [1, 0])
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [_WARPS, 1], [16, 8])
    READ: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [_WARPS, 1, 1], [1, 16, 8])
    ONE: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(1, READ))
    RESULT: gl.constexpr = gl.BlockedLayout([4, 1], [32, 1], [1, _WARPS], [0, 1])

    part = gl.program_id(0) % parts
    tile = gl.program_id(0) // parts
    kv_head = gl.program_id(1)
    entry = requests + gl.program_id(2) * entry_row
    first_page = gl.load(entry)
    pages = gl.load(entry + 1)
    first_row = gl.load(entry + 2)
    count = gl.load(entry + 3)
    tokens = gl.load(entry + 4)
    each = gl.maximum(gl.cdiv(pages, parts), LEAST)
    row = tile * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, ASKED))
    token = row // GROUP
    real = token < count
    if part == 0:
        # Also where a list has no packed page, and so no part.
        found = gl.cdiv(pages, each)
        bound = ahead - found if PACKED else ahead + found
        gl.store(used_parts + (first_row + token), gl.full_like(token, 0) + bound, mask=real)
    if (tile * ROWS >= count * GROUP) | (part * each >= pages):
        return

    # Queries turned back to the last one's place: then all turn alike at a page.
    channel = gl.arange(0, HALF, layout=gl.SliceLayout(0, ASKED))
    place = (first_row + token).to(gl.int64) * q_row + (kv_head * GROUP + row % GROUP) * q_head
    asked = q + (place[:, None] + channel[None, :])
    raw_a = gl.load(asked, mask=real[:, None], other=0.0).to(gl.float32)
    raw_b = gl.load(asked + HALF, mask=real[:, None], other=0.0).to(gl.float32)
    back = gl.maximum(count - 1 - token, 0)
    turn = back[:, None] * cos_row + channel[None, :]
    turn_c = gl.load(cos + turn, mask=real[:, None], other=1.0)
    turn = back[:, None] * sin_row + (HALF + channel)[None, :]
    turn_s = gl.load(sin + turn, mask=real[:, None], other=0.0)
    # A table may have a factor of attention in it, which the turns below bring.
    length = gl.rsqrt(turn_c * turn_c + turn_s * turn_s)
    ask_a = (raw_a * turn_c + raw_b * turn_s) * length
    ask_b = (raw_b * turn_c - raw_a * turn_s) * length
    if PACKED:
        # What float16 can't hold of queries goes with the scales of the keys.
        size = gl.max(gl.max(gl.maximum(gl.abs(ask_a), gl.abs(ask_b)), 1), 0)
        size = gl.maximum(size, _LEAST_SCALE)
        ask_a = ask_a / size
        ask_b = ask_b / size
        scale = scale * size
    else:
        ask_a *= scale
        ask_b *= scale

    slot = gl.arange(0, PAGE, layout=gl.SliceLayout(1, KEYS))
    word = gl.arange(0, ROW // 2, layout=gl.SliceLayout(0, KEYS))
    key_words = slot[:, None] * ROW + word[None, :]
    cos_at = cos + slot[:, None] * cos_row
    sin_at = sin + (slot[:, None] * sin_row + HALF)
    if PACKED:
        at = word[None, :] * 4
        turn_c0 = float16_pairs(gl.load(cos_at + at), gl.load(cos_at + (at + 1)))
        turn_c1 = float16_pairs(gl.load(cos_at + (at + 2)), gl.load(cos_at + (at + 3)))
        turn_s0 = float16_pairs(gl.load(sin_at + at), gl.load(sin_at + (at + 1)))
        turn_s1 = float16_pairs(gl.load(sin_at + (at + 2)), gl.load(sin_at + (at + 3)))
    else:
        at = word[None, :] * 2
        turn_c0 = gl.load(cos_at + at).to(gl.int32, bitcast=True)
        turn_c1 = gl.load(cos_at + (at + 1)).to(gl.int32, bitcast=True)
        turn_s0 = gl.load(sin_at + at).to(gl.int32, bitcast=True)
        turn_s1 = gl.load(sin_at + (at + 1)).to(gl.int32, bitcast=True)

    warp = gl.arange(0, _WARPS, layout=gl.SliceLayout(1, gl.SliceLayout(2, VALUES)))
    pair = gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(2, VALUES)))
    word = gl.arange(0, ROW, layout=gl.SliceLayout(0, gl.SliceLayout(1, VALUES)))
    even = warp[:, None, None] * _TOKENS + pair[None, :, None] * 2
    value_words = even * ROW + word[None, None, :]

    key_slot = gl.arange(0, PAGE, layout=gl.SliceLayout(1, SCORES))
    warp = gl.arange(0, _WARPS, layout=gl.SliceLayout(1, gl.SliceLayout(2, READ)))
    one = gl.arange(0, _TOKENS, layout=gl.SliceLayout(0, gl.SliceLayout(2, READ)))
    slot = warp[:, None] * _TOKENS + one[None, :]

    highest = gl.full([_WARPS, ROWS], -1e30, gl.float32, gl.SliceLayout(1, READ))
    sums = gl.zeros([_WARPS, _TOKENS, ROWS], gl.float32, READ)
    read = gl.zeros([_WARPS, WIDTH, ROWS], gl.float32, READ)
    unit = gl.full([_WARPS], _LEAST_SCALE, gl.float32, gl.SliceLayout(1, gl.SliceLayout(2, READ)))
    base = tokens - count
    shared = gl.allocate_shared_memory(
        KIND, [ROWS, WIDTH], gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    )
    begin = part * each
    end = gl.minimum(begin + each, pages)
    ref = refs + (first_page + begin) * 4
    page, first, used, start = _page_of(ref)
    start -= first
    cell = data + (page.to(gl.int64) * page_stride + layer_offset + kv_head * head_stride)
    # Of the page whose turn it is; while it is read the next one's are fetched.
    key_a = gl.load(cell + key_words)
    key_b = gl.load(cell + (key_words + ROW // 2))
    value_0 = gl.load(cell + value_stride + value_words)
    value_1 = gl.load(cell + value_stride + (value_words + ROW))
    turn_c, turn_s = _turns(cos, sin, cos_row, sin_row, tokens - 1 - start, HALF, ASKED)
    if PACKED:
        at = scales + (page.to(gl.int64) * page_stride + layer_offset + kv_head * head_stride)
        key_scale = gl.load(at + key_scales + (key_slot if EACH else key_slot // 32))
        value_scale = gl.load(at + value_stride + value_scales + (slot if EACH else slot // 32))
    ref = refs + (first_page + gl.minimum(begin + 1, end - 1)) * 4
    next_page, next_first, next_used, next_start = _page_of(ref)
    for index in range(begin, end):
        # Queries by what is left of the angle.
        left_a = (ask_a * turn_c[None, :] - ask_b * turn_s[None, :]).to(KIND)
        left_b = (ask_b * turn_c[None, :] + ask_a * turn_s[None, :]).to(KIND)
        both = gl.permute(gl.join(left_a, left_b), [0, 2, 1])
        shared.store(gl.reshape(both, [ROWS, WIDTH]))
        turned_q = inner_places(shared.load(query_layout(ROWS, WIDTH, ROW // 2)), ROW // 2)
        turned_q = gl.convert_layout(turned_q, gl.DotOperandLayout(1, SCORES, 2), True)
        keys = turned_keys(key_a, key_b, turn_c0, turn_c1, turn_s0, turn_s1, CODING, KIND)
        keys = gl.convert_layout(keys, gl.DotOperandLayout(0, SCORES, 2), True)

        page = next_page
        cell = data + (page.to(gl.int64) * page_stride + layer_offset + kv_head * head_stride)
        key_a = gl.load(cell + key_words)
        key_b = gl.load(cell + (key_words + ROW // 2))
        angle = tokens - 1 - (next_start - next_first)
        turn_c, turn_s = _turns(cos, sin, cos_row, sin_row, angle, HALF, ASKED)
        scores = mma_v2(keys, turned_q, gl.zeros([PAGE, ROWS], gl.float32, SCORES))
        if PACKED:
            scores *= (key_scale * scale)[:, None]
            at = scales + (page.to(gl.int64) * page_stride + layer_offset + kv_head * head_stride)
            key_scale = gl.load(at + key_scales + (key_slot if EACH else key_slot // 32))
        scores = gl.convert_layout(gl.reshape(scores, [_WARPS, _TOKENS, ROWS]), READ, True)

        whole = (first == 0) & (used == PAGE) & (start + PAGE <= base + 1)
        if not whole:
            column = gl.arange(0, ROWS, layout=gl.SliceLayout(0, gl.SliceLayout(1, READ)))
            position = base + (tile * ROWS + column) // GROUP
            there = (slot >= first) & (slot < first + used) & (slot < tokens - start)
            seen = there[:, :, None] & (start + slot[:, :, None] <= position[None, None, :])
            scores = gl.where(seen, scores, float("-inf"))
            inside = (even >= first) & (even < first + used) & (even < tokens - start)
            value_0 = gl.where(inside, value_0, 0)
            odd = even + 1
            inside = (odd >= first) & (odd < first + used) & (odd < tokens - start)
            value_1 = gl.where(inside, value_1, 0)
            if PACKED:
                value_scale = gl.where(there, value_scale, 0.0)

        raised = gl.maximum(highest, gl.max(scores, 1))
        weights = gl.exp2(scores - raised[:, None, :])
        fade = gl.exp2(highest - raised)
        sums = sums * fade[:, None, :] + weights
        highest = raised
        if PACKED:
            # Codes are exact: their scale goes with the weight, as a share of the largest one
            # so far, since float16 holds less than a scale may be.
            larger = gl.maximum(unit, gl.max(value_scale, 1))
            share = inverse(larger)
            weights *= (value_scale * share[:, None])[:, :, None]
            fade *= gl.convert_layout(unit * share, ONE, True)[:, None]
            unit = larger
            value_scale = gl.load(at + value_stride + value_scales + (slot if EACH else slot // 32))
        moved = transposed_weights(weights.to(KIND))
        moved = gl.convert_layout(moved, gl.DotOperandLayout(1, READ, 2), True)
        values = value_pairs(value_0, value_1, CODING, KIND)
        values = gl.convert_layout(values, gl.DotOperandLayout(0, READ, 2), True)
        value_0 = gl.load(cell + value_stride + value_words)
        value_1 = gl.load(cell + value_stride + (value_words + ROW))
        read = mma_v2(values, moved, read * fade[:, None, :])

        first = next_first
        used = next_used
        start = next_start - next_first
        ref = refs + (first_page + gl.minimum(index + 2, end - 1)) * 4
        next_page, next_first, next_used, next_start = _page_of(ref)

    top = gl.max(highest, 0)
    share = gl.exp2(highest - top[None, :])
    total = gl.sum(gl.sum(sums * share[:, None, :], 1), 0)
    if PACKED:
        share *= gl.convert_layout(unit, ONE, True)[:, None]
    result = channel_rows(gl.sum(read * share[:, None, :], 0), ROW)
    result = gl.convert_layout(result, RESULT)
    row = tile * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(0, RESULT))
    token = row // GROUP
    order = ahead - 1 - part if PACKED else ahead + part
    line = (order * rows.to(gl.int64) + first_row + token) * HEADS + kv_head * GROUP + row % GROUP
    channel = gl.arange(0, WIDTH, layout=gl.SliceLayout(1, RESULT))
    real = token < count
    gl.store(partial + (line[None, :] * WIDTH + channel[:, None]), result, mask=real[None, :])
    row = tile * ROWS + gl.arange(0, ROWS, layout=top.type.layout)
    token = row // GROUP
    line = (order * rows.to(gl.int64) + first_row + token) * HEADS + kv_head * GROUP + row % GROUP
    gl.store(marks + line * 2, top, mask=token < count)
    gl.store(marks + line * 2 + 1, gl.convert_layout(total, top.type.layout), mask=token < count)
