"""The specification: the codecs of `kvstore.formats`, page by page."""

from __future__ import annotations

import torch

from kvstore.formats.packed import PackedFormat
from kvstore.formats.types import Part
from kvstore.types import PAGE_TOKENS

_PARTS: tuple[Part, Part] = (0, 1)


def encode_pages(
    data: torch.Tensor,
    layer: int,
    k: torch.Tensor,
    v: torch.Tensor,
    rows: torch.Tensor,
    form: PackedFormat,
) -> None:
    """See the package."""
    within = torch.arange(PAGE_TOKENS, device=k.device)
    for page, first, count in rows.tolist():
        places = first + within.clamp(max=count - 1)
        for part in _PARTS[: data.shape[2]]:
            data[page, layer, part] = form.encode((k, v)[part][places].transpose(0, 1), part)


def decode_pages(
    data: torch.Tensor,
    refs: torch.Tensor,
    tokens: int,
    form: PackedFormat,
    width: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """See the package."""
    _, layers, parts, heads, _ = data.shape
    out = torch.empty((parts, layers, heads, tokens, width), dtype=dtype, device=data.device)
    for page, first, count, start in refs.tolist():
        for part in _PARTS[:parts]:
            numbers = form.decode(data[page, :, part], part, width, dtype)
            out[part, :, :, start : start + count] = numbers[:, :, first : first + count]
    return out
