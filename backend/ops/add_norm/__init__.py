"""The residual stream of a decoder: what a layer gives is added, and the sum is RMS-normed."""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.add_norm import reference
from backend.ops.row_quantise import LARGEST, row_quantise

Implementation = Literal["reference", "triton"]

__all__ = ["Implementation", "add_norm", "add_norm_rows"]


def add_norm(
    stream: torch.Tensor,
    delta: torch.Tensor | None,
    weight: torch.Tensor,
    eps: float,
    *,
    impl: Implementation,
) -> tuple[torch.Tensor, torch.Tensor]:
    """(stream + delta, its RMS norm times `weight`), both in the dtype of `stream`.

    stream, delta: [rows, width], contiguous; weight: [width], float32. The norm is computed in
    float32 from the sum as it is stored. "triton" writes the sum over `stream`. Raises ValueError
    for shapes that don't fit.
    """
    _check(stream, delta, weight)
    if impl == "reference":
        return reference.add_norm(stream, delta, weight, eps)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.add_norm import kernel

    return kernel.add_norm(stream, delta, weight, eps)


def add_norm_rows(
    stream: torch.Tensor,
    delta: torch.Tensor | None,
    weight: torch.Tensor,
    eps: float,
    *,
    impl: Implementation,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """As `add_norm`, but of the norm what `row_quantise` makes of it, which is not written in
    between: (stream + delta, values in e4m3 [rows, width], scales [rows, 1] in float32)."""
    _check(stream, delta, weight)
    if impl == "reference":
        total, normed = reference.add_norm(stream, delta, weight, eps)
        return total, *row_quantise(normed, impl="reference")
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.add_norm import kernel

    return kernel.add_norm_rows(stream, delta, weight, eps, LARGEST)


def _check(stream: torch.Tensor, delta: torch.Tensor | None, weight: torch.Tensor) -> None:
    if stream.dim() != 2 or weight.shape != stream.shape[1:]:
        raise ValueError(f"stream {tuple(stream.shape)} and weight {tuple(weight.shape)}")
    if delta is not None and delta.shape != stream.shape:
        raise ValueError(f"stream {tuple(stream.shape)} and delta {tuple(delta.shape)}")
