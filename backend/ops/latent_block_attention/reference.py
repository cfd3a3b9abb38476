"""The specification: block by block, all rows in view, full scores and one softmax."""

from __future__ import annotations

import torch

from backend.layers.rope import rotate_tail
from backend.ops.block_attention.plan import ReadPlan
from backend.ops.latent_attention.reference import latent_attention


def latent_block_attention(
    q: torch.Tensor,
    kept: torch.Tensor,
    plan: ReadPlan,
    rank: int,
    scale: float,
    extra: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> torch.Tensor:
    """See the package."""
    rows = kept if extra is None else torch.cat((extra, kept))
    out = q.new_empty((*q.shape[:2], rank))
    for block in plan.blocks:
        start, end = plan.extra_rows + block.first, plan.extra_rows + block.last
        own = torch.arange(start - block.lead, end)
        listed = plan.prefixes[block.prefix][: block.seen] if block.seen else own[:0]
        seen = rows[torch.cat((listed.long(), own)).to(q.device)]
        length, new = len(seen), block.last - block.first
        # Rounded to the cache's dtype after rotation, as every implementation does.
        turned = rotate_tail(seen, cos[:length], sin[:length])
        angles = cos[length - new : length, None], sin[length - new : length, None]
        asked = rotate_tail(q[block.first : block.last], *angles)
        out[block.first : block.last] = latent_attention(asked, turned, rank, scale)
    return out
