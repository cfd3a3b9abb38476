"""The interface of a format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import torch

Part = Literal[0, 1]
"""0: keys, before rotation. 1: values."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a pool keeps for the keys (or values) of one page, layer and head: a tensor of this
    shape and dtype."""

    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def bytes(self) -> int:
        """Size of one cell."""
        size = self.dtype.itemsize
        for extent in self.shape:
            size *= extent
        return size


class PageFormat(Protocol):
    """Turns the rows of a page into a cell and back.

    Numbers that are too large for a format become the largest that it has, never infinite; numbers
    that are not finite come back not finite. The same rows always give the same cell, and
    a cell the same rows whether it is decoded whole or token by token: so what a question sees does
    not depend on when its blocks were read.
    """

    @property
    def name(self) -> str:
        """Part of a block's content key. Another name whenever the same bytes mean something
        else."""
        ...

    @property
    def plain(self) -> bool:
        """Whether a cell is the rows themselves, [64, channels]."""
        ...

    def cell(self, channels: int) -> Cell:
        """The cell of rows of `channels` numbers; keys and values have the same."""
        ...

    def encode(self, rows: torch.Tensor, part: Part) -> torch.Tensor:
        """[..., 64, channels] floating point to [..., *cell]."""
        ...

    def decode(
        self, cells: torch.Tensor, part: Part, channels: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """[..., *cell] to [..., 64, channels] in `dtype`."""
        ...

    def decode_tokens(
        self,
        cells: torch.Tensor,
        pages: torch.Tensor,
        slots: torch.Tensor,
        part: Part,
        channels: int,
        dtype: torch.dtype,
    ) -> torch.Tensor:
        """Row `slots[i]` of page `pages[i]` for each i: [pages, layers, heads, *cell] to
        [i, layers, heads, channels] in `dtype`."""
        ...
