"""Rows of numbers as e4m3 with a scale each, for products in FP8."""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.row_quantise import reference

Implementation = Literal["reference", "triton"]

__all__ = ["LARGEST", "Implementation", "row_quantise"]

LARGEST = 448.0
"""The largest number of e4m3."""


def row_quantise(x: torch.Tensor, *, impl: Implementation) -> tuple[torch.Tensor, torch.Tensor]:
    """(x / scale in e4m3 [rows, width], scale [rows, 1] in float32), so that the largest number of
    a row becomes 448. x: [rows, width], contiguous. A row of zeros keeps a tiny scale.

    Raises ValueError for a shape that doesn't fit.
    """
    if x.dim() != 2 or not x.is_contiguous():
        raise ValueError(f"{tuple(x.shape)} are no contiguous rows")
    if impl == "reference":
        return reference.row_quantise(x, LARGEST)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.row_quantise import kernel

    return kernel.row_quantise(x, LARGEST)
