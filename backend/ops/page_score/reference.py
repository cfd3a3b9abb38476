"""The specification: each distance of a page's tokens by itself."""

from __future__ import annotations

from typing import cast

import torch

from backend.layers.rope import rotate
from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS


def page_bounds(
    data: torch.Tensor,
    layer: int,
    refs: torch.Tensor,
    width: int,
    form: PackedFormat | None,
) -> torch.Tensor:
    """See the package."""
    bounds = []
    for page, first, count, _ in refs.tolist():
        cells = data[page, layer, 0]
        keys = cells.float() if form is None else form.decode(cells, 0, width, torch.float32)
        seen = keys[:, first : first + count]
        bounds.append(torch.stack((seen.amin(1), seen.amax(1)), 1))
    return torch.stack(bounds)


def page_score(
    q: torch.Tensor,
    bounds: torch.Tensor,
    reduce: str,
    refs: torch.Tensor | None,
    first_row: int,
    cos: torch.Tensor | None,
    sin: torch.Tensor | None,
) -> torch.Tensor:
    """See the package."""
    rows, heads, width = q.shape
    pages, kv_heads = bounds.shape[:2]
    grouped = q.float().view(rows, kv_heads, heads // kv_heads, width)
    # [pages, kv_heads, 1, d], beside the query heads of a group.
    least, largest = bounds[:, :, 0, None], bounds[:, :, 1, None]
    best = q.new_full((pages, *grouped.shape[1:3]), float("-inf"), dtype=torch.float32)
    for row, asked in enumerate(grouped):
        if refs is None:
            best = torch.maximum(best, _bound(asked, least, largest))
            continue
        tables = cast("tuple[torch.Tensor, torch.Tensor]", (cos, sin))
        _, _, counts, starts = refs.long().unbind(1)
        for token in range(PAGE_TOKENS):
            distance = first_row + row - starts - token
            seen = (token < counts) & (distance >= 0)
            turns = [table[distance.clamp(min=0), None, None] for table in tables]
            bound = _bound(rotate(asked.expand(pages, -1, -1, -1), *turns), least, largest)
            bound = bound.masked_fill(~seen[:, None, None], float("-inf"))
            best = torch.maximum(best, bound)
    reduced = best.sum(-1) if reduce == "sum" else best.amax(-1)
    scores: torch.Tensor = reduced * width**-0.5
    return scores.transpose(0, 1).contiguous()


def _bound(asked: torch.Tensor, least: torch.Tensor, largest: torch.Tensor) -> torch.Tensor:
    bound: torch.Tensor = torch.maximum(asked * least, asked * largest).sum(-1)
    return bound
