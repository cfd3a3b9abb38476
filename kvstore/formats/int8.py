"""Eight-bit integers with a scale for each token and head."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kvstore.formats.packed import Field, PackedFormat
from kvstore.formats.types import Part
from kvstore.types import PAGE_TOKENS

_LARGEST = 127


class Int8Format(PackedFormat):
    """`scale * code`, codes from -127 to 127, the scale in float32."""

    name = "int8/token_head"
    coding = "int8"

    def fields(self, channels: int, part: Part) -> tuple[Field, ...]:
        """See `PackedFormat`."""
        return (
            Field(PAGE_TOKENS, channels, torch.int8),
            Field(PAGE_TOKENS, 1, torch.float32),
        )

    def pack(self, rows: torch.Tensor, part: Part) -> tuple[torch.Tensor, ...]:
        """See `PackedFormat`."""
        scale = rows.abs().amax(-1, keepdim=True) / _LARGEST
        # A row of zeros, or of numbers too small for a scale, is divided by one that is none.
        scale = scale.clamp(min=torch.finfo(torch.float32).tiny)
        codes = (rows / scale).round_().clamp_(-_LARGEST, _LARGEST).nan_to_num_(0.0)
        return codes.to(torch.int8), scale

    def unpack(
        self, codes: torch.Tensor, parameters: Sequence[torch.Tensor], part: Part, channels: int
    ) -> torch.Tensor:
        """See `PackedFormat`."""
        return codes.float().mul_(parameters[0])
