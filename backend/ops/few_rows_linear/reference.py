"""The specification."""

from __future__ import annotations

import torch

from backend.ops.gated_unit import gated_unit


def few_rows_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor | None,
    bias: torch.Tensor | None,
    *,
    gated: bool,
) -> torch.Tensor:
    """See the package."""
    exact = x.float() @ weight.float().t()
    if scale is not None:
        exact = exact * scale
    if bias is not None:
        exact = exact + bias.float()
    rounded = exact.to(x.dtype)
    return gated_unit(rounded, impl="reference") if gated else rounded
