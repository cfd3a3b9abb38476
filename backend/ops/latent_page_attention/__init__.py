"""Latent attention of a question's or an answer's new tokens on page lists, for a batch of
requests: `page_attention` for one key-value head whose values are the first channels of its keys.

Latents come from the pool as they are kept; their last channels are rotated as they are read, at
the position that they have in their list. What is kept of the new tokens has been written to the
pages at the end of the list.
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.latent_page_attention import reference
from backend.ops.page_attention.lists import PageLists
from kvstore.types import PAGE_TOKENS

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "latent_page_attention"]


def latent_page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    rank: int,
    scale: float,
    *,
    cos: torch.Tensor,
    sin: torch.Tensor,
    impl: Implementation,
    parts: int | None = None,
) -> torch.Tensor:
    """The latents that each query row reads, [rows, heads, rank] in the dtype of q.

    q: [rows, heads, d] before rotation, contiguous in the last dimension; data: a pool's
    [page, layer, 1, 1, token, d]; `layer` of it is read. cos, sin: tables of
    `backend.layers.rope.Rope.tables(0, n)`, [n, d - rank], with n at least `lists.positions`. Every
    list is read in as many `parts` side by side, which are merged; by default as many as fill the
    GPU. "triton" has run in Triton's interpreter only, on no GPU yet, and the engine uses neither:
    its contexts of latents are buffers. Raises ValueError for shapes that don't fit.
    """
    _check(q, data, layer, lists, rank, cos, sin)
    if impl == "reference":
        return reference.latent_page_attention(q, data, layer, lists, rank, scale, cos, sin)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.latent_page_attention import kernel

    return kernel.latent_page_attention(q, data, layer, lists, rank, scale, cos, sin, parts)


def _check(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    rank: int,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> None:
    if q.dim() != 3 or data.dim() != 6 or data.shape[2:5] != (1, 1, PAGE_TOKENS):
        raise ValueError(f"q {tuple(q.shape)} and pool {tuple(data.shape)} don't fit")
    rows, _, width = q.shape
    rotated = width - rank
    if data.shape[5] != width or rank < 1 or rotated < 2 or rotated % 2:
        raise ValueError(
            f"latents of {width}, {rank} of them values, don't fit a pool of {tuple(data.shape)}"
        )
    if not 0 <= layer < data.shape[1]:
        raise ValueError(f"the pool has {data.shape[1]} layers, not a layer {layer}")
    if rows != lists.rows:
        raise ValueError(f"the lists are for {lists.rows} query rows, q has {rows}")
    if q.dtype != data.dtype or not q.device == data.device == lists.refs.device:
        raise ValueError("q, the pool and the lists differ in dtype or device")
    if q.stride(-1) != 1 or data.stride(-1) != 1:
        raise ValueError("q and the pool must be contiguous in the last dimension")
    for name, table in (("cos", cos), ("sin", sin)):
        if table.dtype != torch.float32 or table.device != q.device or table.stride(-1) != 1:
            raise ValueError(f"{name} must be float32 rows beside q")
        if table.dim() != 2 or table.shape[0] < lists.positions or table.shape[1] != rotated:
            raise ValueError(
                f"{name} {tuple(table.shape)} doesn't fit {lists.positions} positions of {rotated}"
            )
