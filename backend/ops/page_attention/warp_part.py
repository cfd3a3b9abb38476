# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Parts of page lists, as `part` reads them, for a few query rows; a warp has tokens of its own.

All lists' pages, one after another, are shared out evenly among the programs, so that all of them
end at the same time whatever the lengths of the lists; a program may have parts of several lists.
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
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2

from backend.ops.page_attention.warp_stages import (
    LINE,
    copy_page,
    key_stages,
    number_stages,
    place_of,
    value_stages,
)
from backend.ops.page_attention.warp_words import (
    channel_rows,
    inner_places,
    inverse,
    key_layout,
    query_layout,
    table_words,
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
def _sum(a, b):
    return a + b


@gluon.jit
def _over_warps(read):
    # Half at a time: that takes half as much shared memory.
    half: gl.constexpr = read.shape[1] // 2
    rows: gl.constexpr = read.shape[2]
    apart = gl.permute(gl.reshape(read, [read.shape[0], 2, half, rows]), [0, 2, 3, 1])
    low, high = gl.split(apart)
    both = gl.join(gl.sum(low, 0), gl.sum(high, 0))
    return gl.reshape(gl.permute(both, [2, 0, 1]), [2 * half, rows])


@gluon.jit(do_not_specialize=["rows", "ahead", "entry_row", "asked"])
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
    asked,
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
    STAGES: gl.constexpr,
    LISTS: gl.constexpr,
):
    """As `part_kernel`, but `data` is in words of 4 bytes (int32), and so are strides and fields;
    `scales` are the same words in float32. Tokens and cells have no gaps between them. `asked`
    requests, at most LISTS, have at most ROWS rows (times heads of a group) each."""
    gl.static_assert(PAGE == _WARPS * _TOKENS)
    PACKED: gl.constexpr = CODING != "plain"
    HALF: gl.constexpr = WIDTH // 2
    ROW: gl.constexpr = WIDTH // 4 if PACKED else WIDTH // 2
    KIND: gl.constexpr = gl.float16 if PACKED else q.dtype.element_ty
    VALUES: gl.constexpr = value_layout(ROW)
    ASKED: gl.constexpr = gl.BlockedLayout([1, 4], [32 * 4 // HALF, HALF // 4], [_WARPS, 1], [1, 0])
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [_WARPS, 1], [16, 8])
    READ: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [_WARPS, 1, 1], [1, 16, 8])
    ONE: gl.constexpr = gl.SliceLayout(1, gl.SliceLayout(1, READ))
    RESULT: gl.constexpr = gl.BlockedLayout([4, 1], [32, 1], [1, _WARPS], [0, 1])

    program = gl.program_id(0)
    kv_head = gl.program_id(1)
    own = gl.arange(0, LISTS, layout=LINE)
    entries = requests + own * entry_row
    there = own < asked
    lengths = gl.load(entries + 1, mask=there, other=0)
    ends = gl.associative_scan(lengths, 0, _sum)
    every = gl.sum(lengths, 0)
    each = gl.maximum(gl.cdiv(every, gl.num_programs(0)), LEAST)
    if (program == 0) & (kv_head == 0):
        # Parts of each list, none where it has no page.
        found = gl.where(lengths > 0, (ends - 1) // each - (ends - lengths) // each + 1, 0)
        bound = ahead - found if PACKED else ahead + found
        line = gl.load(entries + 2, mask=there, other=0)
        count = gl.load(entries + 3, mask=there, other=0)
        for token in range(ROWS):
            gl.store(used_parts + (line + token), bound, mask=token < count)

    at = program * each
    stop = gl.minimum(at + each, every)
    if at >= stop:
        return
    warp = gl.arange(0, _WARPS, layout=gl.SliceLayout(1, gl.SliceLayout(2, VALUES)))
    pair = gl.arange(0, 8, layout=gl.SliceLayout(0, gl.SliceLayout(2, VALUES)))
    even = (warp[:, None] * _TOKENS + pair[None, :] * 2)[:, :, None]
    warp = gl.arange(0, _WARPS, layout=gl.SliceLayout(1, gl.SliceLayout(2, READ)))
    one = gl.arange(0, _TOKENS, layout=gl.SliceLayout(0, gl.SliceLayout(2, READ)))
    slot = warp[:, None] * _TOKENS + one[None, :]
    row = gl.arange(0, ROWS, layout=gl.SliceLayout(1, ASKED))
    channel = gl.arange(0, HALF, layout=gl.SliceLayout(0, ASKED))

    shared = gl.allocate_shared_memory(
        KIND, [ROWS, WIDTH], gl.SwizzledSharedLayout(8, 1, 8, [1, 0])
    )
    keys_a = key_stages(STAGES, ROW // 2)
    keys_b = key_stages(STAGES, ROW // 2)
    values_0 = value_stages(STAGES, ROW)
    values_1 = value_stages(STAGES, ROW)
    cosines = number_stages(STAGES, HALF)
    sines = number_stages(STAGES, HALF)
    key_units = number_stages(STAGES if PACKED else 1, PAGE)
    value_units = number_stages(STAGES if PACKED else 1, PAGE)
    stages = (keys_a, keys_b, values_0, values_1, key_units, value_units, cosines, sines)
    place = layer_offset + kv_head.to(gl.int64) * head_stride
    pool = (data, scales, page_stride, place, value_stride, key_scales, value_scales)
    tables = (cos, sin, cos_row, sin_row)

    while at < stop:
        request = gl.sum((ends <= at).to(gl.int32), 0)
        passed = gl.max(gl.where(ends <= at, ends, 0), 0)
        entry = requests + request * entry_row
        first_page = gl.load(entry)
        pages = gl.load(entry + 1)
        first_row = gl.load(entry + 2)
        count = gl.load(entry + 3)
        tokens = gl.load(entry + 4)
        part = program - passed // each
        begin = at - passed
        end = gl.minimum(stop - passed, pages)
        at = passed + end
        for index in range(begin, gl.minimum(begin + (STAGES - 1), end)):
            next_page, next_start = place_of(refs + (first_page + index) * 4)
            copy_page(
                next_page,
                next_start,
                tokens - 1,
                index % STAGES,
                pool,
                tables,
                stages,
                CODING,
                EACH,
                ROW,
                HALF,
            )
            async_copy.commit_group()
        for _ in range(gl.minimum(begin + (STAGES - 1), end), begin + (STAGES - 1)):
            async_copy.commit_group()

        # Looked up a page early: its copy would wait for that.
        later = gl.minimum(begin + (STAGES - 1), end - 1)
        next_page, next_start = place_of(refs + (first_page + later) * 4)
        # While the first pages come.
        cos_0, cos_1, sin_0, sin_1 = table_words(cos, sin, cos_row, sin_row, ROW, HALF, CODING)
        # Queries turned back to the last one's place: then all turn alike at a page.
        token = row // GROUP
        real = (token < count)[:, None]
        line = (first_row + token).to(gl.int64) * q_row + (kv_head * GROUP + row % GROUP) * q_head
        from_q = q + (line[:, None] + channel[None, :])
        raw_a = gl.load(from_q, mask=real, other=0.0).to(gl.float32)
        raw_b = gl.load(from_q + HALF, mask=real, other=0.0).to(gl.float32)
        back = gl.maximum(count - 1 - token, 0)
        back_c = gl.load(cos + (back[:, None] * cos_row + channel[None, :]), mask=real, other=1.0)
        turn = back[:, None] * sin_row + (HALF + channel)[None, :]
        back_s = gl.load(sin + turn, mask=real, other=0.0)
        # A table may have a factor of attention in it, which the turns below bring.
        length = gl.rsqrt(back_c * back_c + back_s * back_s)
        ask_a = (raw_a * back_c + raw_b * back_s) * length
        ask_b = (raw_b * back_c - raw_a * back_s) * length
        if PACKED:
            # What float16 can't hold of queries goes with the scales of the keys.
            size = gl.max(gl.max(gl.maximum(gl.abs(ask_a), gl.abs(ask_b)), 1), 0)
            size = gl.maximum(size, _LEAST_SCALE)
            ask_a = ask_a / size
            ask_b = ask_b / size
            key_factor = scale * size
        else:
            ask_a *= scale
            ask_b *= scale

        highest = gl.full([_WARPS, ROWS], -1e30, gl.float32, gl.SliceLayout(1, READ))
        sums = gl.zeros([_WARPS, _TOKENS, ROWS], gl.float32, READ)
        read = gl.zeros([_WARPS, WIDTH, ROWS], gl.float32, READ)
        unit = gl.full(
            [_WARPS], _LEAST_SCALE, gl.float32, gl.SliceLayout(1, gl.SliceLayout(2, READ))
        )
        base = tokens - count
        for index in range(begin, end):
            stage = index % STAGES
            async_copy.wait_group(STAGES - 2)
            turn_c = cosines.index(stage).load(gl.SliceLayout(0, ASKED))
            turn_s = sines.index(stage).load(gl.SliceLayout(0, ASKED))
            key_a = keys_a.index(stage).load(key_layout(ROW // 2))
            key_b = keys_b.index(stage).load(key_layout(ROW // 2))
            value_0 = values_0.index(stage).load(VALUES)
            value_1 = values_1.index(stage).load(VALUES)
            if PACKED:
                key_scale = key_units.index(stage).load(gl.SliceLayout(1, SCORES))
                value_scale = (
                    value_units.index(stage)
                    .reshape([_WARPS, _TOKENS])
                    .load(gl.SliceLayout(2, READ))
                )
            ref = refs + (first_page + index) * 4
            first = gl.load(ref + 1)
            used = gl.load(ref + 2)
            start = gl.load(ref + 3) - first
            # Queries by what is left of the angle.
            left_a = (ask_a * turn_c[None, :] - ask_b * turn_s[None, :]).to(KIND)
            left_b = (ask_b * turn_c[None, :] + ask_a * turn_s[None, :]).to(KIND)
            both = gl.permute(gl.join(left_a, left_b), [0, 2, 1])
            shared.store(gl.reshape(both, [ROWS, WIDTH]))
            turned_q = inner_places(shared.load(query_layout(ROWS, WIDTH, ROW // 2)), ROW // 2)
            turned_q = gl.convert_layout(turned_q, gl.DotOperandLayout(1, SCORES, 2), True)
            # Behind the wait of all warps for the queries nobody reads the stage before any more.
            if index + (STAGES - 1) < end:
                copy_page(
                    next_page,
                    next_start,
                    tokens - 1,
                    (index + (STAGES - 1)) % STAGES,
                    pool,
                    tables,
                    stages,
                    CODING,
                    EACH,
                    ROW,
                    HALF,
                )
            async_copy.commit_group()
            later = gl.minimum(index + STAGES, end - 1)
            next_page, next_start = place_of(refs + (first_page + later) * 4)
            keys = turned_keys(key_a, key_b, cos_0, cos_1, sin_0, sin_1, CODING, KIND)
            keys = gl.convert_layout(keys, gl.DotOperandLayout(0, SCORES, 2), True)
            scores = mma_v2(keys, turned_q, gl.zeros([PAGE, ROWS], gl.float32, SCORES))
            if PACKED:
                scores *= (key_scale * key_factor)[:, None]
            scores = gl.convert_layout(gl.reshape(scores, [_WARPS, _TOKENS, ROWS]), READ, True)

            whole = (first == 0) & (used == PAGE) & (start + PAGE <= base + 1)
            if not whole:
                column = gl.arange(0, ROWS, layout=gl.SliceLayout(0, gl.SliceLayout(1, READ)))
                position = base + column // GROUP
                held = (slot >= first) & (slot < first + used) & (slot < tokens - start)
                seen = held[:, :, None] & (start + slot[:, :, None] <= position[None, None, :])
                scores = gl.where(seen, scores, float("-inf"))
                inside = (even >= first) & (even < first + used) & (even < tokens - start)
                value_0 = gl.where(inside, value_0, 0)
                odd = even + 1
                inside = (odd >= first) & (odd < first + used) & (odd < tokens - start)
                value_1 = gl.where(inside, value_1, 0)
                if PACKED:
                    value_scale = gl.where(held, value_scale, 0.0)

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
            moved = transposed_weights(weights.to(KIND))
            moved = gl.convert_layout(moved, gl.DotOperandLayout(1, READ, 2), True)
            values = value_pairs(value_0, value_1, CODING, KIND)
            values = gl.convert_layout(values, gl.DotOperandLayout(0, READ, 2), True)
            read = mma_v2(values, moved, read * fade[:, None, :])

        top = gl.max(highest, 0)
        share = gl.exp2(highest - top[None, :])
        total = gl.sum(gl.sum(sums * share[:, None, :], 1), 0)
        if PACKED:
            share *= gl.convert_layout(unit, ONE, True)[:, None]
        result = channel_rows(_over_warps(read * share[:, None, :]), ROW)
        result = gl.convert_layout(result, RESULT)
        order = ahead - 1 - part if PACKED else ahead + part
        line = order * rows.to(gl.int64) + first_row
        column = gl.arange(0, ROWS, layout=gl.SliceLayout(0, RESULT))
        real = column // GROUP < count
        row_of = (line + column // GROUP) * HEADS + kv_head * GROUP + column % GROUP
        wide = gl.arange(0, WIDTH, layout=gl.SliceLayout(1, RESULT))
        gl.store(partial + (row_of[None, :] * WIDTH + wide[:, None]), result, mask=real[None, :])
        column = gl.arange(0, ROWS, layout=top.type.layout)
        real = column // GROUP < count
        row_of = (line + column // GROUP) * HEADS + kv_head * GROUP + column % GROUP
        gl.store(marks + row_of * 2, top, mask=real)
        gl.store(marks + row_of * 2 + 1, gl.convert_layout(total, top.type.layout), mask=real)
