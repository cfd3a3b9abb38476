"""How the page-list kernel is cut up, for a head size, an element type of the pages and a GPU."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from backend.ops.tuning import tuned

WARP_WIDTHS = (64, 128)
"""Head sizes that the kernel whose warps have tokens of their own is written for."""

WARP_ROWS = 8
"""Query rows (times heads of a group) that it serves at most."""

LEAST_PAGES = 256
"""Of all lists together, on a card where it was not measured with fewer: on an H200 it loses with
32 and wins with 512 (docs/benchmarks/kernels-h200.md)."""


@dataclass(frozen=True, slots=True)
class PageTiles:
    """Warps of a program, stages of its load pipeline, and programs that a multiprocessor gets if a
    list is long enough for as many parts."""

    warps: int
    stages: int
    waves: int

    def __post_init__(self) -> None:
        if self.warps not in (1, 2, 4, 8, 16) or self.stages < 1 or self.waves < 1:
            raise ValueError("warps are a power of two up to 16, stages and waves 1 or more")


@dataclass(frozen=True, slots=True)
class WarpTiles:
    """How the kernel whose warps have tokens of their own is cut up: programs of four warps that a
    multiprocessor gets (all lists' pages are shared out among them evenly, so it should be as many
    as it holds at a time), the most registers of a thread, pages of a program's in shared memory at
    a time, and the fewest pages of all lists together that it reads faster than the other one."""

    waves: int
    registers: int
    stages: int
    least_pages: int

    def __post_init__(self) -> None:
        if self.waves < 1 or self.least_pages < 1 or self.stages < 2:
            raise ValueError("waves and pages are 1 or more, stages 2 or more")
        if not 64 <= self.registers <= 255:
            raise ValueError("a thread has 64 to 255 registers")


def choose_page_tiles(width: int, dtype: torch.dtype, device: torch.device) -> PageTiles:
    """The tuned entry of this GPU, or a safe default. `width`: head size, padded to a power of
    two; `dtype`: of the pages' elements."""
    # Measured on an H200 with 16 lists of 32,768 tokens in bf16: many short parts even out, 2
    # programs give 2.5 TB/s at 8 heads of 128, 16 give 3.1; at 3 heads of 64 four warps give 2.6
    # TB/s, two 3.2. At 256 two stages would take more shared memory than an L20 has.
    safe = PageTiles(warps=2 if width == 64 else 4, stages=3 if width <= 128 else 1, waves=16)
    return tuned("page_attention", width, dtype, device, PageTiles, safe)


def choose_warp_tiles(
    width: int, dtype: torch.dtype, device: torch.device, pages: int
) -> WarpTiles | None:
    """As `choose_page_tiles` for that kernel, on lists of up to `pages` together. None for a head
    size that it is not made for, for fewer pages than pay, and for a card of a kind on which it was
    never measured: nobody knows that it is right there."""
    if width not in WARP_WIDTHS:
        return None
    tiles = tuned("page_attention_warps", width, dtype, device, WarpTiles, None)
    return tiles if tiles is not None and pages >= tiles.least_pages else None
