"""Tile sizes of the Triton kernel for a head size, an element size and a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from backend.ops.block_attention.plan import SEGMENT_ROWS


@dataclass(frozen=True, slots=True)
class Tiles:
    """Query rows and keys of a tile, warps of a program, stages of the load pipeline."""

    rows: int
    keys: int
    warps: int
    stages: int

    def __post_init__(self) -> None:
        if self.rows < 16 or self.rows & (self.rows - 1):
            raise ValueError(f"{self.rows} rows of a tile: a power of two from 16 on")
        if self.keys < 16 or SEGMENT_ROWS % self.keys:
            raise ValueError(f"{self.keys} keys of a tile: 16, 32, 64 or {SEGMENT_ROWS}")


SAFE = Tiles(rows=64, keys=32, warps=4, stages=2)
"""Fits the shared memory of every supported GPU at every head size (96 KiB at 256 in 16 bit)."""

TUNED: Mapping[tuple[int, int, int], Tiles] = {
    # H200, 524,288 tokens, 32/8 heads in bf16 (docs/benchmarks/kernels-h200.md), TFLOP/s:
    # 395; 128 x 128 with 8 warps 365, 64 x 64 381, the safe default 309.
    (90, 64, 2): Tiles(rows=128, keys=64, warps=4, stages=3),
    # 461; two stages 410, 64 keys 439, 64 x 64 421.
    (90, 128, 2): Tiles(rows=128, keys=128, warps=8, stages=3),
}
"""By (compute capability times ten, padded head size, bytes of an element)."""


def choose_tiles(width: int, dtype: torch.dtype, device: torch.device) -> Tiles:
    """The tuned entry of this GPU, or the safe default. `width`: head size, padded to a power of
    two."""
    if device.type != "cuda":
        return SAFE
    major, minor = torch.cuda.get_device_capability(device)
    return TUNED.get((major * 10 + minor, width, dtype.itemsize), SAFE)
