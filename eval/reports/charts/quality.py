"""Quality against speed, and quality over classes of length or depth."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, PercentFormatter

from eval.reports.charts.canvas import INK, run_colour, run_dash, run_marker, sheet
from eval.reports.charts.points import Line, Point
from eval.reports.charts.scales import log_time
from eval.reports.measures import Measure
from eval.statistics import Estimate


def scatter(name: str, points: Sequence[Point], measure: Measure, speed: str) -> str:
    """Each run at its median time (logarithmic) and mean quality, with 95% intervals as bars. The
    better corner is named on the plot."""
    with sheet(name) as paper:
        axes = paper.axes
        for point in points:
            colour = run_colour(point.place)
            axes.errorbar(
                [point.speed.mean],
                [point.quality.mean],
                xerr=_arms(point.speed),
                yerr=_arms(point.quality),
                fmt=run_marker(point.place),
                color=colour,
                elinewidth=0.9,
                markersize=6.5,
            )
        log_time(axes, speed, [value for p in points for value in _reach(p.speed)])
        _quality_axis(axes, measure, [value for p in points for value in _reach(p.quality)])
        if measure.better == "lower":
            axes.invert_yaxis()
        _name_points(axes, points)
        axes.annotate(
            "better ↖", (0.01, 1.02), xycoords="axes fraction", fontsize=8, va="bottom", color=INK
        )
        return paper.svg(f"{measure.title} against {speed}")


def lines(
    name: str, rows: Sequence[Line], classes: Sequence[str], measure: Measure, axis: str
) -> str:
    """One line a run over `classes`, with 95% intervals; runs stand a little apart so that their
    intervals can be told."""
    with sheet(name) as paper:
        axes = paper.axes
        places = np.arange(len(classes), dtype=float)
        shift = min(0.09, 0.5 / max(1, len(rows)))
        for row_number, row in enumerate(rows):
            offset = (row_number - (len(rows) - 1) / 2) * shift
            found = [(places[i] + offset, v) for i, v in enumerate(row.values) if v is not None]
            if not found:
                continue
            colour = run_colour(row.place)
            middles = [value.mean for _, value in found]
            arms = np.concatenate([_arms(value) for _, value in found], axis=1)
            axes.errorbar(
                [place for place, _ in found],
                middles,
                yerr=arms,
                fmt=run_marker(row.place),
                linestyle=run_dash(row.place),
                color=colour,
                elinewidth=0.8,
                label=row.letter,
            )
        axes.set_xticks(places, classes)
        axes.set_xlim(-0.6, len(classes) - 0.4)
        axes.set_xlabel(axis)
        axes.grid(axis="x", visible=False)
        reach = [edge for row in rows for v in row.values if v is not None for edge in _reach(v)]
        _quality_axis(axes, measure, reach)
        paper.legend()
        return paper.svg(f"{measure.title} by {axis}")


def _arms(found: Estimate) -> np.ndarray:
    """Lengths of the two error bars, as a column; nothing to draw where there is no interval."""
    if found.low is None or found.high is None:
        return np.zeros((2, 1))
    return np.array([[max(0.0, found.mean - found.low)], [max(0.0, found.high - found.mean)]])


def _reach(found: Estimate) -> list[float]:
    return [value for value in (found.low, found.mean, found.high) if value is not None]


def _quality_axis(axes: Axes, measure: Measure, reach: Sequence[float]) -> None:
    axes.set_ylabel(measure.title)
    if measure.percent:
        axes.set_ylim(-0.04, 1.04)
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
        return
    low, high = min(reach), max(reach)
    margin = max(0.08 * (high - low), 0.02 * max(abs(high), 1e-6))
    axes.set_ylim(low - margin, high + margin)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))


def _name_points(axes: Axes, points: Sequence[Point]) -> None:
    """Letters beside the points; those of points in one place are put in a row."""
    taken: list[tuple[float, float]] = []
    for point in points:
        at = axes.transData.transform((point.speed.mean, point.quality.mean))
        beside = sum(1 for x, y in taken if abs(x - at[0]) < 14 and abs(y - at[1]) < 12)
        taken.append((float(at[0]), float(at[1])))
        axes.annotate(
            point.letter,
            (point.speed.mean, point.quality.mean),
            xytext=(6 + 9 * beside, 5),
            textcoords="offset points",
            fontsize=9,
            fontweight="bold",
            color=run_colour(point.place),
        )
