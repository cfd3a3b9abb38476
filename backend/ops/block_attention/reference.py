"""The specification: block by block, all keys in view, full scores and one softmax in float32
(float64 stays float64)."""

from __future__ import annotations

import torch

from backend.layers.rope import rotate
from backend.ops.block_attention.plan import ReadPlan
from kvstore.formats.fp8 import LARGEST

SMALLEST = 1e-30
"""A row with nothing larger counts as if it had this."""


def block_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    plan: ReadPlan,
    extra: tuple[torch.Tensor, torch.Tensor] | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    fp8: bool,
) -> torch.Tensor:
    """See the package."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    heads, kv_heads, width = q.shape[1], k.shape[1], q.shape[2]
    keys, values = (k, v) if extra is None else _join(extra, (k, v))
    out = torch.empty_like(q)
    for block in plan.blocks:
        start, end = plan.extra_rows + block.first, plan.extra_rows + block.last
        own = torch.arange(start - block.lead, end)
        listed = plan.prefixes[block.prefix][: block.seen] if block.seen else own[:0]
        rows = torch.cat((listed.long(), own)).to(q.device)
        new, length = block.last - block.first, len(rows)
        angles = cos[:length, None].to(exact), sin[:length, None].to(exact)
        given_k, seen_v = keys[rows], values[rows].to(exact)
        given_q = q[block.first : block.last]
        if fp8:
            given_k, given_q = given_k.to(exact), given_q.to(exact)
            seen_v = in_e4m3(seen_v)
        # The keys are rounded to the cache's dtype after rotation, as every implementation does.
        seen_k = rotate(given_k, *angles).to(exact)
        asked = rotate(given_q, *(table[-new:] for table in angles)).to(exact)
        if fp8:
            seen_k, asked = in_e4m3(seen_k), in_e4m3(asked)
        grouped = asked.view(new, kv_heads, heads // kv_heads, width)
        scores = torch.einsum("nhgd,mhd->hgnm", grouped, seen_k) * width**-0.5
        last = torch.arange(length - new, length, device=q.device)
        hidden = torch.arange(length, device=q.device)[None, :] > last[:, None]
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        read = torch.einsum("hgnm,mhd->nhgd", weights, seen_v)
        out[block.first : block.last] = read.reshape(new, heads, width).to(q.dtype)
    return out


def in_e4m3(x: torch.Tensor) -> torch.Tensor:
    """float32 `x` with each row rounded to e4m3, whose scale is the smallest power of two with
    which it fits."""
    least = x.abs().amax(-1, keepdim=True).clamp_min(SMALLEST) / LARGEST
    # A number that is no power of two goes up to the next.
    scale = ((least.view(torch.int32) + 0x7FFFFF) & 0x7F800000).view(torch.float32)
    return (x / scale).to(torch.float8_e4m3fn).to(x.dtype) * scale


def _join(
    first: tuple[torch.Tensor, torch.Tensor], second: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.cat((first[0], second[0])), torch.cat((first[1], second[1]))
