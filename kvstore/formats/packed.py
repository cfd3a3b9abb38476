"""What formats of less than 16 bit have in common: codes and their parameters in a row of bytes.

A cell holds the codes of 64 tokens, then the parameters (scales and the like) of groups of
consecutive tokens, then zeros up to a multiple of 128 bytes, so that each head's keys and values
can be read by whole sectors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from kvstore.formats.types import Cell, Part
from kvstore.types import PAGE_TOKENS

ALIGNMENT = 128

Coding = Literal["int8", "fp8", "int4"]
"""What a code is, for kernels that read cells by themselves."""


@dataclass(frozen=True, slots=True)
class Field:
    """[rows, columns] of a cell. Row i belongs to tokens [i * 64 / rows, (i + 1) * 64 / rows)."""

    rows: int
    columns: int
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        """Size in the cell."""
        return self.rows * self.columns * self.dtype.itemsize


class PackedFormat(ABC):
    """A format with its fields. The first field is the codes, a row for each token; the others are
    parameters, with the same number of rows each."""

    plain = False
    name: str
    coding: Coding

    @abstractmethod
    def fields(self, channels: int, part: Part) -> tuple[Field, ...]:
        """The fields of a cell, in their order. Each begins where its dtype may."""

    @abstractmethod
    def pack(self, rows: torch.Tensor, part: Part) -> tuple[torch.Tensor, ...]:
        """The fields of float32 rows [..., 64, channels], each [..., rows, columns]."""

    @abstractmethod
    def unpack(
        self, codes: torch.Tensor, parameters: Sequence[torch.Tensor], part: Part, channels: int
    ) -> torch.Tensor:
        """Float32 rows [..., channels] of codes and parameters [..., columns], which are broadcast
        against each other."""

    def cell(self, channels: int) -> Cell:
        """See `PageFormat`."""
        size = max(self.starts(channels, part)[-1] for part in _PARTS)
        return Cell((-(-size // ALIGNMENT) * ALIGNMENT,), torch.uint8)

    def starts(self, channels: int, part: Part) -> tuple[int, ...]:
        """Byte of the cell at which each field begins, and where the last one ends."""
        sizes = [field.bytes for field in self.fields(channels, part)]
        return tuple(sum(sizes[:count]) for count in range(len(sizes) + 1))

    def encode(self, rows: torch.Tensor, part: Part) -> torch.Tensor:
        """See `PageFormat`."""
        channels = rows.shape[-1]
        cells = rows.new_zeros((*rows.shape[:-2], *self.cell(channels).shape), dtype=torch.uint8)
        packed = self.pack(rows.float(), part)
        for place, field in zip(self._places(cells, channels, part), packed, strict=True):
            place.copy_(field)
        return cells

    def decode(
        self, cells: torch.Tensor, part: Part, channels: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """See `PageFormat`."""
        codes, *parameters = self._places(cells, channels, part)
        groups = parameters[0].shape[-2]
        rows = self.unpack(
            codes.unflatten(-2, (groups, PAGE_TOKENS // groups)),
            [parameter.unsqueeze(-2) for parameter in parameters],
            part,
            channels,
        )
        return rows.to(dtype).flatten(-3, -2)

    def decode_tokens(
        self,
        cells: torch.Tensor,
        pages: torch.Tensor,
        slots: torch.Tensor,
        part: Part,
        channels: int,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        """See `PageFormat`."""
        codes, *parameters = self._places(cells, channels, part)
        group = slots // (PAGE_TOKENS // parameters[0].shape[-2])
        chosen = [parameter[pages, :, :, group] for parameter in parameters]
        # As bytes, since indexing may lack floating point of eight bits.
        rows = codes.view(torch.uint8)[pages, :, :, slots].view(codes.dtype)
        return self.unpack(rows, chosen, part, channels).to(dtype)

    def _places(self, cells: torch.Tensor, channels: int, part: Part) -> list[torch.Tensor]:
        """Views of the fields, each [..., rows, columns]."""
        views = []
        starts = self.starts(channels, part)
        for first, field in zip(starts, self.fields(channels, part), strict=False):
            raw = cells[..., first : first + field.bytes]
            views.append(raw.view(field.dtype).unflatten(-1, (field.rows, field.columns)))
        return views


_PARTS: tuple[Part, Part] = (0, 1)
