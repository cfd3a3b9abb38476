"""Which pages the kernel whose warps have tokens of their own was launched for: where it does not
suit, the other kernel serves without a word."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from backend.ops.tuning import trying

CONSTANTS = {"waves": 4, "registers": 255, "stages": 3, "least_pages": 1}


@contextmanager
def by_warps(coding: str) -> Iterator[None]:
    """Inside, lists of any length go to that kernel; pages of `coding` have to."""
    from backend.ops.page_attention import warp_part

    kernel = warp_part.warp_part_kernel
    codings: set[str] = set()

    class Launches:
        def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., object]:
            def launch(*given: object, **constants: Any) -> object:
                codings.add(constants["CODING"])
                return kernel[grid](*given, **constants)

            return launch

    with (
        mock.patch.object(warp_part, "warp_part_kernel", Launches()),
        trying("page_attention_warps", CONSTANTS),
    ):
        yield
    assert coding in codings
