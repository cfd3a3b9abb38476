"""The specification: request by request, all tokens of its lists gathered, decoded and rotated,
full scores and one softmax in float32."""

from __future__ import annotations

import torch

from backend.layers.rope import rotate
from backend.ops.page_attention.lists import PackedPages, PageLists


def page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    cos: torch.Tensor,
    sin: torch.Tensor,
    packed: PackedPages | None,
) -> torch.Tensor:
    """See the package."""
    heads, width = q.shape[1:]
    kv_heads = data.shape[3]
    refs = lists.refs.tolist()
    packed_refs = [] if packed is None else packed.refs.tolist()
    packed_lists = [] if packed is None else packed.requests.tolist()
    out = torch.empty_like(q)
    for number, (start, pages, row, rows, tokens, *_) in enumerate(lists.requests.tolist()):
        parts, places = [], []
        for page, first, count, position in refs[start : start + pages]:
            parts.append(data[page, layer, :, :, first : first + count].float())
            places.append(torch.arange(position, position + count))
        if packed is not None:
            start, pages = packed_lists[number][:2]
            for page, first, count, position in packed_refs[start : start + pages]:
                cell = _decoded(packed, page, layer, width)
                parts.append(cell[:, :, first : first + count])
                places.append(torch.arange(position, position + count))
        position = torch.cat(places).to(q.device)
        there = position < tokens
        keys, values = torch.cat(parts, 2)[:, :, there]
        position = position[there]
        turned = rotate(keys, cos[position], sin[position])
        last = torch.arange(tokens - rows, tokens, device=q.device)
        asked = rotate(q[row : row + rows].float(), cos[last, None], sin[last, None])
        grouped = asked.view(rows, kv_heads, heads // kv_heads, width)
        scores = torch.einsum("nhgd,hmd->hgnm", grouped, turned) * width**-0.5
        hidden = position[None, :] > last[:, None]
        weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
        read = torch.einsum("hgnm,hmd->nhgd", weights, values)
        out[row : row + rows] = read.reshape(rows, heads, width).to(q.dtype)
    return out


def _decoded(packed: PackedPages, page: int, layer: int, width: int) -> torch.Tensor:
    """Keys and values [2, kv_heads, 64, d] of a page in float32."""
    cells = packed.data[page, layer]
    keys = packed.form.decode(cells[0], 0, width, torch.float32)
    return torch.stack((keys, packed.form.decode(cells[1], 1, width, torch.float32)))
