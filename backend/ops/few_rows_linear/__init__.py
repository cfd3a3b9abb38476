"""`y = x W^T (+ b)` for the few rows of a step of decoding, whose work is to read the weights.

Weights are of the rows' dtype, or e4m3 with a scale per output, which are half the bytes: they are
converted in registers, so that activations keep their 16 bits (W8A16) and need no kernel of their
own. What comes out for a row depends neither on the other rows nor on how many there are. Measured
in docs/benchmarks/kernels-h200.md.
"""

from __future__ import annotations

from typing import Literal

import torch

from backend.ops.few_rows_linear import reference
from backend.ops.few_rows_linear.tiles import MOST_ROWS, LinearTiles, choose_linear_tiles

Implementation = Literal["reference", "triton"]

__all__ = ["MOST_ROWS", "Implementation", "LinearTiles", "choose_linear_tiles", "few_rows_linear"]


def few_rows_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    scale: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    *,
    gated: bool = False,
    impl: Implementation,
    tiles: LinearTiles | None = None,
) -> torch.Tensor:
    """[rows, outputs] in the dtype of x [rows, inputs], at most `MOST_ROWS` rows, summed in
    float32. weight: [outputs, inputs], contiguous, in the dtype of x, or in e4m3 with `scale`
    [outputs] in float32; bias: [outputs]. With `gated` the halves of the outputs are gate and up,
    and what comes out is silu(gate) * up, [rows, outputs / 2], both rounded to the dtype of x
    before. `tiles` replaces the tuned ones.

    Raises ValueError for what doesn't fit.
    """
    _check(x, weight, scale, bias)
    if gated and len(weight) % 2:
        raise ValueError(f"gate and up are no halves of {len(weight)} outputs")
    if impl == "reference":
        return reference.few_rows_linear(x, weight, scale, bias, gated=gated)
    # Triton decides at import whether it compiles or interprets, and is there on Linux only.
    from backend.ops.few_rows_linear import kernel

    chosen = tiles or choose_linear_tiles(len(x), len(weight), weight.dtype, x.device)
    return kernel.few_rows_linear(x, weight, scale, bias, chosen, gated=gated)


def _check(
    x: torch.Tensor, weight: torch.Tensor, scale: torch.Tensor | None, bias: torch.Tensor | None
) -> None:
    if x.dim() != 2 or weight.dim() != 2 or x.shape[1] != weight.shape[1]:
        raise ValueError(f"rows {tuple(x.shape)} and weight {tuple(weight.shape)}")
    if not 1 <= len(x) <= MOST_ROWS:
        raise ValueError(f"1 to {MOST_ROWS} rows, not {len(x)}")
    if not (x.is_contiguous() and weight.is_contiguous()):
        raise ValueError("rows and weight must be contiguous")
    expected = x.dtype if scale is None else torch.float8_e4m3fn
    if weight.dtype != expected:
        raise ValueError(f"the weight is {weight.dtype}, not {expected}")
    for name, one in (("scale", scale), ("bias", bias)):
        if one is not None and (one.shape != weight.shape[:1] or not one.is_contiguous()):
            raise ValueError(f"{name} {tuple(one.shape)} of {len(weight)} outputs")
