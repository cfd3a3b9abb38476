"""Linear layers whose weights stay in 4 bits, in the layout of AWQ checkpoints.

Source: Lin et al., AWQ (arXiv 2306.00978); packing as in AutoAWQ's "gemm" version. The weights are
made dense at each use, a stretch of outputs at a time, so they take a quarter of the memory of 16
bit and more time: the product itself is the same, and what is unpacked is written and read once
more. Plain torch, which is the specification of any faster kernel; its speed on a GPU is not
measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch.nn import functional

CODES = 8
"""4-bit codes in one int32."""

_SHIFTS = (0, 16, 4, 20, 8, 24, 12, 28)
"""Where the code of each of 8 outputs in a row begins, in bits: packing interleaves them."""

_STRETCH = 1024
"""Outputs made dense at a time: at 14,336 inputs 60 MB of codes."""


@dataclass(frozen=True, slots=True)
class AwqWeight:
    """A weight [out, in] as `(code - zero) * scale`, code and zero 0 to 15.

    `codes` int32 [in, out / 8]; `zeros` int32 [in / group, out / 8]; `scales` float16
    [in / group, out]. A group is some consecutive inputs of one output.
    """

    codes: torch.Tensor
    zeros: torch.Tensor
    scales: torch.Tensor

    @property
    def outputs(self) -> int:
        """Rows of the dense weight."""
        return self.scales.shape[1]

    @property
    def group(self) -> int:
        """Inputs that share a scale."""
        return self.codes.shape[0] // self.scales.shape[0]

    def dense(self, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """[out, in], multiplied in float32 and then rounded."""
        zeros, scales = (
            part.repeat_interleave(self.group, 0) for part in (self.zeros, self.scales)
        )
        return ((_unpack(self.codes) - _unpack(zeros)) * scales.float()).to(dtype).t()

    def part(self, first: int, last: int) -> AwqWeight:
        """Of the outputs [first, last), both multiples of 8."""
        packed = slice(first // CODES, last // CODES)
        return AwqWeight(self.codes[:, packed], self.zeros[:, packed], self.scales[:, first:last])

    def to(self, device: torch.device) -> AwqWeight:
        """The same on a device."""
        return AwqWeight(
            self.codes.to(device).contiguous(),
            self.zeros.to(device).contiguous(),
            self.scales.to(device).contiguous(),
        )

    @staticmethod
    def joined(parts: Sequence[AwqWeight]) -> AwqWeight:
        """Several weights with the same inputs, one output after the other."""
        return AwqWeight(
            torch.cat([part.codes for part in parts], 1),
            torch.cat([part.zeros for part in parts], 1),
            torch.cat([part.scales for part in parts], 1),
        )


class AwqLinear:
    """Computes in `dtype` with the weight that `AwqWeight.dense` gives in it."""

    def __init__(self, weight: AwqWeight, bias: torch.Tensor | None, dtype: torch.dtype) -> None:
        self.weight = weight
        self.dtype = dtype
        self.bias = bias

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[rows, in] of any float dtype to [rows, out] in the layer's dtype."""
        x = x.to(self.dtype)
        parts: list[torch.Tensor] = []
        for first in range(0, self.weight.outputs, _STRETCH):
            part = self.weight.part(first, first + _STRETCH)
            shift = None if self.bias is None else self.bias[first : first + _STRETCH]
            parts.append(functional.linear(x, part.dense(self.dtype), shift))
        return torch.cat(parts, -1)


def _unpack(packed: torch.Tensor) -> torch.Tensor:
    """int32 [rows, n / 8] to the codes [rows, n], int32."""
    # An arithmetic shift: what comes in from the sign is masked away.
    return (packed[:, :, None] >> _shifts(packed.device) & 15).flatten(1)


@cache
def _shifts(device: torch.device) -> torch.Tensor:
    """Copied to a device once: a step that is recorded there can take nothing from the host."""
    return torch.tensor(_SHIFTS, dtype=torch.int32, device=device)
