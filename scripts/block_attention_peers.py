"""torch's attention on the same document: dense, and FlexAttention with the blocks' mask.

Both get queries and keys rotated before the clock starts.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from backend.layers.rope import rotate
from scripts.block_attention_problem import (
    ANCHORS,
    BLOCK,
    SINKS,
    TOKENS,
    Problem,
    Shape,
    line,
    make_problem,
    seconds,
)

_TILE = 128
"""Rows and keys of a tile of FlexAttention's block mask."""


def time_dense(shape: Shape) -> dict[str, object]:
    """cuDNN's causal attention over the whole document."""
    dtype = torch.bfloat16
    q = torch.randn(1, shape.heads, TOKENS, shape.width, device="cuda", dtype=dtype)
    size = (2, 1, shape.kv_heads, TOKENS, shape.width)
    k, v = torch.randn(size, device="cuda", dtype=dtype).unbind(0)

    def call(length: int = TOKENS) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return scaled_dot_product_attention(
                q[:, :, :length],
                k[:, :, :length],
                v[:, :, :length],
                is_causal=True,
                enable_gqa=True,
            )

    call(16_384)
    flops = 4 * shape.width * shape.heads * (TOKENS * (TOKENS + 1) // 2)
    return line(seconds(call, 2, 0), flops)


def time_flex(shape: Shape) -> dict[str, object]:
    """FlexAttention with the same mask. It is given sinks and anchors gathered in front of the
    tokens, so that its block mask is as sparse as ours, and the block mask ready made."""
    problem = make_problem(shape)
    q, k, v, front = _laid_out(problem)
    mask = _block_mask(len(problem.plan.prefixes[0]), front)
    compiled: Callable[..., torch.Tensor] = torch.compile(flex_attention, dynamic=False)

    def call() -> torch.Tensor:
        return compiled(q, k, v, block_mask=mask, enable_gqa=True)

    error = problem.error(call()[0].transpose(0, 1))
    return line(seconds(call, 5, 1), problem.flops, error)


def _laid_out(problem: Problem) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, int]:
    """Rotated q and k, and v, with what blocks see in front of the tokens, padded to a tile."""
    listed = problem.plan.prefixes[0].cuda()
    front = -(-len(listed) // _TILE) * _TILE
    pairs = zip(problem.extra, (problem.k, problem.v), strict=True)
    keys, values = (torch.cat(pair)[listed] for pair in pairs)
    order = torch.arange(len(listed), device="cuda")
    keys = rotate(keys, problem.cos[order, None], problem.sin[order, None])
    place = torch.arange(TOKENS, device="cuda")
    place = SINKS + ANCHORS * (place // BLOCK) + place % BLOCK
    turn = problem.cos[place, None], problem.sin[place, None]
    room = keys.new_zeros(front - len(listed), *keys.shape[1:])
    k = torch.cat((keys, room, rotate(problem.k, *turn)))
    v = torch.cat((values, room, problem.v))
    q = rotate(problem.q, *turn)
    q, k, v = (x.transpose(0, 1)[None].contiguous() for x in (q, k, v))
    return q, k, v, front


def _block_mask(listed: int, front: int) -> BlockMask:
    def sees(b: torch.Tensor, h: torch.Tensor, i: torch.Tensor, j: torch.Tensor) -> torch.Tensor:
        block, own = i // BLOCK, j - front
        before = (own < 0) & (j < SINKS + ANCHORS * block)
        return before | ((own >= 0) & (own // BLOCK == block) & (own <= i))

    assert listed <= front
    row = torch.arange(TOKENS // _TILE, device="cuda")
    per_block = BLOCK // _TILE
    block = row // per_block
    prefix = SINKS + ANCHORS * block
    whole = prefix // _TILE + row % per_block
    column = torch.arange(front // _TILE + per_block, device="cuda")
    own = front // _TILE + block * per_block
    in_prefix = column < (prefix // _TILE)[:, None]
    listing = torch.where(in_prefix, column, (own - prefix // _TILE)[:, None] + column)
    columns = (front + TOKENS) // _TILE
    full = torch.zeros(len(row), columns, dtype=torch.int32, device="cuda")
    full[:, : len(column)] = listing.clamp(max=columns - 1)
    diagonal = front // _TILE + row
    tail = prefix % _TILE > 0
    part = torch.zeros_like(full)
    part[:, 0] = torch.where(tail, prefix // _TILE, diagonal)
    part[:, 1] = diagonal
    return BlockMask.from_kv_blocks(
        (1 + tail.int())[None, None],
        part[None, None],
        whole.int()[None, None],
        full[None, None],
        BLOCK_SIZE=_TILE,
        mask_mod=sees,
        seq_lengths=(TOKENS, front + TOKENS),
    )
