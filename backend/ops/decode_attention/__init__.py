"""Attention of a few new tokens on a buffer that is partly filled.

The whole buffer is read and what isn't filled is hidden by an additive mask, so that the batched
products see contiguous tensors.
"""

from __future__ import annotations

import torch

from backend.ops.decode_attention import batched, reference
from backend.ops.prefix_attention import Implementation

__all__ = ["decode_attention"]


def decode_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    hidden: torch.Tensor,
    *,
    impl: Implementation,
) -> torch.Tensor:
    """softmax(q k^T / sqrt(d) + hidden) v.

    q: [kv_heads, group, new, d]; k, v: [kv_heads, capacity, d], keys rotated, finite everywhere;
    hidden: [new, capacity], 0 or -inf. Returns the shape and dtype of q. Raises ValueError for
    shapes that don't fit.
    """
    if q.dim() != 4 or k.shape != v.shape or hidden.shape != (q.shape[2], k.shape[1]):
        raise ValueError(f"q {tuple(q.shape)}, k {tuple(k.shape)}, hidden don't fit")
    if impl == "reference":
        return reference.decode_attention(q, k, v, hidden)
    return batched.decode_attention(q, k, v, hidden)
