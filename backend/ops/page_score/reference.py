"""The specification: page by page, and each distance of a page's tokens by itself."""

from __future__ import annotations

from typing import cast

import torch

from backend.layers.rope import rotate
from kvstore.formats.packed import PackedFormat


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
    out = q.new_empty((kv_heads, pages), dtype=torch.float32)
    placed = [None] * pages if refs is None else refs.tolist()
    for page, ref in enumerate(placed):
        least, largest = bounds[page, :, 0, None], bounds[page, :, 1, None]
        best = q.new_full(grouped.shape[1:3], float("-inf"), dtype=torch.float32)
        for row, asked in enumerate(grouped):
            for distance in [None] if ref is None else _distances(ref, first_row + row):
                turned = asked
                if distance is not None:
                    tables = cast("tuple[torch.Tensor, torch.Tensor]", (cos, sin))
                    turned = rotate(asked, *(table[distance] for table in tables))
                bound = torch.maximum(turned * least, turned * largest).sum(-1)
                best = torch.maximum(best, bound)
        out[:, page] = (best.sum(-1) if reduce == "sum" else best.amax(-1)) * width**-0.5
    return out


def _distances(ref: list[int], position: int) -> list[int]:
    """From a row at `position` to the tokens that it sees of a page."""
    _, _, count, start = ref
    return [position - start - token for token in range(count) if start + token <= position]
