"""The specification: only the tokens that are not hidden, in float32."""

from __future__ import annotations

import torch


def decode_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, hidden: torch.Tensor
) -> torch.Tensor:
    """See the package."""
    out = torch.empty_like(q)
    for row in range(q.shape[2]):
        seen = hidden[row] == 0
        keys, values = k[:, seen].float(), v[:, seen].float()
        scores = torch.einsum("hgd,hmd->hgm", q[:, :, row].float(), keys) * q.shape[-1] ** -0.5
        out[:, :, row] = torch.einsum("hgm,hmd->hgd", scores.softmax(-1), values).to(q.dtype)
    return out
