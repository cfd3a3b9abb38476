"""How the product for a few rows is cut up, for a number of outputs, weights' format and GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.ops.tuning import tuned

MOST_ROWS = 32
"""Of one product: as many contexts as a step has. With more, weights are not all of the work."""

FEWEST_ROWS = 4
SOME_ROWS = 16
"""Up to so many rows are tuned as the fewest and as some, others as many: they are read once a
program, so that programs of few outputs read more of rows than of weights."""

PARTS = 4
"""Sums of an output that grow side by side, one for each warp of a program."""


@dataclass(frozen=True, slots=True)
class LinearTiles:
    """A program has `outputs` outputs, a power of two from 16 on, and has asked for the inputs of
    so many rounds less one, `stages`, before it needs them. Neither changes a result."""

    outputs: int
    stages: int

    def __post_init__(self) -> None:
        if self.outputs < 16 or self.outputs & (self.outputs - 1):
            raise ValueError(f"a tile of {self.outputs} outputs: a power of two from 16 on")
        if self.stages < 1:
            raise ValueError(f"{self.stages} stages: 1 or more")


def stretch_of(dtype: torch.dtype) -> int:
    """Inputs that one of the `PARTS` takes at a time, of rows in this dtype."""
    # Without tensor cores every thread holds all inputs of its outputs.
    return 128 if dtype.itemsize == 2 else 32


def table_of(rows: int) -> str:
    """The name under which tables have the tiles for so many rows."""
    if rows <= FEWEST_ROWS:
        return "few_rows_linear"
    return "some_rows_linear" if rows <= SOME_ROWS else "many_rows_linear"


def padded_outputs(outputs: int) -> int:
    """The width under which tables have layers of so many outputs: a power of two."""
    return 1 << (outputs - 1).bit_length()


def choose_linear_tiles(
    rows: int, outputs: int, dtype: torch.dtype, device: torch.device
) -> LinearTiles:
    """The tuned entry of this GPU for weights of `dtype`, or a safe default."""
    # At most 96 KiB of shared memory, of which every card has 99.
    if rows <= FEWEST_ROWS:
        safe = LinearTiles(outputs=16, stages=4)
    else:
        safe = LinearTiles(outputs=32, stages=3 if dtype.itemsize == 1 else 2)
    return tuned(table_of(rows), padded_outputs(outputs), dtype, device, LinearTiles, safe)
