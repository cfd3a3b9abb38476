"""The specification: request by request, all tokens of the list gathered and rotated, full scores
and one softmax in float32."""

from __future__ import annotations

import torch

from backend.layers.rope import rotate_tail
from backend.ops.latent_attention.reference import latent_attention
from backend.ops.page_attention.lists import PageLists


def latent_page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    rank: int,
    scale: float,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> torch.Tensor:
    """See the package."""
    refs = lists.refs.tolist()
    out = q.new_empty((*q.shape[:2], rank))
    for start, pages, row, rows, tokens, *_ in lists.requests.tolist():
        parts = [
            data[page, layer, 0, 0, first : first + count].float()
            for page, first, count, _ in refs[start : start + pages]
        ]
        kept = torch.cat(parts)[:tokens]
        turned = rotate_tail(kept, cos[:tokens], sin[:tokens])
        angles = cos[tokens - rows : tokens, None], sin[tokens - rows : tokens, None]
        asked = rotate_tail(q[row : row + rows].float(), *angles)
        out[row : row + rows] = latent_attention(asked, turned, rank, scale).to(q.dtype)
    return out
