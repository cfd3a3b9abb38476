"""Tiles of new tokens, two matrix products each, all heads folded into rows.

There is one key-value head, so its rows are contiguous for any number of tokens: a buffer that is
partly filled needs neither a copy nor a mask. On a GPU the products are in float32, so that scores
of long lists are not rounded to 16 bit.
"""

from __future__ import annotations

import torch

_ROWS = 2_048
"""Rows of a tile, tokens times heads: with 16 heads the 128 tokens that were best for grouped heads
(see `prefix_attention`)."""


def latent_attention(q: torch.Tensor, kept: torch.Tensor, rank: int, scale: float) -> torch.Tensor:
    """See the package."""
    new, heads, width = q.shape
    prefix = kept.shape[0] - new
    exact = torch.float32 if q.is_cuda else q.dtype
    rows = kept.to(exact)
    out = q.new_empty(new, heads, rank)
    tile = min(max(_ROWS // heads, 1), new)
    above = torch.full((tile, tile), float("-inf"), dtype=exact, device=q.device).triu_(1)
    for first in range(0, new, tile):
        last = min(first + tile, new)
        count, seen = last - first, prefix + last
        asked = q[first:last].reshape(count * heads, width).to(exact) * scale
        scores = torch.mm(asked, rows[:seen].t())
        if count > 1:
            own = scores.view(count, heads, seen)[..., prefix + first :]
            own.add_(above[:count, None, :count])
        read = torch.mm(scores.softmax(-1), rows[:seen, :rank])
        out[first:last] = read.view(count, heads, rank)
    return out
