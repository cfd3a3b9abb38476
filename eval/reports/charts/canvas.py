"""A sheet to plot on, and the SVG that a page can hold.

Matplotlib without any window: figures are made directly, never through pyplot. Colours are written
as CSS variables, so that a chart follows the page into the dark and onto paper; text stays text and
takes the page's font. Knows nothing about runs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

from matplotlib import rc_context
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

RUN_COLOURS = 8
STAGES = 6
WIDTH, HEIGHT = 4.6, 3.2
"""Inches. Two charts of this width stand side by side on a page; one fills a phone's."""

INK, SOFT, LINE, PAPER = "#101112", "#202122", "#303132", "#404142"
_VARIABLES = {INK: "var(--ink)", SOFT: "var(--soft)", LINE: "var(--line)", PAPER: "var(--paper)"}
_VARIABLES |= {f"#a0000{index}": f"var(--run-{index})" for index in range(RUN_COLOURS)}
_VARIABLES |= {f"#b0000{index}": f"var(--stage-{index})" for index in range(STAGES)}
_MARKERS = "osD^vPX*"
_MARGIN, _ENTRY, _CHARACTER = 0.3, 0.38, 0.062
"""Inches: around a legend, of an entry's handle, of one character in it."""
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1, 2)))

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.edgecolor": SOFT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}


def run_colour(place: int) -> str:
    """The colour of the run at `place` in the legend; repeats after `RUN_COLOURS` runs."""
    return f"#a0000{place % RUN_COLOURS}"


def stage_colour(stage: int) -> str:
    """The colour of a stage of a request (0 to `STAGES` - 1)."""
    return f"#b0000{stage}"


def run_marker(place: int) -> str:
    """A marker, so that runs differ without colour too."""
    return _MARKERS[place % len(_MARKERS)]


def run_dash(place: int) -> Any:
    """A line style; changes when the colours start again."""
    return _DASHES[(place // RUN_COLOURS) % len(_DASHES)]


class Sheet:
    """One plot in the making: `axes` to draw on, then `svg`."""

    def __init__(self, name: str, figure: Figure) -> None:
        self._name = name
        self._figure = figure
        self.axes: Axes = figure.subplots()

    def legend(self, handles: Sequence[Artist] | None = None) -> None:
        """Names what is drawn, above the axes, in as many columns as there is room for."""
        shown = list(handles or self.axes.get_legend_handles_labels()[0])
        longest = max((len(str(handle.get_label())) for handle in shown), default=1)
        room = self._figure.get_figwidth() - _MARGIN
        columns = int(room / (_ENTRY + _CHARACTER * longest))
        self._figure.legend(
            handles=shown,
            loc="outside upper left",
            ncols=max(1, min(columns, len(shown))),
            handlelength=1.6,
            columnspacing=1.2,
        )

    def svg(self, description: str) -> str:
        """The markup. `description` is read out in place of the picture."""
        written = io.StringIO()
        blank = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        self._figure.savefig(written, format="svg", transparent=True, metadata=blank)
        return _inline(written.getvalue(), self._name, description)


@contextmanager
def sheet(name: str, *, width: float = WIDTH, height: float = HEIGHT) -> Iterator[Sheet]:
    """A sheet in the report's style. `name` must be unique on a page and safe in an id; sizes in
    inches. Finish with `svg` inside the block: the style ends with it."""
    with rc_context({**_STYLE, "svg.hashsalt": name}):
        yield Sheet(name, Figure(figsize=(width, height), layout="constrained"))


def _inline(svg: str, name: str, description: str) -> str:
    """Fits a stand-alone SVG file into a page that holds others."""
    body = svg[svg.index("<svg") :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.S)
    # A style sheet inside an inline SVG would hold for the whole page.
    body = re.sub(r"<style.*?</style>", "", body, flags=re.S)
    body = re.sub(r"font-family: [^;\"]*;? ?", "", body)
    body = re.sub(r"font: (?:(\d+) )?([\d.]+px)[^;\"]*", r"font-size: \2", body)
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = re.sub(r'href="#', f'href="#{name}-', body)
    body = re.sub(r"url\(#", f"url(#{name}-", body)
    body = re.sub("|".join(_VARIABLES), lambda found: _VARIABLES[found[0]], body)
    opening = f'<svg role="img" aria-label="{escape(description)}" '
    return re.sub(
        r'<svg ([^>]*?)width="([\d.]+)pt" height="[\d.]+pt"',
        lambda found: f'{opening}{found[1]}style="width:{float(found[2]) * 4 / 3:.0f}px"',
        body,
        count=1,
    )
