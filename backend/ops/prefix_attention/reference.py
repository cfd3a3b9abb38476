"""The specification: full scores and one softmax in float32 (float64 stays float64)."""

from __future__ import annotations

import torch


def prefix_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """See the package."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    new, length = q.shape[2], k.shape[1]
    scores = torch.einsum("hgnd,hmd->hgnm", q.to(exact), k.to(exact)) * q.shape[-1] ** -0.5
    last = torch.arange(length - new, length, device=q.device)
    hidden = torch.arange(length, device=q.device)[None, :] > last[:, None]
    weights = scores.masked_fill(hidden, float("-inf")).softmax(-1)
    return torch.einsum("hgnm,hmd->hgnd", weights, v.to(exact)).to(q.dtype)
