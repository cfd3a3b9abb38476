# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""The device code of `hopper`: one program's loader and consumers.

Work items are tiles of 64 query rows per consumer; the loader and the consumers walk through the
same items and tiles of keys, each for itself, and meet at barriers. Tile c of the keys travels with
tile c - 1 of the values: they are used together, so one barrier says that both are there and one
that both may be overwritten.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)


@gluon.jit
def _work_item(table, work, sizes, ROWS: gl.constexpr):
    per_block, kv_heads, blocks = sizes
    # The longest tiles of a block first; programs side by side share a block's keys in the cache.
    tile = per_block - 1 - work % per_block
    kv_head = work // per_block % kv_heads
    entry = table + (blocks - 1 - work // (per_block * kv_heads)) * 7
    return tile * ROWS, kv_head, entry


@gluon.jit
def _tiles_of(entry, first_row, GROUP: gl.constexpr, ROWS: gl.constexpr, KEYS: gl.constexpr):
    # Tiles seen whole: first those of the prefix, then own ones. Then, with a mask, the prefix's
    # end and the diagonal.
    length = gl.load(entry + 1)
    seen = gl.load(entry + 4)
    lead = gl.load(entry + 6)
    last_token = gl.minimum((first_row + ROWS - 1) // GROUP, length - 1)
    prefix_whole = seen // KEYS
    own_whole = (lead + first_row // GROUP + 1) // KEYS
    tail = gl.minimum(seen % KEYS, 1)
    count = prefix_whole + tail + gl.cdiv(lead + last_token + 1, KEYS)
    count = gl.where(first_row < length * GROUP, count, 0)
    return length, seen, lead, prefix_whole, own_whole, tail, count


@gluon.jit
def _load_tiles(
    descriptors,
    table,
    shared,
    key_rows,
    sizes,
    GROUP: gl.constexpr,
    ROWS: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
):
    k_desc, v_desc = descriptors
    q_tiles, k_tiles, v_tiles, ready, empty = shared
    per_block, kv_heads, blocks = sizes
    size: gl.constexpr = k_desc.block_type.nbytes
    counter = 0
    value_row = 0
    for work in range(gl.program_id(0), per_block * kv_heads * blocks, gl.num_programs(0)):
        first_row, kv_head, entry = _work_item(table, work, sizes, ROWS)
        length, seen, lead, prefix_whole, own_whole, tail, count = _tiles_of(
            entry, first_row, GROUP, ROWS, KEYS
        )
        prefix = gl.load(entry + 3) + kv_head * key_rows
        own = gl.load(entry + 5) + kv_head * key_rows
        whole = prefix_whole + own_whole
        for index in range(count):
            # The tail, if there is one, stands between the whole tiles and the diagonal.
            past = index - prefix_whole - gl.where(index >= whole, tail, 0)
            at_tail = (index == whole) & (tail > 0)
            in_prefix = (index < prefix_whole) | at_tail
            prefix_index = gl.where(at_tail, prefix_whole, index)
            row = gl.where(in_prefix, prefix + prefix_index * KEYS, own + past * KEYS)
            stage = counter % STAGES
            full = ready.index(stage)
            mbarrier.wait(empty.index(stage), counter // STAGES & 1 ^ 1)
            # The first keys of all have no values to go with.
            mbarrier.expect(full, size, pred=counter == 0)
            mbarrier.expect(full, 2 * size, pred=counter > 0)
            tma.async_copy_global_to_shared(k_desc, [row, 0], full, k_tiles.index(stage))
            v_tile = v_tiles.index((counter + STAGES - 1) % STAGES)
            tma.async_copy_global_to_shared(v_desc, [value_row, 0], full, v_tile, pred=counter > 0)
            value_row = row
            counter += 1
    if counter > 0:
        stage = counter % STAGES
        full = ready.index(stage)
        mbarrier.wait(empty.index(stage), counter // STAGES & 1 ^ 1)
        mbarrier.expect(full, size)
        v_tile = v_tiles.index((counter + STAGES - 1) % STAGES)
        tma.async_copy_global_to_shared(v_desc, [value_row, 0], full, v_tile)


@gluon.jit
def _load_queries(
    pointers, strides, scale, row, length, kv_head, entry, GROUP: gl.constexpr, WIDTH: gl.constexpr
):
    # [64, WIDTH] rotated, scaled for exp2: log2(e) goes into the queries with the scale.
    q, out, cos, sin, table = pointers
    q_row, q_head, out_row, out_head, cos_row, sin_row = strides
    column = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, _queries_layout(WIDTH)))
    token = row // GROUP
    inside = (token < length)[:, None]
    start = (gl.load(entry) + token).to(gl.int64) * q_row
    start += (kv_head * GROUP + row % GROUP).to(gl.int64) * q_head
    rolled = (column + WIDTH // 2) % WIDTH
    plain = gl.load(q + (start[:, None] + column[None, :]), mask=inside, other=0.0)
    shifted = gl.load(q + (start[:, None] + rolled[None, :]), mask=inside, other=0.0)
    angle = (gl.load(entry + 2) + token).to(gl.int64)[:, None]
    turn_c = gl.load(cos + angle * cos_row + column[None, :], mask=inside, other=0.0)
    turn_s = gl.load(sin + angle * sin_row + column[None, :], mask=inside, other=0.0)
    turned = plain.to(gl.float32) * turn_c + shifted.to(gl.float32) * turn_s
    return (turned * scale).to(q.dtype.element_ty)


@gluon.constexpr_function
def _queries_layout(width):
    across = width // 8
    return gl.BlockedLayout([1, 8], [32 // across, across], [4, 1], [1, 0])


@gluon.constexpr_function
def _product_layout(columns):
    return gl.NVMMADistributedLayout([3, 0], [4, 1], [16, columns, 16])


@gluon.jit
def _partial_sums(weights, KEYS: gl.constexpr):
    # [rows, 4]: each thread sums what it holds of a row; the four threads of a row meet at the end.
    return gl.sum(gl.sum(gl.reshape(weights, [64, KEYS // 8, 4, 2]), 3), 1)


@gluon.jit
def _soften(scores, highest):
    raised = gl.maximum(highest, gl.max(scores, 1))
    return gl.exp2(scores - raised[:, None]), gl.exp2(highest - raised), raised


@gluon.jit
def _hide(scores, limit, KEYS: gl.constexpr):
    offset = gl.arange(0, KEYS, layout=gl.SliceLayout(0, _product_layout(KEYS)))
    return gl.where(offset[None, :] < limit[:, None], scores, float("-inf"))


@gluon.jit
def _step(
    q_tile,
    shared,
    counter,
    state,
    limit,
    MASKED: gl.constexpr,
    WIDTH: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
):
    RESULT: gl.constexpr = _product_layout(WIDTH)
    q_tiles, k_tiles, v_tiles, ready, empty = shared
    weights, read, highest, total = state
    stage = counter % STAGES
    mbarrier.wait(ready.index(stage), counter // STAGES & 1)
    k_tile = k_tiles.index(stage).permute((1, 0))
    v_tile = v_tiles.index((counter + STAGES - 1) % STAGES)
    nothing = gl.zeros([64, KEYS], gl.float32, _product_layout(KEYS))
    scores = warpgroup_mma(q_tile, k_tile, nothing, use_acc=False, is_async=True)
    read = warpgroup_mma(weights, v_tile, read, is_async=True)
    scores = warpgroup_mma_wait(1, deps=(scores,))
    if MASKED:
        scores = _hide(scores, limit, KEYS)
    fresh, fade, highest = _soften(scores, highest)
    sums = _partial_sums(fresh, KEYS)
    total = total * gl.convert_layout(fade, gl.SliceLayout(1, sums.type.layout))[:, None] + sums
    read = warpgroup_mma_wait(0, deps=(read,))
    mbarrier.arrive(empty.index(stage), count=1)
    read = read * gl.convert_layout(fade, gl.SliceLayout(1, RESULT))[:, None]
    weights = gl.convert_layout(fresh.to(weights.dtype), gl.DotOperandLayout(0, RESULT, 2))
    return weights, read, highest, total


@gluon.jit
def _consume_tiles(
    pointers,
    strides,
    sizes,
    shared,
    scale,
    PART: gl.constexpr,
    GROUP: gl.constexpr,
    ROWS: gl.constexpr,
    WIDTH: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
):
    SCORES: gl.constexpr = _product_layout(KEYS)
    RESULT: gl.constexpr = _product_layout(WIDTH)
    q, out, cos, sin, table = pointers
    q_row, q_head, out_row, out_head, cos_row, sin_row = strides
    q_tiles, k_tiles, v_tiles, ready, empty = shared
    per_block, kv_heads, blocks = sizes
    q_tile = q_tiles.index(PART)
    counter = 0
    for work in range(gl.program_id(0), per_block * kv_heads * blocks, gl.num_programs(0)):
        first_row, kv_head, entry = _work_item(table, work, sizes, ROWS)
        length, seen, lead, prefix_whole, own_whole, tail, count = _tiles_of(
            entry, first_row, GROUP, ROWS, KEYS
        )
        if count > 0:
            mine = first_row + PART * 64
            row = mine + gl.arange(0, 64, layout=gl.SliceLayout(1, _queries_layout(WIDTH)))
            asked = _load_queries(
                pointers, strides, scale, row, length, kv_head, entry, GROUP, WIDTH
            )
            q_tile.store(asked)
            fence_async_shared()

            token = (mine + gl.arange(0, 64, layout=gl.SliceLayout(1, SCORES))) // GROUP
            whole = prefix_whole + own_whole
            # What the first tile lets each row see: a part of the prefix or of the row's own keys.
            limit = gl.where(tail > 0, seen, lead + token + 1)
            stage = counter % STAGES
            mbarrier.wait(ready.index(stage), counter // STAGES & 1)
            k_tile = k_tiles.index(stage).permute((1, 0))
            nothing = gl.zeros([64, KEYS], gl.float32, SCORES)
            scores = warpgroup_mma(q_tile, k_tile, nothing, use_acc=False, is_async=True)
            scores = warpgroup_mma_wait(0, deps=(scores,))
            mbarrier.arrive(empty.index(stage), count=1)
            if whole == 0:
                scores = _hide(scores, limit, KEYS)
            # Finite, so that a row with nothing in view yet stays free of inf - inf.
            highest = gl.full([64], -1e30, gl.float32, gl.SliceLayout(1, SCORES))
            fresh, fade, highest = _soften(scores, highest)
            total = _partial_sums(fresh, KEYS)
            weights = gl.convert_layout(
                fresh.to(q.dtype.element_ty), gl.DotOperandLayout(0, RESULT, 2)
            )
            read = gl.zeros([64, WIDTH], gl.float32, RESULT)
            counter += 1
            state = (weights, read, highest, total)
            for _ in range(1, whole):
                state = _step(q_tile, shared, counter, state, limit, False, WIDTH, KEYS, STAGES)
                counter += 1
            for index in range(gl.maximum(whole, 1), count):
                at_tail = (index == whole) & (tail > 0)
                past = index - prefix_whole - tail
                limit = gl.where(
                    at_tail, seen - prefix_whole * KEYS, lead + token + 1 - past * KEYS
                )
                state = _step(q_tile, shared, counter, state, limit, True, WIDTH, KEYS, STAGES)
                counter += 1
            weights, read, highest, total = state
            # The last values come with the next item's first keys, whose turn frees both.
            mbarrier.wait(ready.index(counter % STAGES), counter // STAGES & 1)
            v_tile = v_tiles.index((counter + STAGES - 1) % STAGES)
            read = warpgroup_mma(weights, v_tile, read, is_async=True)
            read = warpgroup_mma_wait(0, deps=(read,))

            total = gl.convert_layout(gl.sum(total, 1), gl.SliceLayout(1, RESULT))
            row = mine + gl.arange(0, 64, layout=gl.SliceLayout(1, RESULT))
            column = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, RESULT))
            token = row // GROUP
            start = (gl.load(entry) + token).to(gl.int64) * out_row
            start += (kv_head * GROUP + row % GROUP).to(gl.int64) * out_head
            result = (read / total[:, None]).to(out.dtype.element_ty)
            place = out + (start[:, None] + column[None, :])
            gl.store(place, result, mask=(token < length)[:, None])


# Else it would be compiled anew, which takes seconds in which nobody is served, for the first group
# of a single block, of 16 blocks, of short ones.
@gluon.jit(do_not_specialize=["key_rows", "per_block", "blocks"])
def attention_kernel(
    q,
    k_desc,
    v_desc,
    out,
    table,
    cos,
    sin,
    q_row,
    q_head,
    out_row,
    out_head,
    cos_row,
    sin_row,
    key_rows,
    per_block,
    kv_heads,
    blocks,
    scale,
    GROUP: gl.constexpr,
    WIDTH: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
    CONSUMERS: gl.constexpr,
    REGISTERS: gl.constexpr,
):
    """`k_desc`, `v_desc`: tiles [KEYS, WIDTH] of packed keys and values as [heads * rows, WIDTH];
    `sizes`: tiles of the longest block, key-value heads, blocks. See `hopper`."""
    ROWS: gl.constexpr = 64 * CONSUMERS
    dtype: gl.constexpr = k_desc.dtype
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, KEYS, WIDTH], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, KEYS, WIDTH], v_desc.layout)
    q_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, WIDTH], dtype)
    q_tiles = gl.allocate_shared_memory(dtype, [CONSUMERS, 64, WIDTH], q_layout)
    ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(ready.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=CONSUMERS)
    shared = (q_tiles, k_tiles, v_tiles, ready, empty)
    tensors = (q, out, cos, sin, table)
    strides = (q_row, q_head, out_row, out_head, cos_row, sin_row)
    sizes = (per_block, kv_heads, blocks)
    descs = (k_desc, v_desc)
    # Written out twice: constants stay constants only in tuples that are arguments themselves.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (
                    _consume_tiles,
                    (tensors, strides, sizes, shared, scale, 0, GROUP, ROWS, WIDTH, KEYS, STAGES),
                ),
                (
                    _consume_tiles,
                    (tensors, strides, sizes, shared, scale, 1, GROUP, ROWS, WIDTH, KEYS, STAGES),
                ),
                (_load_tiles, (descs, table, shared, key_rows, sizes, GROUP, ROWS, KEYS, STAGES)),
            ],
            [4, 1],
            [REGISTERS, 24],
        )
    else:
        gl.static_assert(CONSUMERS == 3)
        gl.warp_specialize(
            [
                (
                    _consume_tiles,
                    (tensors, strides, sizes, shared, scale, 0, GROUP, ROWS, WIDTH, KEYS, STAGES),
                ),
                (
                    _consume_tiles,
                    (tensors, strides, sizes, shared, scale, 1, GROUP, ROWS, WIDTH, KEYS, STAGES),
                ),
                (
                    _consume_tiles,
                    (tensors, strides, sizes, shared, scale, 2, GROUP, ROWS, WIDTH, KEYS, STAGES),
                ),
                (_load_tiles, (descs, table, shared, key_rows, sizes, GROUP, ROWS, KEYS, STAGES)),
            ],
            [4, 4, 1],
            [REGISTERS, REGISTERS, 24],
        )
