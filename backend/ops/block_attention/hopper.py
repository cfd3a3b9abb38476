"""Block reading attention for Hopper (compute capability 9.0), written in Gluon.

One warp fetches tiles of keys and values with the bulk copy engine; two or three warpgroups of 64
query rows each consume them. A warpgroup starts the scores of the next tile and the product with
the values of the last one together, and works on the softmax while the tensor cores are busy; the
warpgroups drift apart, so that one multiplies while another exponentiates. Programs stay on their
multiprocessor and take tile after tile. Rows of a tile are (token, query head) pairs as in
`kernel`. Source of the overlap: Shah et al., FlashAttention-3 (arXiv 2407.08608).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from backend.ops.block_attention.pack import pack
from backend.ops.block_attention.plan import ReadPlan

_GROUP_ROWS = 64
"""Query rows of a warpgroup: what one wgmma instruction takes."""


@dataclass(frozen=True, slots=True)
class HopperTiles:
    """Warpgroups that consume, keys of a tile, tiles in flight, and the registers of a thread at
    launch and in a consumer."""

    consumers: int
    keys: int
    stages: int
    launch_registers: int
    consumer_registers: int


TILES = {
    64: HopperTiles(3, 128, 4, 128, 160),
    128: HopperTiles(2, 128, 2, 168, 240),
}
"""By head size."""


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    tiles: HopperTiles | None = None,
) -> torch.Tensor:
    """See the package. Raises ValueError for what this kernel is not made for."""
    heads, width = q.shape[1:]
    if width not in TILES or q.dtype not in (torch.float16, torch.bfloat16):
        raise ValueError(f"hopper takes heads of {sorted(TILES)} in 16 bit, not {width} {q.dtype}")
    if q.device.type != "cuda" or torch.cuda.get_device_capability(q.device)[0] != 9:
        raise ValueError("hopper needs a GPU of compute capability 9.0; use triton")
    tiles = tiles or TILES[width]
    keys, values = pack(k, v, plan, extra, cos, sin)
    kv_heads, rows, _ = keys.shape
    group = heads // kv_heads
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    per_block = triton.cdiv(plan.longest * group, _GROUP_ROWS * tiles.consumers)
    work = per_block * kv_heads * len(plan.blocks)
    processors = torch.cuda.get_device_properties(q.device).multi_processor_count
    shape = [tiles.keys, width]
    layout = gl.NVMMASharedLayout.get_default_for(shape, _GLUON[q.dtype])
    k_desc, v_desc = (
        TensorDescriptor.from_tensor(packed.view(-1, width), shape, layout)
        for packed in (keys, values)
    )
    _attention_kernel[(min(work, processors),)](
        q,
        k_desc,
        v_desc,
        out,
        plan.table,
        cos,
        sin,
        q.stride(0),
        q.stride(1),
        out.stride(0),
        out.stride(1),
        cos.stride(0),
        sin.stride(0),
        rows,
        per_block,
        kv_heads,
        len(plan.blocks),
        width**-0.5 * math.log2(math.e),
        GROUP=group,
        WIDTH=width,
        KEYS=tiles.keys,
        STAGES=tiles.stages,
        CONSUMERS=tiles.consumers,
        REGISTERS=tiles.consumer_registers,
        num_warps=4,
        maxnreg=tiles.launch_registers,
    )
    return out


_GLUON = {torch.float16: gl.float16, torch.bfloat16: gl.bfloat16}


@gluon.jit
def _work_item(table, work, per_block, kv_heads, blocks, GROUP: gl.constexpr, ROWS: gl.constexpr):
    # The longest tiles of a block first; programs side by side share a block's keys in the cache.
    tile = per_block - 1 - work % per_block
    kv_head = work // per_block % kv_heads
    entry = table + (blocks - 1 - work // (per_block * kv_heads)) * 7
    length = gl.load(entry + 1)
    return tile * ROWS, kv_head, entry, length


@gluon.jit
def _tiles_of(
    entry, first_row, length, GROUP: gl.constexpr, ROWS: gl.constexpr, KEYS: gl.constexpr
):
    # Tiles seen whole: first those of the prefix, then own ones. Then, with a mask, the prefix's
    # end and the diagonal.
    seen = gl.load(entry + 4)
    lead = gl.load(entry + 6)
    last_token = gl.minimum((first_row + ROWS - 1) // GROUP, length - 1)
    prefix_whole = seen // KEYS
    own_whole = (lead + first_row // GROUP + 1) // KEYS
    tail = gl.minimum(seen % KEYS, 1)
    count = prefix_whole + tail + gl.cdiv(lead + last_token + 1, KEYS)
    return seen, lead, prefix_whole, own_whole, tail, gl.where(first_row < length * GROUP, count, 0)


@gluon.jit
def _load_tiles(
    descriptors,
    table,
    buffers,
    barriers,
    key_rows,
    sizes,
    GROUP: gl.constexpr,
    ROWS: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
):
    per_block, kv_heads, blocks = sizes
    k_desc, v_desc = descriptors
    k_tiles, v_tiles = buffers
    k_ready, k_empty, v_ready, v_empty = barriers
    counter = 0
    for work in range(gl.program_id(0), per_block * kv_heads * blocks, gl.num_programs(0)):
        first_row, kv_head, entry, length = _work_item(
            table, work, per_block, kv_heads, blocks, GROUP, ROWS
        )
        seen, lead, prefix_whole, own_whole, tail, count = _tiles_of(
            entry, first_row, length, GROUP, ROWS, KEYS
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
            phase = counter // STAGES & 1
            mbarrier.wait(k_empty.index(stage), phase ^ 1)
            mbarrier.expect(k_ready.index(stage), k_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(
                k_desc, [row, 0], k_ready.index(stage), k_tiles.index(stage)
            )
            mbarrier.wait(v_empty.index(stage), phase ^ 1)
            mbarrier.expect(v_ready.index(stage), v_desc.block_type.nbytes)
            tma.async_copy_global_to_shared(
                v_desc, [row, 0], v_ready.index(stage), v_tiles.index(stage)
            )
            counter += 1


@gluon.jit
def _soften(
    scores, limit, highest, total, MASKED: gl.constexpr, KEYS: gl.constexpr, SCORES: gl.constexpr
):
    if MASKED:
        offset = gl.arange(0, KEYS, layout=gl.SliceLayout(0, SCORES))
        scores = gl.where(offset[None, :] < limit[:, None], scores, float("-inf"))
    raised = gl.maximum(highest, gl.max(scores, 1))
    weights = gl.exp2(scores - raised[:, None])
    fade = gl.exp2(highest - raised)
    return weights, fade, raised, total * fade + gl.sum(weights, 1)


@gluon.jit
def _step(
    q_tile,
    buffers,
    barriers,
    counter,
    weights,
    read,
    highest,
    total,
    limit,
    MASKED: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
    SCORES: gl.constexpr,
    RESULT: gl.constexpr,
    WEIGHTS: gl.constexpr,
):
    k_tiles, v_tiles = buffers
    k_ready, k_empty, v_ready, v_empty = barriers
    stage = counter % STAGES
    mbarrier.wait(k_ready.index(stage), counter // STAGES & 1)
    k_tile = k_tiles.index(stage).permute((1, 0))
    nothing = gl.zeros([64, KEYS], gl.float32, SCORES)
    scores = warpgroup_mma(q_tile, k_tile, nothing, use_acc=False, is_async=True)
    before = counter - 1
    v_stage = before % STAGES
    mbarrier.wait(v_ready.index(v_stage), before // STAGES & 1)
    read = warpgroup_mma(weights, v_tiles.index(v_stage), read, is_async=True)
    scores = warpgroup_mma_wait(1, deps=(scores,))
    mbarrier.arrive(k_empty.index(stage), count=1)
    fresh, fade, highest, total = _soften(scores, limit, highest, total, MASKED, KEYS, SCORES)
    read = warpgroup_mma_wait(0, deps=(read,))
    mbarrier.arrive(v_empty.index(v_stage), count=1)
    read = read * gl.convert_layout(fade, gl.SliceLayout(1, RESULT))[:, None]
    weights = gl.convert_layout(fresh.to(weights.dtype), WEIGHTS)
    return weights, read, highest, total


@gluon.jit
def _consume_tiles(
    pointers,
    strides,
    sizes,
    q_tiles,
    buffers,
    barriers,
    scale,
    PART: gl.constexpr,
    GROUP: gl.constexpr,
    ROWS: gl.constexpr,
    WIDTH: gl.constexpr,
    KEYS: gl.constexpr,
    STAGES: gl.constexpr,
):
    q, out, cos, sin, table = pointers
    q_row, q_head, out_row, out_head, cos_row, sin_row = strides
    per_block, kv_heads, blocks = sizes
    # Layouts of scores, result, weights as an operand, and of loaded queries.
    SCORES: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, KEYS, 16])
    RESULT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, WIDTH, 16])
    WEIGHTS: gl.constexpr = gl.DotOperandLayout(0, RESULT, 2)
    across: gl.constexpr = WIDTH // 8
    down: gl.constexpr = 32 // across
    QUERIES: gl.constexpr = gl.BlockedLayout([1, 8], [down, across], [4, 1], [1, 0])
    k_tiles, v_tiles = buffers
    k_ready, k_empty, v_ready, v_empty = barriers
    q_tile = q_tiles.index(PART)
    counter = 0
    for work in range(gl.program_id(0), per_block * kv_heads * blocks, gl.num_programs(0)):
        first_row, kv_head, entry, length = _work_item(
            table, work, per_block, kv_heads, blocks, GROUP, ROWS
        )
        seen, lead, prefix_whole, own_whole, tail, count = _tiles_of(
            entry, first_row, length, GROUP, ROWS, KEYS
        )
        if count > 0:
            first_token = gl.load(entry)
            first_position = gl.load(entry + 2)

            row = first_row + PART * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, QUERIES))
            column = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, QUERIES))
            token = row // GROUP
            inside = (token < length)[:, None] & (column < WIDTH)[None, :]
            start = (first_token + token).to(gl.int64) * q_row
            start += (kv_head * GROUP + row % GROUP).to(gl.int64) * q_head
            rolled = (column + WIDTH // 2) % WIDTH
            plain = gl.load(q + (start[:, None] + column[None, :]), mask=inside, other=0.0)
            shifted = gl.load(q + (start[:, None] + rolled[None, :]), mask=inside, other=0.0)
            angle = (first_position + token).to(gl.int64)[:, None]
            turn_c = gl.load(cos + angle * cos_row + column[None, :], mask=inside, other=0.0)
            turn_s = gl.load(sin + angle * sin_row + column[None, :], mask=inside, other=0.0)
            turned = plain.to(gl.float32) * turn_c + shifted.to(gl.float32) * turn_s
            q_tile.store((turned * scale).to(q.dtype.element_ty))
            fence_async_shared()

            token = (
                first_row + PART * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, SCORES))
            ) // GROUP
            whole = prefix_whole + own_whole
            # What the first tile lets each row see: a part of the prefix or of the row's own keys.
            prefix_first = (prefix_whole > 0) | ((own_whole == 0) & (tail > 0))
            limit = gl.where(prefix_first, seen, lead + token + 1)

            stage = counter % STAGES
            mbarrier.wait(k_ready.index(stage), counter // STAGES & 1)
            k_tile = k_tiles.index(stage).permute((1, 0))
            nothing = gl.zeros([64, KEYS], gl.float32, SCORES)
            scores = warpgroup_mma(q_tile, k_tile, nothing, use_acc=False, is_async=True)
            scores = warpgroup_mma_wait(0, deps=(scores,))
            mbarrier.arrive(k_empty.index(stage), count=1)
            # Finite, so that a row with nothing in view yet stays free of inf - inf.
            highest = gl.full([64], -1e30, gl.float32, gl.SliceLayout(1, SCORES))
            total = gl.zeros([64], gl.float32, gl.SliceLayout(1, SCORES))
            fresh, fade, highest, total = _soften(scores, limit, highest, total, True, KEYS, SCORES)
            weights = gl.convert_layout(fresh.to(q.dtype.element_ty), WEIGHTS)
            read = gl.zeros([64, WIDTH], gl.float32, RESULT)
            counter += 1
            for _ in range(1, whole):
                weights, read, highest, total = _step(
                    q_tile,
                    buffers,
                    barriers,
                    counter,
                    weights,
                    read,
                    highest,
                    total,
                    limit,
                    False,
                    KEYS,
                    STAGES,
                    SCORES,
                    RESULT,
                    WEIGHTS,
                )
                counter += 1
            for index in range(gl.maximum(whole, 1), count):
                at_tail = (index == whole) & (tail > 0)
                past = index - prefix_whole - tail
                limit = gl.where(
                    at_tail, seen - prefix_whole * KEYS, lead + token + 1 - past * KEYS
                )
                weights, read, highest, total = _step(
                    q_tile,
                    buffers,
                    barriers,
                    counter,
                    weights,
                    read,
                    highest,
                    total,
                    limit,
                    True,
                    KEYS,
                    STAGES,
                    SCORES,
                    RESULT,
                    WEIGHTS,
                )
                counter += 1
            before = counter - 1
            stage = before % STAGES
            mbarrier.wait(v_ready.index(stage), before // STAGES & 1)
            read = warpgroup_mma(weights, v_tiles.index(stage), read, is_async=True)
            read = warpgroup_mma_wait(0, deps=(read,))
            mbarrier.arrive(v_empty.index(stage), count=1)

            total = gl.convert_layout(total, gl.SliceLayout(1, RESULT))
            row = first_row + PART * 64 + gl.arange(0, 64, layout=gl.SliceLayout(1, RESULT))
            column = gl.arange(0, WIDTH, layout=gl.SliceLayout(0, RESULT))
            token = row // GROUP
            inside = (token < length)[:, None] & (column < WIDTH)[None, :]
            start = (first_token + token).to(gl.int64) * out_row
            start += (kv_head * GROUP + row % GROUP).to(gl.int64) * out_head
            result = (read / total[:, None]).to(out.dtype.element_ty)
            gl.store(out + (start[:, None] + column[None, :]), result, mask=inside)


@gluon.jit
def _attention_kernel(
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
    ROWS: gl.constexpr = 64 * CONSUMERS
    dtype: gl.constexpr = k_desc.dtype
    k_tiles = gl.allocate_shared_memory(dtype, [STAGES, KEYS, WIDTH], k_desc.layout)
    v_tiles = gl.allocate_shared_memory(dtype, [STAGES, KEYS, WIDTH], v_desc.layout)
    q_layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, WIDTH], dtype)
    q_tiles = gl.allocate_shared_memory(dtype, [CONSUMERS, 64, WIDTH], q_layout)
    k_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_ready = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(k_ready.index(stage), count=1)
        mbarrier.init(v_ready.index(stage), count=1)
        mbarrier.init(k_empty.index(stage), count=CONSUMERS)
        mbarrier.init(v_empty.index(stage), count=CONSUMERS)
    buffers = (k_tiles, v_tiles)
    barriers = (k_ready, k_empty, v_ready, v_empty)
    pointers = (q, out, cos, sin, table)
    strides = (q_row, q_head, out_row, out_head, cos_row, sin_row)
    sizes = (per_block, kv_heads, blocks)
    descriptors = (k_desc, v_desc)
    # Written out twice: constants stay constants only in tuples that are arguments themselves.
    if CONSUMERS == 2:
        gl.warp_specialize(
            [
                (
                    _consume_tiles,
                    (
                        pointers,
                        strides,
                        sizes,
                        q_tiles,
                        buffers,
                        barriers,
                        scale,
                        0,
                        GROUP,
                        ROWS,
                        WIDTH,
                        KEYS,
                        STAGES,
                    ),
                ),
                (
                    _consume_tiles,
                    (
                        pointers,
                        strides,
                        sizes,
                        q_tiles,
                        buffers,
                        barriers,
                        scale,
                        1,
                        GROUP,
                        ROWS,
                        WIDTH,
                        KEYS,
                        STAGES,
                    ),
                ),
                (
                    _load_tiles,
                    (
                        descriptors,
                        table,
                        buffers,
                        barriers,
                        key_rows,
                        sizes,
                        GROUP,
                        ROWS,
                        KEYS,
                        STAGES,
                    ),
                ),
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
                    (
                        pointers,
                        strides,
                        sizes,
                        q_tiles,
                        buffers,
                        barriers,
                        scale,
                        0,
                        GROUP,
                        ROWS,
                        WIDTH,
                        KEYS,
                        STAGES,
                    ),
                ),
                (
                    _consume_tiles,
                    (
                        pointers,
                        strides,
                        sizes,
                        q_tiles,
                        buffers,
                        barriers,
                        scale,
                        1,
                        GROUP,
                        ROWS,
                        WIDTH,
                        KEYS,
                        STAGES,
                    ),
                ),
                (
                    _consume_tiles,
                    (
                        pointers,
                        strides,
                        sizes,
                        q_tiles,
                        buffers,
                        barriers,
                        scale,
                        2,
                        GROUP,
                        ROWS,
                        WIDTH,
                        KEYS,
                        STAGES,
                    ),
                ),
                (
                    _load_tiles,
                    (
                        descriptors,
                        table,
                        buffers,
                        barriers,
                        key_rows,
                        sizes,
                        GROUP,
                        ROWS,
                        KEYS,
                        STAGES,
                    ),
                ),
            ],
            [4, 4, 1],
            [REGISTERS, REGISTERS, 24],
        )
