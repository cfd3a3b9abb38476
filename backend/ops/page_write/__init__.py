"""Writes keys and values to pages that are kept as they are: a step's new tokens to the end of
their requests' page lists, or tokens of blocks to given places."""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.page_attention import PageLists
from backend.ops.page_write import reference
from kvstore.types import PAGE_TOKENS

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "page_write", "place_write"]


def page_write(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    lists: PageLists,
    *,
    impl: Implementation,
) -> None:
    """Store k and v [rows, kv_heads, d], before rotation, in `layer` of a pool's `data`.

    All requests have as many rows as the first. `lists.requests` has two columns more than
    `page_attention` reads: the list's first page that may be written (its place among `refs`), and
    the position of that page's first token; from there on pages are used whole. A row that would
    stand before it is left out. Raises ValueError for shapes that don't fit.
    """
    _check(data, k, v)
    if len(k) != lists.rows or len(k) != len(lists.requests) * lists.most_rows:
        raise ValueError(f"{len(k)} rows, and lists for {lists.rows}")
    if lists.requests.shape[1] < 7:
        raise ValueError("the lists don't say where to write")
    if impl == "reference":
        reference.page_write(data, layer, k, v, lists)
        return
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.page_write import kernel

    kernel.page_write(data, layer, k, v, lists)


def place_write(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    pages: torch.Tensor,
    slots: torch.Tensor,
    *,
    impl: Implementation,
) -> None:
    """Store k and v [rows, kv_heads, d], before rotation, in `layer` of a pool's `data`: row i at
    token `slots[i]` of page `pages[i]`. Raises ValueError for shapes that don't fit."""
    _check(data, k, v)
    if not pages.shape == slots.shape == k.shape[:1]:
        raise ValueError(f"{len(k)} rows, {len(pages)} pages and {len(slots)} slots")
    if impl == "reference":
        reference.place_write(data, layer, k, v, pages, slots)
        return
    from backend.ops.page_write import kernel

    kernel.place_write(data, layer, k, v, pages, slots)


def _check(data: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    if data.dim() != 6 or data.shape[2] != 2 or data.shape[4] != PAGE_TOKENS:
        raise ValueError(f"{tuple(data.shape)} is no pool")
    if k.shape != v.shape or k.dim() != 3 or k.shape[1:] != data.shape[3:6:2]:
        raise ValueError(f"k {tuple(k.shape)}, v {tuple(v.shape)} don't fit {tuple(data.shape)}")
    if k.dtype != data.dtype or v.dtype != data.dtype or k.stride(-1) != 1 or v.stride(-1) != 1:
        raise ValueError("k and v must have the pool's dtype and contiguous heads")
