"""Attention of new tokens on a prefix and, causally, on each other.

One operation serves reading a block (prefix: sinks and anchors), a question (prefix: sinks, anchors
and evidence pages) and decoding (one new token).
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.prefix_attention import fused, reference, tiled

Implementation = Literal["reference", "tiled", "fused"]

__all__ = ["Implementation", "prefix_attention"]


def prefix_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, impl: Implementation
) -> torch.Tensor:
    """softmax(q k^T / sqrt(d)) v, where new token i sees the keys up to its own.

    q: [kv_heads, group, new, d]; k, v: [kv_heads, prefix + new, d], keys rotated. Returns the shape
    and dtype of q. Raises ValueError for shapes that don't fit.
    """
    if q.dim() != 4 or k.dim() != 3 or k.shape != v.shape:
        raise ValueError(f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)} don't fit")
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[2] or q.shape[2] > k.shape[1]:
        raise ValueError(f"q {tuple(q.shape)} doesn't fit k {tuple(k.shape)}")
    if impl == "reference":
        return reference.prefix_attention(q, k, v)
    if impl == "tiled":
        return tiled.prefix_attention(q, k, v)
    return fused.prefix_attention(q, k, v)
