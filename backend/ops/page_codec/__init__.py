"""Pages in packed formats: keys and values into them, and out of them again.

The codecs are those of `kvstore.formats`, and the kernels give the same bytes and numbers as these
do on a CPU, bit for bit (but for what is no number). On a GPU pages in packed formats are made and
decoded by them, but for latents.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch

from backend.ops.page_codec import reference
from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "decode_pages", "encode_pages", "page_rows"]


def page_rows(
    blocks: Sequence[tuple[int, Sequence[int]]], device: torch.device | str = "cpu"
) -> torch.Tensor:
    """Which rows go into which page: [pages, 3] of page, first row, rows (at most 64), int32.

    `blocks`: tokens and pages of each block, whose rows follow one another. Raises ValueError for a
    block with another number of pages than its tokens fill.
    """
    rows: list[tuple[int, int, int]] = []
    first = 0
    for tokens, pages in blocks:
        if tokens < 1 or len(pages) != -(-tokens // PAGE_TOKENS):
            raise ValueError(f"{tokens} tokens do not fill {len(pages)} pages")
        for place, page in enumerate(pages):
            start = place * PAGE_TOKENS
            rows.append((page, first + start, min(PAGE_TOKENS, tokens - start)))
        first += tokens
    return torch.tensor(rows, dtype=torch.int32).view(-1, 3).to(device)


def encode_pages(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    rows: torch.Tensor,
    form: PackedFormat,
    *,
    impl: Implementation,
) -> None:
    """Fill whole pages of `layer` with k and v [tokens, kv_heads, d], before rotation.

    data: a pool's [page, layer, K and V (or K alone), kv_head, bytes]; `rows` as `page_rows` gives
    them: the rest of a page is filled with the last of its rows. Raises ValueError for shapes that
    don't fit.
    """
    _check_cells(data, form, k.shape[-1])
    if k.dim() != 3 or k.shape != v.shape or k.shape[1] != data.shape[3] or k.dtype != v.dtype:
        raise ValueError(f"k {tuple(k.shape)}, v {tuple(v.shape)} don't fit {tuple(data.shape)}")
    if k.stride(-1) != 1 or v.stride(-1) != 1:
        raise ValueError("k and v must be contiguous in the last dimension")
    if not 0 <= layer < data.shape[1]:
        raise ValueError(f"the pool has {data.shape[1]} layers, not a layer {layer}")
    _check_places(rows, 3, data)
    if impl == "reference":
        reference.encode_pages(data, layer, k, v, rows, form)
        return
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.page_codec import encode

    encode.encode_pages(data, layer, k, v, rows, form)


def decode_pages(
    data: torch.Tensor,
    refs: torch.Tensor,
    tokens: int,
    form: PackedFormat,
    width: int,
    dtype: torch.dtype,
    *,
    impl: Implementation,
) -> torch.Tensor:
    """Keys (before rotation) and values of a page list, [K and V, layer, kv_head, tokens, d].

    `data` as for `encode_pages`; `refs` [pages, 4] as `page_attention.page_lists` makes them: page,
    first token, tokens, place of the first among the `tokens` of the result. Raises ValueError for
    shapes that don't fit.
    """
    _check_cells(data, form, width)
    _check_places(refs, 4, data)
    if impl == "reference":
        return reference.decode_pages(data, refs, tokens, form, width, dtype)
    from backend.ops.page_codec import decode

    return decode.decode_pages(data, refs, tokens, form, width, dtype)


def _check_cells(data: torch.Tensor, form: PackedFormat, width: int) -> None:
    cell = form.cell(width)
    if data.dim() != 5 or data.shape[2] not in (1, 2) or data.dtype != cell.dtype:
        raise ValueError(f"{tuple(data.shape)} in {data.dtype} is no pool in {form.name}")
    if data.shape[4:] != cell.shape or data.stride(-1) != 1:
        raise ValueError(f"cells of {data.shape[4]} bytes don't hold {width} channels")
    if form.fields(width, 0)[1].rows not in (PAGE_TOKENS, PAGE_TOKENS // 32):
        raise ValueError(f"{form.name} has groups of neither one token nor 32")


def _check_places(places: torch.Tensor, columns: int, data: torch.Tensor) -> None:
    if places.dim() != 2 or places.shape[1] != columns or not places.is_contiguous():
        raise ValueError(f"places of pages are [pages, {columns}], not {tuple(places.shape)}")
    if places.dtype != torch.int32 or places.device != data.device:
        raise ValueError("places of pages must be int32 beside the pool")
