"""The specification."""

from __future__ import annotations

import torch

_FLOOR = 1e-12


def row_quantise(x: torch.Tensor, largest: float) -> tuple[torch.Tensor, torch.Tensor]:
    """See the package."""
    exact = x.float()
    scale = exact.abs().amax(-1, keepdim=True).clamp_min(_FLOOR) / largest
    # A quotient may round to just above the largest number, which the conversion would not take.
    return (exact / scale).clamp(-largest, largest).to(torch.float8_e4m3fn), scale
