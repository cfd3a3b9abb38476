"""Candidates of attention on page lists, for decoding on plain pages. Bound by memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import product

import torch

from backend.ops.page_attention.tiles import choose_page_tiles
from backend.ops.tuning import Choice, trying
from eval.benchmarks.kernels.case import Case, Setup
from eval.benchmarks.kernels.cases.page_attention import make_case
from eval.benchmarks.kernels.tuning.loop import Tunable, dtypes_of

_ODD = (3, 111, 5)
"""Lists, tokens and query rows of the input that is compared."""


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


def _with_constants(case: Case) -> Callable[[Choice], torch.Tensor]:
    def run(choice: Choice) -> torch.Tensor:
        with trying("page_attention", choice):
            return case.contenders[0].call()

    return run
