"""Eight-bit floating point, e4m3, with a scale for a group of tokens of each head.

E4m3 has three bits of mantissa, no infinity, and 448 as its largest number; a conversion makes
anything above a NaN. So groups are scaled to that range and cut to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kvstore.formats.packed import Field, PackedFormat
from kvstore.formats.types import Part
from kvstore.types import PAGE_TOKENS

LARGEST = 448.0


class Fp8Format(PackedFormat):
    """`scale * code`, the scale in float32, for each `tokens` consecutive tokens of a page."""

    coding = "fp8"

    def __init__(self, tokens: int, group: str) -> None:
        """`tokens` divides 64; `group` names it."""
        self.name = f"fp8_e4m3/{group}"
        self._groups = PAGE_TOKENS // tokens
        self._numbers: torch.Tensor | None = None

    def fields(self, channels: int, part: Part) -> tuple[Field, ...]:
        """See `PackedFormat`."""
        return (
            Field(PAGE_TOKENS, channels, torch.float8_e4m3fn),
            Field(self._groups, 1, torch.float32),
        )

    def pack(self, rows: torch.Tensor, part: Part) -> tuple[torch.Tensor, ...]:
        """See `PackedFormat`."""
        grouped = rows.unflatten(-2, (self._groups, -1))
        scale = grouped.abs().amax((-2, -1), keepdim=True) / LARGEST
        scale = scale.clamp(min=torch.finfo(torch.float32).tiny)
        codes = (grouped / scale).clamp_(-LARGEST, LARGEST).flatten(-3, -2)
        return codes.to(torch.float8_e4m3fn), scale.squeeze(-1)

    def unpack(
        self, codes: torch.Tensor, parameters: Sequence[torch.Tensor], part: Part, channels: int
    ) -> torch.Tensor:
        """See `PackedFormat`."""
        return self._floats(codes).mul_(parameters[0])

    def _floats(self, codes: torch.Tensor) -> torch.Tensor:
        if codes.device.type != "cpu":
            return codes.float()
        # On a CPU the conversion is a loop over single numbers: a table is twice as fast.
        if self._numbers is None:
            every = torch.arange(256, dtype=torch.uint8)
            self._numbers = every.view(torch.float8_e4m3fn).float()
        numbers = codes.view(torch.uint8)
        return self._numbers.index_select(0, numbers.flatten().int()).view(numbers.shape)
