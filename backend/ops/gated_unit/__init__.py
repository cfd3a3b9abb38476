"""The gate of a SwiGLU layer: silu(gate) * up."""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.gated_unit import reference
from backend.ops.row_quantise import LARGEST, row_quantise

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "gated_rows", "gated_unit"]


def gated_unit(both: torch.Tensor, *, impl: Implementation) -> torch.Tensor:
    """silu(gate) * up, [rows, width], for `both` [rows, 2 * width]: gate, then up, contiguous.

    Raises ValueError for a shape that doesn't fit.
    """
    _check(both)
    if impl == "reference":
        return reference.gated_unit(both)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.gated_unit import kernel

    return kernel.gated_unit(both)


def gated_rows(both: torch.Tensor, *, impl: Implementation) -> tuple[torch.Tensor, torch.Tensor]:
    """What `row_quantise` makes of `gated_unit(both)`, which is not written in between: values in
    e4m3 [rows, width] and scales [rows, 1] in float32.

    Raises ValueError for a shape that doesn't fit.
    """
    _check(both)
    if impl == "reference":
        return row_quantise(reference.gated_unit(both), impl="reference")
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.gated_unit import kernel

    return kernel.gated_rows(both, LARGEST)


def _check(both: torch.Tensor) -> None:
    if both.dim() != 2 or both.shape[1] % 2:
        raise ValueError(f"gate and up are no halves of {tuple(both.shape)}")
