"""Warps of a program that takes a row, or a stretch of one, by itself."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.ops.tuning.lookup import tuned


@dataclass(frozen=True, slots=True)
class Warps:
    """Warps of a program."""

    warps: int

    def __post_init__(self) -> None:
        if self.warps not in (1, 2, 4, 8, 16, 32):
            raise ValueError(f"{self.warps} warps: a power of two up to 32")


def choose_warps(
    op: str, width: int, dtype: torch.dtype, device: torch.device, default: int
) -> int:
    """The tuned entry of this GPU, or `default`. `width`: elements of a program, padded to a power
    of two."""
    return tuned(op, width, dtype, device, Warps, Warps(default)).warps
