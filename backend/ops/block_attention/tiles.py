"""Tile sizes of the kernels for a head size, an element type and a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.ops.block_attention.plan import SEGMENT_ROWS
from backend.ops.tuning import tuned

HOPPER_WIDTHS = (64, 128)
"""Head sizes that the Hopper kernel is written for."""


def _check_keys(keys: int) -> None:
    if keys < 16 or SEGMENT_ROWS % keys:
        raise ValueError(f"{keys} keys of a tile: 16, 32, 64 or {SEGMENT_ROWS}")


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
        _check_keys(self.keys)


@dataclass(frozen=True, slots=True)
class HopperTiles:
    """Warpgroups that consume, keys of a tile, tiles in flight, and the registers of a thread at
    launch and in a consumer."""

    consumers: int
    keys: int
    stages: int
    launch_registers: int
    consumer_registers: int

    def __post_init__(self) -> None:
        if not 1 <= self.consumers <= 3 or self.stages < 2:
            raise ValueError("one to three consumers, and at least two tiles in flight")
        _check_keys(self.keys)


SAFE = Tiles(rows=64, keys=32, warps=4, stages=2)
"""Fits the shared memory of every supported GPU at every head size (96 KiB at 256 in 16 bit)."""


def choose_tiles(width: int, dtype: torch.dtype, device: torch.device) -> Tiles:
    """The Triton kernel's tuned entry for this GPU, or the safe default. `width`: head size, padded
    to a power of two."""
    return tuned("block_attention", width, dtype, device, Tiles, SAFE)


def choose_hopper_tiles(width: int, dtype: torch.dtype, device: torch.device) -> HopperTiles | None:
    """The Hopper kernel's tuned entry for this GPU. None for a head size that it is not made for
    and for a card of a kind on which it was never measured: nobody knows that it is right there."""
    if width not in HOPPER_WIDTHS:
        return None
    return tuned("block_attention_hopper", width, dtype, device, HopperTiles, None)
