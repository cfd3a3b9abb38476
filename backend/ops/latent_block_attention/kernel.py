# The compiler of the kernels gives types to their arguments, not Python.
# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Latent block attention in Triton. It has run in the interpreter only, and the engine does not
use it on cards that it was not measured on.

One program takes a tile of query rows of one block: row r is query head r % heads of token
r // heads, so a tile of latents is loaded once for the heads of a token, and once for scores and
values. Source of the online softmax: Dao, FlashAttention-2 (arXiv 2307.08691).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from backend.layers.rope import rotate_tail
from backend.ops.block_attention.plan import ReadPlan
from backend.ops.block_attention.tiles import Tiles

_GRID_LIMIT = 65_535
"""Most blocks of one launch: CUDA's limit on the second dimension of a grid."""

_LEAST = 16
"""Channels that a product takes at least."""


def latent_block_attention(
    q: torch.Tensor,
    kept: torch.Tensor,
    plan: ReadPlan,
    rank: int,
    scale: float,
    extra: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    tiles: Tiles,
) -> torch.Tensor:
    """See the package. Raises ValueError for more blocks than one launch takes."""
    if len(plan.blocks) > _GRID_LIMIT:
        raise ValueError(f"{len(plan.blocks)} blocks in one launch; at most {_GRID_LIMIT}")
    heads, width = q.shape[1:]
    padded = max(triton.next_power_of_2(rank), _LEAST)
    tail = max(triton.next_power_of_2(width - rank), _LEAST)
    packed = _pack(kept, plan, rank, extra, cos, sin, padded, tail)
    out = torch.empty((*q.shape[:2], rank), dtype=q.dtype, device=q.device)
    grid = (triton.cdiv(plan.longest * heads, tiles.rows), len(plan.blocks))
    _attention_kernel[grid](
        q,
        packed,
        out,
        plan.table,
        cos,
        sin,
        q.stride(0),
        q.stride(1),
        packed.stride(0),
        out.stride(0),
        out.stride(1),
        cos.stride(0),
        sin.stride(0),
        scale * math.log2(math.e),
        HEADS=heads,
        RANK=rank,
        PADDED=padded,
        ROTATED=width - rank,
        TAIL=tail,
        ROWS=tiles.rows,
        KEYS=tiles.keys,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
    return out


def _pack(
    kept: torch.Tensor,
    plan: ReadPlan,
    rank: int,
    extra: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    padded: int,
    tail: int,
) -> torch.Tensor:
    """The plan's rows [rows, padded + tail], each rotated at its position and filled up with
    zeros, as rows of padding are."""
    rows = kept if extra is None else torch.cat((extra, kept))
    real = plan.source >= 0
    at = plan.position[real].long()
    turned = rotate_tail(rows[plan.source[real].long()], cos[at], sin[at])
    packed = rows.new_zeros(len(plan.source), padded + tail)
    packed[real, :rank] = turned[:, :rank]
    packed[real, padded : padded + turned.shape[1] - rank] = turned[:, rank:]
    return packed


@triton.jit
def _attention_kernel(
    q,
    packed,
    out,
    table,
    cos,
    sin,
    q_row,
    q_head,
    packed_row,
    out_row,
    out_head,
    cos_row,
    sin_row,
    scale,
    HEADS: tl.constexpr,
    RANK: tl.constexpr,
    PADDED: tl.constexpr,
    ROTATED: tl.constexpr,
    TAIL: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
):
    # The longest tiles start first: later tokens see more of a block.
    tile = tl.num_programs(0) - 1 - tl.program_id(0)
    entry = table + (tl.num_programs(1) - 1 - tl.program_id(1)) * 7
    length = tl.load(entry + 1)
    if tile * ROWS >= length * HEADS:
        return
    first_token = tl.load(entry)
    first_position = tl.load(entry + 2)
    prefix = tl.load(entry + 3)
    seen = tl.load(entry + 4)
    own = tl.load(entry + 5)
    lead = tl.load(entry + 6)

    row = tile * ROWS + tl.arange(0, ROWS)
    token = row // HEADS
    head = row % HEADS
    there = (token < length)[:, None]
    channel = tl.arange(0, PADDED)
    inside = there & (channel < RANK)[None, :]
    place = (first_token + token).to(tl.int64)
    start = q + place * q_row + head * q_head
    asked = tl.load(start[:, None] + channel[None, :], mask=inside, other=0.0)

    turned = tl.arange(0, TAIL)
    rolled = (turned + ROTATED // 2) % ROTATED
    within = there & (turned < ROTATED)[None, :]
    start += RANK
    plain = tl.load(start[:, None] + turned[None, :], mask=within, other=0.0).to(tl.float32)
    shifted = tl.load(start[:, None] + rolled[None, :], mask=within, other=0.0).to(tl.float32)
    angle = (first_position + token).to(tl.int64)[:, None]
    turn_c = tl.load(cos + angle * cos_row + turned[None, :], mask=within, other=0.0)
    turn_s = tl.load(sin + angle * sin_row + turned[None, :], mask=within, other=0.0)
    asked_tail = (plain * turn_c + shifted * turn_s).to(q.dtype.element_ty)

    last_token = tl.minimum((tile * ROWS + ROWS - 1) // HEADS, length - 1)
    before = tl.cdiv(seen, KEYS)
    every = before + tl.cdiv(lead + last_token + 1, KEYS)
    # Finite, so that a row with nothing in view yet stays free of inf - inf.
    highest = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    read = tl.zeros([ROWS, PADDED], tl.float32)
    offset = tl.arange(0, KEYS)
    for index in range(every):
        past = index - before
        first_key = tl.where(index < before, prefix + index * KEYS, own + past * KEYS)
        limit = tl.where(index < before, seen - index * KEYS, lead + token + 1 - past * KEYS)
        at = packed + (first_key + offset).to(tl.int64)[:, None] * packed_row
        latent = tl.load(at + channel[None, :])
        shared = tl.load(at + PADDED + turned[None, :])
        scores = tl.dot(asked, tl.trans(latent), input_precision="ieee")
        scores = tl.dot(asked_tail, tl.trans(shared), scores, input_precision="ieee") * scale
        scores = tl.where(offset[None, :] < limit[:, None], scores, float("-inf"))
        raised = tl.maximum(highest, tl.max(scores, 1))
        weights = tl.exp2(scores - raised[:, None])
        fade = tl.exp2(highest - raised)
        total = total * fade + tl.sum(weights, 1)
        highest = raised
        weights = weights.to(latent.dtype)
        read = tl.dot(weights, latent, read * fade[:, None], input_precision="ieee")
    target = out + place * out_row + head * out_head
    result = (read / total[:, None]).to(out.dtype.element_ty)
    tl.store(target[:, None] + channel[None, :], result, mask=inside)
