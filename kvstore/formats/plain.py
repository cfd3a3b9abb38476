"""Rows as they are, in 16 or 32 bit."""

from __future__ import annotations

import torch

from kvstore.formats.types import Cell, Part
from kvstore.types import PAGE_TOKENS


class PlainFormat:
    """Rows in `dtype`. What is beyond float16's 65,504 becomes that."""

    plain = True

    def __init__(self, dtype: torch.dtype) -> None:
        self.dtype = dtype

    @property
    def name(self) -> str:
        """The dtype's."""
        return str(self.dtype)

    def cell(self, channels: int) -> Cell:
        """See `PageFormat`."""
        return Cell((PAGE_TOKENS, channels), self.dtype)

    def encode(self, rows: torch.Tensor, part: Part) -> torch.Tensor:
        """See `PageFormat`."""
        limit = torch.finfo(self.dtype).max
        if torch.finfo(rows.dtype).max > limit:
            # In float32, since bfloat16 has no 65,504. Infinite numbers are a fault of the model
            # and stay what they are.
            wide = rows.float()
            rows = torch.where(wide.isinf(), wide, wide.clamp(-limit, limit))
        return rows.to(self.dtype)

    def decode(
        self, cells: torch.Tensor, part: Part, channels: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """See `PageFormat`."""
        return cells.to(dtype)

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
        return cells[pages, :, :, slots].to(dtype)
