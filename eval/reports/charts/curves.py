"""Times of a benchmark over token counts, one curve a series."""

from __future__ import annotations

from collections.abc import Sequence

from eval.reports.charts.canvas import PAPER, run_colour, run_dash, run_marker, sheet
from eval.reports.charts.points import Curve
from eval.reports.charts.scales import log_length, log_time


def curves(name: str, drawn: Sequence[Curve], across: str, up: str) -> str:
    """Both axes logarithmic; bars reach from the quickest to the slowest round; a point that is
    only a lower bound is hollow."""
    with sheet(name) as paper:
        axes = paper.axes
        for place, curve in enumerate(drawn):
            colour = run_colour(place)
            at = [spot.at for spot in curve.spots]
            axes.plot(
                at,
                [spot.middle for spot in curve.spots],
                color=colour,
                linestyle=run_dash(place),
                marker=run_marker(place),
                label=curve.name,
            )
            axes.vlines(
                at,
                [s.low for s in curve.spots],
                [s.high for s in curve.spots],
                color=colour,
                lw=0.9,
            )
            bounds = [spot for spot in curve.spots if spot.bound]
            axes.plot(
                [spot.at for spot in bounds],
                [spot.middle for spot in bounds],
                linestyle="none",
                marker=run_marker(place),
                markeredgecolor=colour,
                markerfacecolor=PAPER,
            )
        spots = [spot for curve in drawn for spot in curve.spots]
        log_length(axes, across, sorted({spot.at for spot in spots}))
        log_time(axes, up, [edge for s in spots for edge in (s.low, s.high)], vertical=True)
        paper.legend()
        return paper.svg(f"{up} by {across}")
