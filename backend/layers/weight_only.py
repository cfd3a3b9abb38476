"""Weight-only linear layers for decoding on a CPU, where reading the weights is the cost.

Activations stay in bfloat16. Measured for all linear layers of the default model at one row (2 Zen
4 cores, 27 GB/s of memory reads, torch 2.13): int4 3.6 ms, int8 7.5 ms, int8 with int8 activations
5.9 ms and several more small operations a layer.
"""

from __future__ import annotations

import torch

from backend.layers.linear import DenseLinear, Linear, quantise_rows

_GROUP = 32
_TILE = 64


class Int8WeightLinear:
    """Weights [out, in] as int8 with a scale per output channel."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None = None) -> None:
        rows = quantise_rows(weight)
        self.values = rows.values.contiguous()
        self.scale = rows.scale.flatten().to(torch.bfloat16)
        self.bias = None if bias is None else bias.to(torch.bfloat16)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] of any float dtype to [rows, out] in bfloat16."""
        out = torch._weight_int8pack_mm(x.to(torch.bfloat16), self.values, self.scale)
        return out if self.bias is None else out.add_(self.bias)


class Int4WeightLinear:
    """Weights [out, in] that lie on 16 levels per group of 32 inputs, as in GGUF's Q4_1."""

    def __init__(
        self, codes: torch.Tensor, scales: torch.Tensor, bias: torch.Tensor | None = None
    ) -> None:
        """`codes` [out, in] in 0..15; `scales` [in / 32, out, 2] holds step and middle, where a
        weight is `(code - 8) * step + middle`."""
        packed = torch.ops.aten._convert_weight_to_int4pack_for_cpu(codes.to(torch.int32), 1)
        self._packed: torch.Tensor = packed
        self._scales = scales.to(torch.bfloat16).contiguous()
        self.bias = None if bias is None else bias.to(torch.bfloat16)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] of any float dtype to [rows, out] in bfloat16."""
        out: torch.Tensor = torch.ops.aten._weight_int4pack_mm_for_cpu(
            x.to(torch.bfloat16), self._packed, _GROUP, self._scales
        )
        return out if self.bias is None else out.add_(self.bias)

    @classmethod
    def exact(cls, weight: torch.Tensor, bias: torch.Tensor | None) -> Int4WeightLinear | None:
        """The layer when `weight` is on such levels already (it came from 4 bits), else None: what
        was stored wider is never squeezed."""
        outputs, width = weight.shape
        if width % _GROUP or outputs % _TILE:
            return None
        groups = weight.float().unflatten(1, (-1, _GROUP))
        low, high = groups.aminmax(dim=-1, keepdim=True)
        step = (high - low) / 15
        codes = ((groups - low) / step.clamp_min(1e-30)).round_()
        if not torch.allclose(codes * step + low, groups, rtol=0, atol=2e-3 * float(step.max())):
            return None
        scales = torch.cat((step, low + 8 * step), -1).transpose(0, 1)
        return cls(codes.flatten(1), scales, bias)


def make_weight_only(weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
    """int4 where nothing is lost by it, else int8; bfloat16 for shapes that the kernels can't take
    (`torch._weight_int8pack_mm` reads past the end of rows that are no multiple of its tile: a
    crash was seen at 60 input features)."""
    if layer := Int4WeightLinear.exact(weight, bias):
        return layer
    outputs, width = weight.shape
    if outputs % _TILE == 0 and width % _TILE == 0:
        return Int8WeightLinear(weight.float(), bias)
    extra = None if bias is None else bias.to(torch.bfloat16)
    return DenseLinear(weight.to(torch.bfloat16).contiguous(), extra)
