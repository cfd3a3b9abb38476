"""The gate of a SwiGLU layer: silu(gate) * up."""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.gated_unit import reference

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "gated_unit"]


def gated_unit(both: torch.Tensor, *, impl: Implementation) -> torch.Tensor:
    """silu(gate) * up, [rows, width], for `both` [rows, 2 * width]: gate, then up, contiguous.

    Raises ValueError for a shape that doesn't fit.
    """
    if both.dim() != 2 or both.shape[1] % 2:
        raise ValueError(f"gate and up are no halves of {tuple(both.shape)}")
    if impl == "reference":
        return reference.gated_unit(both)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.gated_unit import kernel

    return kernel.gated_unit(both)
