"""Tile sizes of latent block attention for a rank, an element type and a GPU."""

from __future__ import annotations

import torch

from backend.ops.block_attention.tiles import Tiles
from backend.ops.tuning import tuned

SAFE = Tiles(rows=32, keys=32, warps=8, stages=1)
"""With 512 + 64 channels in 16 bit queries and latents take 36 KiB each, and what is read 64 KiB of
registers. Not measured anywhere."""


def choose_tiles(rank: int, dtype: torch.dtype, device: torch.device) -> Tiles | None:
    """The kernel's tuned entry for this GPU. None for a card of a kind on which it was never
    measured: nobody knows that it is right there."""
    padded = 1 << (rank - 1).bit_length()
    return tuned("latent_block_attention", padded, dtype, device, Tiles, None)
