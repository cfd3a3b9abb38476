"""How times are spread, and where the time of each request went."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator, PercentFormatter

from eval.reports.charts.canvas import INK, run_colour, run_dash, sheet, stage_colour
from eval.reports.charts.points import Bar, Sample
from eval.reports.charts.scales import log_time, short_time

QUEUE, READ, FIRST, DECODE, REST, FAILED = range(6)
STAGE_NAMES = ("queue", "read", "first token", "decode", "rest", "failed")
MAX_REQUESTS = 60

_T = TypeVar("_T")


def cumulative(name: str, samples: Sequence[Sample], label: str) -> str:
    """The share of requests that were as quick or quicker, one line a run."""
    with sheet(name) as paper:
        axes = paper.axes
        for sample in samples:
            axes.ecdf(
                sample.values,
                color=run_colour(sample.place),
                linestyle=run_dash(sample.place),
                label=f"{sample.label} (n = {len(sample.values)})",
            )
        log_time(axes, label, [value for sample in samples for value in sample.values])
        axes.set_ylabel("share of requests")
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
        axes.set_ylim(0, 1.02)
        paper.legend()
        return paper.svg(f"Cumulative distribution of {label}")


def timeline(
    name: str, bars: Sequence[Bar], label: str, stages: Sequence[str] = STAGE_NAMES
) -> str:
    """One bar a request, its stages (named by `stages`) one after the other; at most
    `MAX_REQUESTS`, spread evenly over those given."""
    chosen = evenly(bars, MAX_REQUESTS)
    used = sorted({stage for bar in chosen for stage, length in bar.stages if length > 0})
    with sheet(name, height=max(2.2, 0.9 + 0.075 * len(chosen))) as paper:
        axes = paper.axes
        for stage in used:
            boxes = [box for row, bar in enumerate(chosen) for box in _boxes(bar, stage, row)]
            axes.add_collection(PolyCollection(boxes, facecolor=stage_colour(stage)))
        marks = [(b.mark, row) for row, b in enumerate(chosen) if b.mark is not None]
        if marks:
            at, rows = zip(*marks, strict=True)
            axes.plot(at, rows, "o", color=INK, markersize=2.6, linestyle="none")
        crosses = [(_end(bar), row) for row, bar in enumerate(chosen) if bar.failed]
        if crosses:
            at, rows = zip(*crosses, strict=True)
            axes.plot(at, rows, "x", color=stage_colour(FAILED), markersize=5, linestyle="none")
        axes.set_ylim(len(chosen) - 0.4, -0.6)
        axes.set_yticks([])
        axes.set_ylabel(f"{len(chosen)} requests, in the order asked")
        axes.set_xlabel(label)
        axes.set_xlim(0, 1.02 * max(map(_end, chosen)) or 1)
        axes.xaxis.set_major_locator(MaxNLocator(5))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_time(value)))
        axes.grid(axis="y", visible=False)
        paper.legend([Patch(color=stage_colour(stage), label=stages[stage]) for stage in used])
        return paper.svg(f"Timeline of {len(chosen)} requests")


def _end(bar: Bar) -> float:
    return bar.start + sum(length for _, length in bar.stages)


def _boxes(bar: Bar, stage: int, row: int) -> Iterator[list[tuple[float, float]]]:
    begin, top, bottom = bar.start, row - 0.41, row + 0.41
    for kind, length in bar.stages:
        end = begin + length
        if kind == stage and length > 0:
            yield [(begin, top), (end, top), (end, bottom), (begin, bottom)]
        begin = end


def evenly(items: Sequence[_T], most: int) -> list[_T]:
    """At most `most` of the items, spread evenly, in order."""
    if len(items) <= most:
        return list(items)
    return [items[place * len(items) // most] for place in range(most)]
