"""Finds columns of prose on a page from the blank strips between its lines.

Knows the places of lines only, neither their text nor the order in which they were drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from retrieval.parse.pdf_lines import Line

_MIN_COLUMN_LINES = 6
_MIN_COLUMN_WIDTH = 0.16
_MIN_COLUMN_FILL = 0.55
_MAX_CROSSING = 0.25


def columns_of(lines: Sequence[Line], width: float, depth: int = 0) -> list[list[Line]]:
    """The page cut into columns at the clearest gutter, in bands between lines that cross it."""
    gutter = _gutter(lines, width)
    if gutter is None or depth > 3:
        return [list(lines)] if lines else []
    crossing = sorted(
        (line for line in lines if line.x0 < gutter - 2 and line.x1 > gutter + 2),
        key=lambda line: line.y0,
    )
    bands: list[list[Line]] = [[] for _ in range(len(crossing) + 1)]
    crossed = {id(line) for line in crossing}
    for line in lines:
        if id(line) not in crossed:
            bands[sum(cross.y0 < line.y0 for cross in crossing)].append(line)
    parts: list[list[Line]] = []
    pending: list[Line] = []
    for index, band in enumerate(bands):
        left = [line for line in band if line.x1 <= gutter + 2]
        right = [line for line in band if line.x1 > gutter + 2]
        if len(left) >= _MIN_COLUMN_LINES and len(right) >= _MIN_COLUMN_LINES:
            if pending:
                parts.append(pending)
                pending = []
            parts += columns_of(left, width, depth + 1) + columns_of(right, width, depth + 1)
        else:
            pending = pending + band
        if index < len(crossing):
            pending = [*pending, crossing[index]]
    if pending:
        parts.append(pending)
    return parts


def _gutter(lines: Sequence[Line], width: float) -> float | None:
    """The x of the blank strip between two columns of prose, None when there is none."""
    if len(lines) < 2 * _MIN_COLUMN_LINES:
        return None
    left_edge, right_edge = min(line.x0 for line in lines), max(line.x1 for line in lines)
    best: tuple[float, float] | None = None
    for step in range(1, 100):
        x = left_edge + (right_edge - left_edge) * step / 100
        if min(x - left_edge, right_edge - x) < _MIN_COLUMN_WIDTH * width:
            continue
        left = [line for line in lines if line.x1 <= x + 2]
        right = [line for line in lines if line.x0 >= x - 2]
        crossing = len(lines) - len(left) - len(right)
        if min(len(left), len(right)) < _MIN_COLUMN_LINES or crossing > _MAX_CROSSING * len(lines):
            continue
        if min(len(left), len(right)) < 0.3 * max(len(left), len(right)):
            continue
        if not (_is_prose(left) and _is_prose(right)):
            continue
        score = crossing + 1e-3 * abs(x - (left_edge + right_edge) / 2) / width
        if best is None or score < best[0]:
            best = (score, x)
    return None if best is None else best[1]


def _is_prose(lines: Sequence[Line]) -> bool:
    """Lines that fill their width, as running text does and table cells don't.

    Several columns side by side count too: their lines fill a part of the width each.
    """
    widths = sorted(line.x1 - line.x0 for line in lines)
    typical = widths[int(len(widths) * 0.8)]
    return (
        typical > 0
        and median(widths) >= _MIN_COLUMN_FILL * typical
        and typical > 12 * median(line.size for line in lines) * 0.8
    )
