"""Attention of new tokens on latents and, causally, on each other (multi-head latent attention).

All query heads read one head, what is kept of a token: its latent and a rotated key. Queries come
multiplied by their head's matrix for keys ("absorbed"), and what is read is latents, which the
caller multiplies by the head's matrix for values. Serves reading, a question and decoding.
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.latent_attention import reference, tiled

Implementation = Literal["reference", "tiled"]

__all__ = ["Implementation", "latent_attention"]


def latent_attention(
    q: torch.Tensor, kept: torch.Tensor, rank: int, scale: float, *, impl: Implementation
) -> torch.Tensor:
    """softmax(scale q kept^T) kept[:, :rank], where new token i sees the rows up to its own.

    q: [new, heads, d]; kept: [prefix + new, d], contiguous; both rotated. Returns
    [new, heads, rank] in the dtype of q. Raises ValueError for shapes that don't fit.
    """
    if q.dim() != 3 or kept.dim() != 2 or q.shape[2] != kept.shape[1]:
        raise ValueError(f"q {tuple(q.shape)} doesn't fit latents {tuple(kept.shape)}")
    if not 0 < rank <= q.shape[2] or q.shape[0] > kept.shape[0]:
        raise ValueError(f"{q.shape[0]} new tokens, {len(kept)} latents with values of {rank}")
    if q.dtype != kept.dtype or q.device != kept.device:
        raise ValueError("q and the latents differ in dtype or device")
    if impl == "reference":
        return reference.latent_attention(q, kept, rank, scale)
    return tiled.latent_attention(q, kept, rank, scale)
