"""Finds the cells of ruled tables from the rules drawn on a page. Knows no text.

Rules that touch belong to one table; where the rule between two places of its grid is missing, they
are one merged cell.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retrieval.parse.pdf_drawn import Rect

_SLACK = 3.0
_MAX_SIDE = 400


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: `xs` and `ys` are its lines left to right and top to bottom, in points. `holder`
    gives for each (row, column) the top left place of the cell that covers it."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    holder: dict[tuple[int, int], tuple[int, int]]

    def cell_at(self, x: float, y: float) -> tuple[int, int] | None:
        """The cell at a point, by its top left place; None outside the table."""
        if not (self.xs[0] <= x <= self.xs[-1] and self.ys[0] <= y <= self.ys[-1]):
            return None
        column = min(bisect_right(self.xs, x), len(self.xs) - 1) - 1
        row = min(bisect_right(self.ys, y), len(self.ys) - 1) - 1
        return self.holder[max(0, row), max(0, column)]

    def width(self, place: tuple[int, int]) -> float:
        """How wide the cell with that top left place is."""
        last = max(column for (_, column), held in self.holder.items() if held == place)
        return self.xs[last + 1] - self.xs[place[1]]


@dataclass(slots=True)
class _Rule:
    """A straight line at `at` from `start` to `end` on the other axis."""

    at: float
    start: float
    end: float


def grids_of(rules: Sequence[Rect]) -> list[Grid]:
    """The tables that the rules (boxes, origin top left) draw, top to bottom. A table has at least
    two columns; frames around text and single lines are none."""
    level = _joined(_Rule((y0 + y1) / 2, x0, x1) for x0, y0, x1, y1 in rules if x1 - x0 >= y1 - y0)
    upright = _joined(_Rule((x0 + x1) / 2, y0, y1) for x0, y0, x1, y1 in rules if x1 - x0 < y1 - y0)
    grids = [
        grid
        for across, down in _touching(level, upright)
        if (grid := _grid(across, down)) is not None
    ]
    return sorted(grids, key=lambda grid: (grid.ys[0], grid.xs[0]))


def _joined(rules: Iterable[_Rule]) -> list[_Rule]:
    """Pieces of one line put together; double lines become one."""
    found: list[_Rule] = []
    for rule in sorted(rules, key=lambda item: (item.at, item.start)):
        same = _same_line(found, rule)
        if same is None:
            found.append(rule)
        else:
            same.start = min(same.start, rule.start)
            same.end = max(same.end, rule.end)
    return found


def _same_line(found: Sequence[_Rule], rule: _Rule) -> _Rule | None:
    for other in reversed(found):
        if rule.at - other.at > _SLACK:
            return None
        if rule.start <= other.end + _SLACK and other.start <= rule.end + _SLACK:
            return other
    return None


def _touching(
    level: Sequence[_Rule], upright: Sequence[_Rule]
) -> list[tuple[list[_Rule], list[_Rule]]]:
    """Groups of level and upright rules that meet each other."""
    parent = list(range(len(level) + len(upright)))
    for i, across in enumerate(level):
        for j, down in enumerate(upright):
            if (
                across.start - _SLACK <= down.at <= across.end + _SLACK
                and down.start - _SLACK <= across.at <= down.end + _SLACK
            ):
                parent[_root(parent, i)] = _root(parent, len(level) + j)
    groups: dict[int, tuple[list[_Rule], list[_Rule]]] = defaultdict(lambda: ([], []))
    for index in range(len(parent)):
        group = groups[_root(parent, index)]
        if index < len(level):
            group[0].append(level[index])
        else:
            group[1].append(upright[index - len(level)])
    return list(groups.values())


def _root(parent: list[int], index: int) -> int:
    while parent[index] != index:
        parent[index] = parent[parent[index]]
        index = parent[index]
    return index


def _grid(across: Sequence[_Rule], down: Sequence[_Rule]) -> Grid | None:
    if len(across) < 2 or not down:
        return None
    # Tables are often drawn without their outer rules: the ends of the others stand for them.
    xs = _places([r.at for r in down], [r.start for r in across], [r.end for r in across])
    ys = _places([r.at for r in across], [r.start for r in down], [r.end for r in down])
    rows, columns = len(ys) - 1, len(xs) - 1
    if columns < 2 or rows < 1 or max(rows, columns) > _MAX_SIDE:
        return None
    parent = list(range(rows * columns))
    for row in range(rows):
        middle = (ys[row] + ys[row + 1]) / 2
        for column in range(columns):
            place = row * columns + column
            if column + 1 < columns and not _is_ruled(down, xs[column + 1], middle):
                _unite(parent, place, place + 1)
            centre = (xs[column] + xs[column + 1]) / 2
            if row + 1 < rows and not _is_ruled(across, ys[row + 1], centre):
                _unite(parent, place, place + columns)
    roots = [_root(parent, place) for place in range(rows * columns)]
    if len({root % columns for root in roots}) < 2:
        return None
    holder = {divmod(place, columns): divmod(root, columns) for place, root in enumerate(roots)}
    return Grid(tuple(xs), tuple(ys), holder)


def _unite(parent: list[int], a: int, b: int) -> None:
    first, second = sorted((_root(parent, a), _root(parent, b)))
    parent[second] = first


def _places(rules: Sequence[float], starts: Sequence[float], ends: Sequence[float]) -> list[float]:
    found: list[float] = []
    for at in sorted([*rules, min(starts), max(ends)]):
        if not found or at - found[-1] > _SLACK:
            found.append(at)
    return found


def _is_ruled(rules: Sequence[_Rule], at: float, middle: float) -> bool:
    return any(
        abs(rule.at - at) <= _SLACK and rule.start - _SLACK <= middle <= rule.end + _SLACK
        for rule in rules
    )
