"""The specification: full scores and one softmax in float32 (float64 stays float64)."""

from __future__ import annotations

import torch


def latent_attention(q: torch.Tensor, kept: torch.Tensor, rank: int, scale: float) -> torch.Tensor:
    """See the package."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    new, length = q.shape[0], kept.shape[0]
    rows = kept.to(exact)
    scores = torch.einsum("nhd,md->hnm", q.to(exact), rows) * scale
    last = torch.arange(length - new, length, device=q.device)
    hidden = torch.arange(length, device=q.device)[None, :] > last[:, None]
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.einsum("hnm,mr->nhr", weights, rows[:, :rank]).to(q.dtype)
