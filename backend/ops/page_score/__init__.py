"""How much a query may attend to a page at most, from the least and the largest key number of each
channel: for choosing pages by the question itself.

Source: Tang et al., Quest (arXiv 2406.10774), which keeps the bounds of rotated keys. Here keys are
stored before rotation and a page may stand anywhere, so bounds are of unrotated keys and the query
is turned instead: with R(p) the rotation of position p, R(p) q . R(s) k = (R(p - s) q) . k, and for
any vector w the sum over channels of max(w * least, w * largest) is no less than w . k for each key
k of the page. So a page that stands at given positions is bounded by the largest such sum over the
distances of its tokens, exactly, whatever the distance; a page that has no position yet is scored
without rotation, as if each of its keys stood where the query stands.

Nothing uses it yet (docs/benchmarks/kernels-h200.md).
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.page_score import reference
from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS

Implementation = Literal["reference", "triton"]
Reduce = Literal["max", "sum"]

__all__ = ["Implementation", "Reduce", "page_bounds", "page_score"]


def page_bounds(
    data: torch.Tensor,
    layer: int,
    refs: torch.Tensor,
    width: int,
    form: PackedFormat | None = None,
    *,
    impl: Implementation,
) -> torch.Tensor:
    """Least and largest number of each channel of the unrotated keys, [pages, kv_heads, 2, d] in
    float32, as attention sees them.

    data: a pool's [page, layer, K and V (or K alone), kv_head, token, d], or [..., bytes] packed in
    `form`. `refs` [pages, 4] as `page_attention.page_lists` makes them: of a page, the tokens that
    it names count. Raises ValueError for shapes that don't fit.
    """
    cell = (PAGE_TOKENS, width) if form is None else form.cell(width).shape
    if data.shape[4:] != cell or data.stride(-1) != 1:
        raise ValueError(f"{tuple(data.shape)} is no pool of {width} channels in this format")
    if form is not None and data.dtype != torch.uint8:
        raise ValueError(f"packed pages are bytes, not {data.dtype}")
    if not 0 <= layer < data.shape[1]:
        raise ValueError(f"the pool has {data.shape[1]} layers, not a layer {layer}")
    _check_refs(refs, data.device)
    if impl == "reference":
        return reference.page_bounds(data, layer, refs, width, form)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.page_score import kernel

    return kernel.page_bounds(data, layer, refs, width, form)


def page_score(
    q: torch.Tensor,
    bounds: torch.Tensor,
    *,
    impl: Implementation,
    reduce: Reduce = "max",
    refs: torch.Tensor | None = None,
    first: int = 0,
    cos: torch.Tensor | None = None,
    sin: torch.Tensor | None = None,
) -> torch.Tensor:
    """Upper bounds of q . k / sqrt(d) for each page and key-value head, [kv_heads, pages] float32.

    q: [rows, heads, d] before rotation; bounds: of `page_bounds`. Of the rows the largest bound
    counts, and of the query heads of a group the largest or the sum. With `refs` (of the pages, in
    the order of `bounds`) row r stands at position `first` + r and a page's tokens where its ref
    says; tokens behind a row are not seen by it, and a page that no row sees has -inf. Then `cos`
    and `sin` are tables of `backend.layers.rope.Rope.tables(0, n)` with n above `first` + rows.
    Without `refs` nothing is rotated. Raises ValueError for shapes that don't fit.
    """
    if q.dim() != 3 or bounds.dim() != 4 or bounds.shape[2:] != (2, q.shape[2]):
        raise ValueError(f"q {tuple(q.shape)} and bounds {tuple(bounds.shape)} don't fit")
    if q.shape[1] % bounds.shape[1] or q.shape[2] % 2 or not len(q):
        raise ValueError(f"{tuple(q.shape)} queries don't fit {bounds.shape[1]} key-value heads")
    if bounds.dtype != torch.float32 or bounds.device != q.device or not bounds.is_contiguous():
        raise ValueError("bounds must be contiguous float32 beside q")
    if q.stride(-1) != 1:
        raise ValueError("q must be contiguous in the last dimension")
    if refs is not None:
        _check_refs(refs, q.device)
        if len(refs) != len(bounds):
            raise ValueError(f"{len(refs)} refs for the bounds of {len(bounds)} pages")
        for name, table in (("cos", cos), ("sin", sin)):
            if table is None or table.dtype != torch.float32 or table.device != q.device:
                raise ValueError(f"{name} must be a float32 table beside q where pages are placed")
            if table.shape[0] < first + len(q) or table.shape[1:] != q.shape[2:]:
                raise ValueError(f"{name} {tuple(table.shape)} doesn't reach the last row")
    if impl == "reference":
        return reference.page_score(q, bounds, reduce, refs, first, cos, sin)
    from backend.ops.page_score import kernel

    return kernel.page_score(q, bounds, reduce, refs, first, cos, sin)


def _check_refs(refs: torch.Tensor, device: torch.device) -> None:
    if refs.dim() != 2 or refs.shape[1] != 4 or not refs.is_contiguous():
        raise ValueError(f"refs are [pages, 4], not {tuple(refs.shape)}")
    if refs.dtype != torch.int32 or refs.device != device:
        raise ValueError("refs must be int32 beside the pages")
