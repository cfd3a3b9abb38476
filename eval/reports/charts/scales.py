"""Axes of time and of length."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

_DIGITS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 4, 5, 6, 8))
_MOST_TICKS = 6


def log_time(axes: Axes, label: str, values: Sequence[float], *, vertical: bool = False) -> None:
    """A logarithmic axis of milliseconds that names seconds from 1,000 on. `values` are what it
    must hold; all above 0."""
    axis = axes.yaxis if vertical else axes.xaxis
    low, high = min(values) / 1.25, max(values) * 1.25
    if high / low < 3:
        middle = (low * high) ** 0.5
        low, high = middle / 2, middle * 2
    if vertical:
        axes.set_yscale("log")
        axes.set_ylim(low, high)
        axes.set_ylabel(label)
    else:
        axes.set_xscale("log")
        axes.set_xlim(low, high)
        axes.set_xlabel(label)
    axis.set_major_locator(FixedLocator(ticks(low, high)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_time(value)))


def log_length(axes: Axes, label: str, lengths: Sequence[float]) -> None:
    """A logarithmic horizontal axis of token counts, with a tick at each of `lengths`."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(lengths) / 1.3, max(lengths) * 1.3)
    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(FixedLocator(sorted(lengths)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_length(value)))


def ticks(low: float, high: float) -> list[float]:
    """Round numbers between two times of which the second is at least three times the first: as
    many as can be read, never fewer than two."""
    found: list[float] = []
    for digits in _DIGITS:
        every = (digit * 10.0**power for power in range(-4, 9) for digit in digits)
        finer = [step for step in every if low <= step <= high]
        if len(found) >= 3 and len(finer) > _MOST_TICKS:
            break
        found = finer
    return found if len(found) <= _MOST_TICKS else found[:: -(-len(found) // _MOST_TICKS)]


def short_time(milliseconds: float) -> str:
    """A tick's label: 0.5 ms, 20 ms, 3 s."""
    if milliseconds >= 1000:
        return f"{milliseconds / 1000:.3g} s"
    return f"{milliseconds:.3g} ms"


def short_length(tokens: float) -> str:
    """A length as people write it: 512, 4K, 512K."""
    return f"{tokens / 1024:g}K" if tokens >= 1024 else f"{tokens:g}"
