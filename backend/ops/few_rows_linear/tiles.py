"""How the product for a few rows is cut up, for a number of outputs, weights' format and GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.ops.tuning import tuned

MOST_ROWS = 32
"""Of one product: as many contexts as a step has. With more, weights are not all of the work."""

FEWEST_ROWS = 4
"""Up to so many rows are tuned as the fewest, others as some: they are read once a program, so that
programs of few outputs read more of rows than of weights."""


@dataclass(frozen=True, slots=True)
class LinearTiles:
    """A program has `outputs` outputs and reads `inputs` inputs of them at a time, in `stages`.

    With `alone` a row by itself goes through multiplications by hand, so many outputs a program,
    instead of tensor cores, which would be given 15 rows of nothing. Its sums are then in another
    order than among other rows; with 0 they never are.
    """

    outputs: int
    inputs: int
    warps: int
    stages: int
    alone: int = 0

    def __post_init__(self) -> None:
        for size in (self.outputs, self.inputs):
            if size < 16 or size & (size - 1):
                raise ValueError(f"a tile of {size}: a power of two from 16 on")
        if self.warps not in (1, 2, 4, 8, 16) or self.stages < 1:
            raise ValueError("warps are a power of two up to 16, stages 1 or more")
        if self.alone not in (0, 1, 2, 4, 8, 16):
            raise ValueError(f"alone is a power of two up to 16, or 0, not {self.alone}")


def table_of(rows: int) -> str:
    """The name under which tables have the tiles for so many rows."""
    return "few_rows_linear" if rows <= FEWEST_ROWS else "some_rows_linear"


def padded_outputs(outputs: int) -> int:
    """The width under which tables have layers of so many outputs: a power of two."""
    return 1 << (outputs - 1).bit_length()


def choose_linear_tiles(
    rows: int, outputs: int, dtype: torch.dtype, device: torch.device
) -> LinearTiles:
    """The tuned entry of this GPU for weights of `dtype`, or a safe default."""
    # Measured with 1, 4 and 16 rows on an H200 (docs/benchmarks/kernels-h200.md). At most 72 KiB
    # of shared memory, of which every card has 96.
    inputs = 512 // dtype.itemsize
    if rows <= FEWEST_ROWS:
        safe = LinearTiles(outputs=16, inputs=inputs, warps=2, stages=4)
    else:
        safe = LinearTiles(outputs=32, inputs=inputs // 2, warps=4, stages=4)
    return tuned(table_of(rows), padded_outputs(outputs), dtype, device, LinearTiles, safe)
