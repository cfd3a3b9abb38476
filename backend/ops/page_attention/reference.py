"""The specification: request by request, all tokens of the list gathered and rotated, full scores
and one softmax in float32."""

from __future__ import annotations

import torch

from backend.layers.rope import rotate
from backend.ops.page_attention.lists import PageLists


def page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> torch.Tensor:
    """See the package."""
    heads, width = q.shape[1:]
    kv_heads = data.shape[3]
    refs = lists.refs.tolist()
    out = torch.empty_like(q)
    for start, pages, row, rows, tokens, *_ in lists.requests.tolist():
        parts = [
            data[page, layer, :, :, first : first + count].float()
            for page, first, count, _ in refs[start : start + pages]
        ]
        keys, values = torch.cat(parts, 2)[:, :, :tokens]
        turned = rotate(keys, cos[:tokens], sin[:tokens])
        last = torch.arange(tokens - rows, tokens, device=q.device)
        asked = rotate(q[row : row + rows].float(), cos[last, None], sin[last, None])
        grouped = asked.view(rows, kv_heads, heads // kv_heads, width)
        scores = torch.einsum("nhgd,hmd->hgnm", grouped, turned) * width**-0.5
        hidden = torch.arange(tokens, device=q.device)[None, :] > last[:, None]
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        read = torch.einsum("hgnm,hmd->nhgd", weights, values)
        out[row : row + rows] = read.reshape(rows, heads, width).to(q.dtype)
    return out
