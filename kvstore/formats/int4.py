"""Four-bit integers: keys by channel over 32 tokens, values by token over 32 channels.

Source of the layout: Liu et al., KIVI (arXiv 2402.02750): some channels of keys are large for all
tokens, values have no such channels. Here each group of 32 numbers has its least number in bfloat16
and a step in one byte (an eighth of a power of two), 4.75 bits a number altogether; a step in
bfloat16, too, would make it five.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kvstore.formats.packed import Field, PackedFormat
from kvstore.formats.types import Part
from kvstore.types import PAGE_TOKENS

GROUP = 32
_LARGEST = 15
_LARGEST_LEAST = torch.finfo(torch.bfloat16).max
STEPS_PER_OCTAVE = 8
MIDDLE = 160
"""Step byte b stands for 2 ** ((b - 160) / 8): from 1e-6 to 3,756, numbers up to 56,000 apart."""


class Int4Format(PackedFormat):
    """`least + step * code`, codes from 0 to 15. The low halves of a token's bytes are its first
    channels, the high halves the others."""

    name = "int4/channel32_token32"
    coding = "int4"

    def __init__(self) -> None:
        self._steps: dict[torch.device, torch.Tensor] = {}

    def fields(self, channels: int, part: Part) -> tuple[Field, ...]:
        """See `PackedFormat`."""
        groups = -(-channels // GROUP)
        rows, columns = (PAGE_TOKENS // GROUP, channels) if part == 0 else (PAGE_TOKENS, groups)
        return (
            Field(PAGE_TOKENS, -(-channels // 2), torch.uint8),
            Field(rows, columns, torch.bfloat16),
            Field(rows, columns, torch.uint8),
        )

    def pack(self, rows: torch.Tensor, part: Part) -> tuple[torch.Tensor, ...]:
        """See `PackedFormat`."""
        channels = rows.shape[-1]
        if part == 0:
            grouped, along = rows.unflatten(-2, (-1, GROUP)), -2
        else:
            grouped, along = _widened(rows, GROUP).unflatten(-1, (-1, GROUP)), -1
        low, high = grouped.amin(along, keepdim=True), grouped.amax(along, keepdim=True)
        # Zero, or no number where one of the group isn't finite.
        fault = (high - high) + (low - low)
        least = (low.clamp(-_LARGEST_LEAST, _LARGEST_LEAST) + fault).to(torch.bfloat16)
        span = torch.maximum(high - least.float(), high - low)
        step = self._step_bytes(span)
        codes = (grouped - least.float()) / self._step(step)
        codes = codes.round_().clamp_(0, _LARGEST).nan_to_num_(0.0).to(torch.uint8)
        codes = codes.flatten(-3, -2) if part == 0 else codes.flatten(-2, -1)[..., :channels]
        first, second = _widened(codes, 2).chunk(2, -1)
        return first | second << 4, least.squeeze(along), step.squeeze(along)

    def unpack(
        self, codes: torch.Tensor, parameters: Sequence[torch.Tensor], part: Part, channels: int
    ) -> torch.Tensor:
        """See `PackedFormat`."""
        numbers = torch.cat((codes & 15, codes >> 4), -1)[..., :channels].float()
        least, step = parameters[0].float(), self._step(parameters[1])
        if part == 0:
            return numbers.mul_(step).add_(least)
        groups: torch.Tensor = _widened(numbers, GROUP).unflatten(-1, (-1, GROUP))
        rows = groups.mul_(step.unsqueeze(-1)).add_(least.unsqueeze(-1))
        return rows.flatten(-2, -1)[..., :channels]

    def _step_bytes(self, span: torch.Tensor) -> torch.Tensor:
        """The smallest step for each span that reaches from one end to the other."""
        wanted = (span / _LARGEST).clamp_(min=torch.finfo(torch.float32).tiny).contiguous()
        # Compared and not computed with a logarithm, which libraries round differently.
        places = torch.bucketize(wanted, self._table(span.device)).clamp_(max=255)
        return places.masked_fill_(span.isnan(), 0).to(torch.uint8)

    def _step(self, places: torch.Tensor) -> torch.Tensor:
        return self._table(places.device)[places.int()]

    def _table(self, device: torch.device) -> torch.Tensor:
        table = self._steps.get(device)
        if table is None:
            # Not `exp2`: a library may round it differently in another place of a tensor.
            sizes = [2.0 ** ((place - MIDDLE) / STEPS_PER_OCTAVE) for place in range(256)]
            table = self._steps[device] = torch.tensor(sizes, device=device)
        return table


def _widened(rows: torch.Tensor, multiple: int) -> torch.Tensor:
    """Rows whose last number is repeated up to a multiple of numbers."""
    missing = -rows.shape[-1] % multiple
    if not missing:
        return rows
    return torch.cat((rows, rows[..., -1:].expand(*rows.shape[:-1], missing)), -1)
