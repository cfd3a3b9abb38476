"""Attention of a question's or an answer's new tokens on page lists, for a batch of requests.

Keys come unrotated from the pool; each is rotated as it is read, at the position that it has in
its list. The new tokens' own keys and values have been written to the pages at the end of the list.
A list may have further pages in a packed format, which are decoded as they are read: that takes
less memory, but more time unless lists are long, so it needs `EngineConfig.packed_kernels`.
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.page_attention import reference
from backend.ops.page_attention.lists import PackedPages, PageLists, mixed_lists, page_lists
from kvstore.types import PAGE_TOKENS

Implementation = Literal["reference", "triton"]

__all__ = [
    "Implementation",
    "PackedPages",
    "PageLists",
    "mixed_lists",
    "page_attention",
    "page_lists",
]


def page_attention(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    *,
    cos: torch.Tensor,
    sin: torch.Tensor,
    impl: Implementation,
    parts: int | None = None,
    packed: PackedPages | None = None,
) -> torch.Tensor:
    """What each query row reads, [rows, heads, d] in the dtype of q.

    q: [rows, heads, d] before rotation, contiguous in the last dimension; data: a pool's
    [page, layer, K or V, kv_head, token, d]; `layer` of it is read. Query head h reads key-value
    head h // (heads / kv_heads). cos, sin: tables of `backend.layers.rope.Rope.tables(0, n)` with n
    at least `lists.positions`. Every list is read in as many `parts` side by side, which are
    merged; by default as many as fill the GPU. `packed` are further pages of the same requests, in
    the same `layer`. Raises ValueError for shapes that don't fit.
    """
    _check(q, data, layer, lists, cos, sin)
    if packed is not None:
        _check_packed(packed, data, lists)
    if impl == "reference":
        return reference.page_attention(q, data, layer, lists, cos, sin, packed)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.page_attention import kernel

    return kernel.page_attention(q, data, layer, lists, cos, sin, parts, packed)


def _check(
    q: torch.Tensor,
    data: torch.Tensor,
    layer: int,
    lists: PageLists,
    cos: torch.Tensor,
    sin: torch.Tensor,
) -> None:
    if q.dim() != 3 or data.dim() != 6 or data.shape[2] != 2 or data.shape[4] != PAGE_TOKENS:
        raise ValueError(f"q {tuple(q.shape)} and pool {tuple(data.shape)} don't fit")
    rows, heads, width = q.shape
    if data.shape[5] != width or heads % data.shape[3] or width % 2:
        raise ValueError(f"{heads} heads of {width} don't fit a pool of {tuple(data.shape)}")
    if not 0 <= layer < data.shape[1]:
        raise ValueError(f"the pool has {data.shape[1]} layers, not a layer {layer}")
    if rows != lists.rows:
        raise ValueError(f"the lists are for {lists.rows} query rows, q has {rows}")
    if q.dtype != data.dtype or not q.device == data.device == lists.refs.device:
        raise ValueError("q, the pool and the lists differ in dtype or device")
    if q.stride(-1) != 1 or data.stride(-1) != 1:
        raise ValueError("q and the pool must be contiguous in the last dimension")
    for name, table in (("cos", cos), ("sin", sin)):
        if table.dim() != 2 or table.shape[0] < lists.positions or table.shape[1] != width:
            raise ValueError(
                f"{name} {tuple(table.shape)} doesn't fit {lists.positions} positions of {width}"
            )
        if table.dtype != torch.float32 or table.device != q.device or table.stride(-1) != 1:
            raise ValueError(f"{name} must be float32 rows beside q")


def _check_packed(packed: PackedPages, data: torch.Tensor, lists: PageLists) -> None:
    cell = packed.form.cell(data.shape[5])
    if packed.data.dim() != 5 or packed.data.shape[1:4] != data.shape[1:4]:
        raise ValueError(f"pools {tuple(packed.data.shape)} and {tuple(data.shape)} don't fit")
    if packed.data.dtype != cell.dtype or packed.data.shape[4:] != cell.shape:
        raise ValueError(f"{tuple(packed.data.shape)} holds no {packed.form.name} of such heads")
    if packed.data.stride(-1) != 1 or packed.data.device != data.device:
        raise ValueError("packed pages must be contiguous cells beside the others")
    if len(packed.requests) != len(lists.requests):
        raise ValueError(f"{len(packed.requests)} packed lists for {len(lists.requests)} requests")
