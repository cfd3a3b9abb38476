"""The specification, and what CPUs run."""

from __future__ import annotations

import torch
from torch.nn import functional


def add_norm(
    stream: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """See the package."""
    if delta is not None:
        stream = stream + delta
    normed = functional.rms_norm(stream.float(), weight.shape, weight, eps)
    return stream, normed.to(stream.dtype)
