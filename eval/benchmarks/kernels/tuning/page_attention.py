"""Candidates of attention on page lists, for decoding: of the kernel that reads all heads on plain
pages, and of the one whose warps have tokens of their own, on plain pages and on those of fp8.
Bound by memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product

import torch

from backend.ops.page_attention.tiles import (
    LEAST_PAGES,
    WARP_ROWS,
    WARP_WIDTHS,
    WarpTiles,
    choose_page_tiles,
    choose_warp_tiles,
)
from backend.ops.tuning import Choice, trying
from eval.benchmarks.kernels.case import Case, ModelShape, Setup
from eval.benchmarks.kernels.cases import packed_attention
from eval.benchmarks.kernels.cases.page_attention import make_case
from eval.benchmarks.kernels.tuning.loop import Tunable, dtypes_of
from kvstore.types import PAGE_TOKENS

_ODD = (3, 111, 5)
"""Lists, tokens and query rows of the input that is compared."""

_ANY_LENGTH = 1 << 30
"""Pages of lists for which no kernel is too slow."""


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of the input that is timed, and tokens of each."""

    count: int = 16
    tokens: int = 32_768


def tunables(setup: Setup, dtype: torch.dtype, lists: Lists | None = None) -> Iterator[Tunable]:
    """One for each head size of the shapes."""
    lists = lists or Lists()
    widths = {1 << (shape.head_dim - 1).bit_length(): shape for shape in reversed(setup.shapes)}
    for width, shape in sorted(widths.items()):
        small = make_case(setup, shape, dtype, *_ODD, timed=False)
        large = make_case(setup, shape, dtype, lists.count, lists.tokens, 1, timed=False)
        in_use = asdict(choose_page_tiles(width, dtype, setup.device))
        choices = [
            {"warps": warps, "stages": stages, "waves": waves}
            for warps, stages, waves in product((2, 4, 8), (1, 2, 3, 4), (4, 8, 16))
        ]
        yield Tunable(
            op="page_attention",
            width=width,
            dtypes=dtypes_of(dtype),
            on=f"{large.shape}, {large.dtype}",
            unit="GB/s",
            work=large.contenders[0].bytes / 1e6,
            candidates=(in_use, *(choice for choice in choices if choice != in_use)),
            expected=small.reference(),
            tolerance=small.tolerance,
            small=_with_constants(small),
            large=_with_constants(large),
        )


def warp_tunables(
    setup: Setup, dtype: torch.dtype, lists: Lists | None = None
) -> Iterator[Tunable]:
    """For each head size of the shapes for which that kernel is made, one for plain pages and one
    for those of fp8; none off a GPU, on those before compute capability 8.0 and for other numbers
    than of 16 bits, where that kernel does not run. How short lists may be for it stays as it
    is."""
    lists = lists or Lists()
    if setup.device.type != "cuda" or dtype.itemsize != 2:
        return
    capability = torch.cuda.get_device_capability(setup.device)
    if capability < (8, 0):
        return
    widths = {shape.head_dim: shape for shape in reversed(setup.shapes)}
    for width, shape in sorted(widths.items()):
        if width not in WARP_WIDTHS or shape.heads // shape.kv_heads > WARP_ROWS:
            continue
        small = make_case(setup, shape, dtype, 3, 111, 1, timed=False)
        large = make_case(setup, shape, dtype, lists.count, lists.tokens, 1, timed=False)
        yield _warp_tunable(setup, width, dtype, dtypes_of(dtype), small, large)
        if capability >= (8, 9):
            yield _of_packed(setup, shape, lists)


def _of_packed(setup: Setup, shape: ModelShape, lists: Lists) -> Tunable:
    tokens = lists.tokens // PAGE_TOKENS * PAGE_TOKENS
    small = packed_attention.make_case(setup, shape, "fp8_token_head", 3, 192, timed=False)
    large = packed_attention.make_case(
        setup, shape, "fp8_token_head", lists.count, tokens, timed=False
    )
    return _warp_tunable(setup, shape.head_dim, torch.uint8, ("uint8",), small, large)


def _warp_tunable(
    setup: Setup, width: int, dtype: torch.dtype, dtypes: tuple[str, ...], small: Case, large: Case
) -> Tunable:
    tiles = choose_warp_tiles(width, dtype, setup.device, _ANY_LENGTH)
    in_use = asdict(tiles or WarpTiles(2, 255, 2, LEAST_PAGES))
    choices = [
        in_use | {"waves": waves, "registers": registers, "stages": stages}
        for registers, resident in ((255, 2), (168, 3), (128, 4))
        for waves, stages in product((resident, 2 * resident), (2, 3, 4))
    ]
    return Tunable(
        op="page_attention_warps",
        width=width,
        dtypes=dtypes,
        on=f"{large.shape}, {large.dtype}",
        unit="GB/s",
        work=large.contenders[0].bytes / 1e6,
        candidates=(in_use, *(choice for choice in choices if choice != in_use)),
        expected=small.reference(),
        tolerance=small.tolerance,
        small=_with_constants(small, "page_attention_warps", least_pages=1),
        large=_with_constants(large, "page_attention_warps"),
    )


def _with_constants(
    case: Case, op: str = "page_attention", **always: int
) -> Callable[[Choice], torch.Tensor]:
    def run(choice: Choice) -> torch.Tensor:
        with trying(op, {**choice, **always}):
            return case.contenders[0].call()

    return run
