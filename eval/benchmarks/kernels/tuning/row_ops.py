"""Candidates of the operations that take rows one by one: warps of a program. Bound by memory."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from backend.ops.tuning import Choice
from eval.benchmarks.kernels.case import Setup, name_of
from eval.benchmarks.kernels.tuning.loop import Tunable, dtypes_of

ROWS, _ODD_ROWS = 32_768, 5
_WARPS = (1, 2, 4, 8, 16)
_TOLERANCE = 1e-2
_EPS = 1e-5


def add_norms(setup: Setup, dtype: torch.dtype, rows: int = ROWS) -> Iterator[Tunable]:
    """`add_norm`, once for each padded width of the shapes' streams."""
    from backend.ops.add_norm import kernel, reference

    for padded, width in _padded([shape.hidden for shape in setup.shapes]):
        generator = setup.generator(width, rows)
        odd, x, added = (
            setup.normal(generator, count, width, dtype=dtype) for count in (_ODD_ROWS, rows, rows)
        )
        gain = setup.normal(generator, width, dtype=torch.float32)

        # The sum is written over the first argument.
        def small(choice: Choice, x: torch.Tensor = odd, gain: torch.Tensor = gain) -> torch.Tensor:
            return kernel.add_norm(x.clone(), x, gain, _EPS, choice["warps"])[1]

        def large(
            choice: Choice,
            x: torch.Tensor = x,
            added: torch.Tensor = added,
            gain: torch.Tensor = gain,
        ) -> torch.Tensor:
            return kernel.add_norm(x, added, gain, _EPS, choice["warps"])[1]

        yield Tunable(
            op="add_norm",
            width=padded,
            dtypes=dtypes_of(dtype),
            on=f"{rows:,} rows of {width:,}, {name_of(dtype)}",
            unit="GB/s",
            # Two inputs, the sum and its norm.
            work=4 * rows * width * dtype.itemsize / 1e6,
            candidates=_candidates(kernel.warps_of(padded, dtype, setup.device)),
            expected=reference.add_norm(odd.clone(), odd, gain, _EPS)[1],
            tolerance=_TOLERANCE,
            small=small,
            large=large,
        )


def gated_units(setup: Setup, dtype: torch.dtype, rows: int = ROWS) -> Iterator[Tunable]:
    """`gated_unit`, once for each length of a program's stretch."""
    from backend.ops.gated_unit import kernel, reference

    widths = [shape.intermediate for shape in setup.shapes]
    for stretch, width in _padded(widths, kernel.STRETCH):
        generator = setup.generator(width, rows)
        odd, both = (
            setup.normal(generator, count, 2 * width, dtype=dtype) for count in (_ODD_ROWS, rows)
        )

        def small(choice: Choice, both: torch.Tensor = odd) -> torch.Tensor:
            return kernel.gated_unit(both, choice["warps"])

        def large(choice: Choice, both: torch.Tensor = both) -> torch.Tensor:
            return kernel.gated_unit(both, choice["warps"])

        yield Tunable(
            op="gated_unit",
            width=stretch,
            dtypes=dtypes_of(dtype),
            on=f"{rows:,} rows of {width:,}, {name_of(dtype)}",
            unit="GB/s",
            work=3 * rows * width * dtype.itemsize / 1e6,
            candidates=_candidates(kernel.warps_of(stretch, dtype, setup.device)),
            expected=reference.gated_unit(odd),
            tolerance=_TOLERANCE,
            small=small,
            large=large,
        )


def _padded(widths: list[int], most: int = 1 << 20) -> list[tuple[int, int]]:
    """(power of two, at most `most`; a width that is padded to it), the first width of each."""
    found = {min(1 << (width - 1).bit_length(), most): width for width in reversed(widths)}
    return sorted(found.items())


def _candidates(in_use: int) -> tuple[Choice, ...]:
    return tuple({"warps": warps} for warps in dict.fromkeys((in_use, *_WARPS)))
