"""The specification: token by token."""

from __future__ import annotations

import torch

from backend.ops.page_attention import PageLists
from kvstore.types import PAGE_TOKENS


def page_write(
    data: torch.Tensor, layer: int, k: torch.Tensor, v: torch.Tensor, lists: PageLists
) -> None:
    """See the package."""
    pages = lists.refs[:, 0].tolist()
    for _, _, first, rows, tokens, own, start in lists.requests.tolist():
        for row in range(rows):
            place = tokens - rows + row - start
            if place >= 0:
                page = data[pages[own + place // PAGE_TOKENS], layer]
                page[0, :, place % PAGE_TOKENS] = k[first + row]
                page[1, :, place % PAGE_TOKENS] = v[first + row]


def place_write(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    pages: torch.Tensor,
    slots: torch.Tensor,
) -> None:
    """See the package."""
    for part, source in enumerate((k, v)):
        data[:, layer, part][pages, :, slots] = source
