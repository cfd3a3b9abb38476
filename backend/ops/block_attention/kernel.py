# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Block reading attention in Triton, for every GPU that Triton compiles for.

One program takes a tile of query rows of one key-value head: row r is query head r % group of
token r // group, so the tiles of keys and values are loaded once for all heads of a group, and any
group size fills the tile. Tiles of keys that every row sees wholly are read without a mask first,
then the end of the prefix and the diagonal with one. Source of the online softmax: Dao,
FlashAttention-2 (arXiv 2307.08691).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from backend.ops.block_attention.pack import pack, pack_e4m3, row_scale
from backend.ops.block_attention.plan import ReadPlan
from backend.ops.block_attention.tiles import Tiles
from backend.ops.page_codec.codes import codes_of, numbers_of
from backend.ops.page_codec.decode import native_fp8

_GRID_LIMIT = 65_535
"""Most blocks of one launch: CUDA's limit on the third dimension of a grid."""

_LEAST_NATIVE = 32
"""What a product in e4m3 sums over at least."""

_WEIGHT = tl.constexpr(256.0)
"""A weight of 1 in e4m3: so smaller ones have all their bits down to 2 ** -14."""


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    tiles: Tiles,
    fp8: bool,
) -> torch.Tensor:
    """See the package. Raises ValueError for more blocks than one launch takes."""
    if len(plan.blocks) > _GRID_LIMIT:
        raise ValueError(f"{len(plan.blocks)} blocks in one launch; at most {_GRID_LIMIT}")
    scales = cos
    if fp8:
        keys, values, scales = pack_e4m3(k, v, plan, extra, cos, sin)
    else:
        keys, values = pack(k, v, plan, extra, cos, sin)
    heads, width = q.shape[1:]
    kv_heads, rows, padded = keys.shape
    group = heads // kv_heads
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    grid = (triton.cdiv(plan.longest * group, tiles.rows), kv_heads, len(plan.blocks))
    _attention_kernel[grid](
        q,
        keys,
        values,
        scales,
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
        width**-0.5 * math.log2(math.e),
        GROUP=group,
        WIDTH=width,
        PADDED=padded,
        ROWS=tiles.rows,
        KEYS=tiles.keys,
        KV_HEADS=kv_heads,
        FP8=fp8,
        NATIVE=native_fp8(q.device) and min(tiles.keys, padded) >= _LEAST_NATIVE,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return out


@triton.jit
def _attention_kernel(
    q,
    keys,
    values,
    scales,
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
    total_rows,
    scale,
    GROUP: tl.constexpr,
    WIDTH: tl.constexpr,
    PADDED: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    KV_HEADS: tl.constexpr,
    FP8: tl.constexpr,
    NATIVE: tl.constexpr,
):
    # The longest tiles start first: later blocks see more anchors, later tokens more of a block.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    kv_head = tl.program_id(1)
    entry = table + (tl.num_programs(2) - 1 - tl.program_id(2)) * 7
    length = tl.load(entry + 1)
    if tile * ROWS >= length * GROUP:
        return
    first_token = tl.load(entry)
    first_position = tl.load(entry + 2)
    prefix = tl.load(entry + 3)
    seen = tl.load(entry + 4)
    own = tl.load(entry + 5)
    lead = tl.load(entry + 6)

    row = tile * ROWS + tl.arange(0, ROWS)
    token = row // GROUP
    head = kv_head * GROUP + row % GROUP
    column = tl.arange(0, PADDED)
    inside = (token < length)[:, None] & (column < WIDTH)[None, :]
    place = (first_token + token).to(tl.int64)
    start = q + place * q_row + head * q_head
    plain = tl.load(start[:, None] + column[None, :], mask=inside, other=0.0).to(tl.float32)
    rolled = (column + WIDTH // 2) % WIDTH
    shifted = tl.load(start[:, None] + rolled[None, :], mask=inside, other=0.0).to(tl.float32)
    angle = (first_position + token).to(tl.int64)[:, None]
    turn_c = tl.load(cos + angle * cos_row + column[None, :], mask=inside, other=0.0)
    turn_s = tl.load(sin + angle * sin_row + column[None, :], mask=inside, other=0.0)
    # exp2 is what the hardware has: log2(e) goes into the queries with the scale.
    asked = plain * turn_c + shifted * turn_s
    asked_scale = tl.full([ROWS], scale, tl.float32)
    if FP8:
        step = row_scale(asked)
        asked_scale *= step
        asked = _operand(codes_of(asked, step[:, None], True), NATIVE)
    else:
        asked = (asked * scale).to(q.dtype.element_ty)

    base = kv_head * total_rows.to(tl.int64)
    value_scales = scales + KV_HEADS * total_rows.to(tl.int64)
    if FP8:
        values += base * PADDED
    last_token = tl.minimum((tile * ROWS + ROWS - 1) // GROUP, length - 1)
    prefix_whole = seen // KEYS
    own_whole = (lead + tile * ROWS // GROUP + 1) // KEYS
    whole = prefix_whole + own_whole
    tail = (seen % KEYS > 0).to(tl.int32)
    masked = tail + tl.cdiv(lead + last_token + 1, KEYS) - own_whole

    # Finite, so that a row with nothing in view yet stays free of inf - inf.
    highest = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    read = tl.zeros([ROWS, PADDED], tl.float32)
    offset = tl.arange(0, KEYS)
    for index in range(whole):
        first_key = tl.where(
            index < prefix_whole, prefix + index * KEYS, own + (index - prefix_whole) * KEYS
        )
        line = base + first_key + offset
        scores = _scores(asked, asked_scale, keys, scales, line, column, PADDED, FP8, NATIVE)
        raised = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - raised[:, None])
        fade = tl.exp2(highest - raised)
        total = total * fade + tl.sum(weights, 1)
        highest = raised
        read = _read(
            weights, read * fade[:, None], values, value_scales, line, base, column, total_rows,
            PADDED, FP8, NATIVE,
        )  # fmt: skip
    for index in range(masked):
        past = own_whole + index - tail
        first_key = tl.where(index < tail, prefix + prefix_whole * KEYS, own + past * KEYS)
        limit = tl.where(index < tail, seen - prefix_whole * KEYS, lead + token + 1 - past * KEYS)
        line = base + first_key + offset
        scores = _scores(asked, asked_scale, keys, scales, line, column, PADDED, FP8, NATIVE)
        scores = tl.where(offset[None, :] < limit[:, None], scores, float("-inf"))
        raised = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - raised[:, None])
        fade = tl.exp2(highest - raised)
        total = total * fade + tl.sum(weights, 1)
        highest = raised
        read = _read(
            weights, read * fade[:, None], values, value_scales, line, base, column, total_rows,
            PADDED, FP8, NATIVE,
        )  # fmt: skip
    target = out + place * out_row + head * out_head
    result = (read / total[:, None]).to(out.dtype.element_ty)
    tl.store(target[:, None] + column[None, :], result, mask=inside)


@triton.jit
def _operand(code, NATIVE: tl.constexpr):
    """Codes of e4m3 as what a product takes; float16 holds all of their numbers."""
    if NATIVE:
        return code.to(tl.float8e4nv, bitcast=True)
    else:
        return numbers_of(code, True, False).to(tl.float16)


@triton.jit
def _scores(
    asked,
    asked_scale,
    keys,
    scales,
    line,
    column,
    PADDED: tl.constexpr,
    FP8: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """Scores [rows, keys] of the keys at the rows `line` of `keys`."""
    some = tl.load(keys + line[:, None] * PADDED + column[None, :])
    if FP8:
        scores = tl.dot(asked, tl.trans(_operand(some, NATIVE)))
        return scores * (asked_scale[:, None] * tl.load(scales + line)[None, :])
    else:
        return tl.dot(asked, tl.trans(some), input_precision="ieee")


@triton.jit
def _read(
    weights,
    read,
    values,
    scales,
    line,
    base,
    column,
    total_rows,
    PADDED: tl.constexpr,
    FP8: tl.constexpr,
    NATIVE: tl.constexpr,
):
    """`read` and what `weights` [rows, keys] read of the values at the rows `line`. Codes begin
    with the head, whose first row is `base`, and those of a channel stand side by side."""
    if FP8:
        # Powers of two: divided by the largest they go into the weights as they are.
        share = tl.load(scales + line)
        top = tl.max(share, 0)
        weights *= (share / top)[None, :]
        at = column.to(tl.int64)[:, None] * total_rows + (line - base)[None, :]
        code = tl.trans(tl.load(values + at))
        if NATIVE:
            some = (weights * _WEIGHT).to(tl.float8e4nv)
            return read + tl.dot(some, _operand(code, True)) * (top / _WEIGHT)
        else:
            return read + tl.dot(weights.to(tl.float16), _operand(code, False)) * top
    else:
        value = tl.load(values + line[:, None] * PADDED + column[None, :])
        return tl.dot(weights.to(value.dtype), value, read, input_precision="ieee")
