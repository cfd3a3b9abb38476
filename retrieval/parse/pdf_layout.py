"""Puts the runs of a page into reading order and tells which lines share a column.

The order in which the file draws its text is kept wherever it makes sense: word processors draw
cells and columns one by one, which geometry alone can't recover. It knows nothing of other pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from retrieval.parse.joining import starts_clause
from retrieval.parse.pdf_chars import Char, RawPage

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_MIN_COLUMN_LINES = 6
_MIN_COLUMN_WIDTH = 0.16
_MIN_COLUMN_FILL = 0.55
_MAX_CROSSING = 0.25


@dataclass(slots=True)
class Region:
    """A column, or the whole page: the outermost edges of its lines, in points."""

    left: float = 1e9
    right: float = -1e9

    def add(self, line: Line) -> None:
        self.left = min(self.left, line.x0)
        self.right = max(self.right, line.x1)


@dataclass(slots=True)
class Line:
    """A piece of text on one baseline without wide gaps. Boxes in points, origin top left.

    `row` is shared by the pieces that PDFium put on one line; `turn` as in Run. `cells` counts the
    pieces that were joined over wide gaps; `beside` says that another line stands next to it, as in
    a table.
    """

    chars: list[Char]
    x0: float
    y0: float
    x1: float
    y1: float
    row: int
    turn: int = 0
    cells: int = 1
    region: Region = field(default_factory=Region)
    beside: bool = False

    @property
    def size(self) -> float:
        return self.y1 - self.y0

    @property
    def text(self) -> str:
        return "".join(char.text for char in self.chars)


def split_lines(page: RawPage) -> list[Line]:
    """The page's runs cut at wide gaps and backward jumps; spaces trimmed, in drawing order."""
    lines: list[Line] = []
    for row, run in enumerate(page.runs):
        piece: list[Char] = []
        last: Char | None = None
        for char in run.chars:
            placed = char.x1 >= char.x0
            if placed and char.text != " ":
                if last is not None and _is_gap(last, char, run.turn):
                    _append(lines, piece, row, run.turn)
                    piece = []
                last = char
            piece.append(char)
        _append(lines, piece, row, run.turn)
    return _join_shifted(lines)


def reading_order(lines: Sequence[Line], width: float) -> list[Line]:
    """`lines` (furniture removed) in reading order, pieces of one row joined; regions filled in.

    Text turned against the page's direction comes last.
    """
    upright = [line for line in lines if line.turn == 0]
    aside = [line for line in lines if line.turn != 0]
    columns = _columns(upright, width, 0)
    if len(columns) > 1:
        place = {id(line): index for index, column in enumerate(columns) for line in column}
        switches = sum(
            place[id(a)] != place[id(b)] for a, b in zip(upright, upright[1:], strict=False)
        )
        disorderly = switches > 2 * len(columns)
        upright = [
            line
            for column in columns
            for line in (_by_rows(column) if disorderly else _sorted_runs(column))
        ]
    else:
        upright = _sorted_runs(upright)
    for column in columns:
        region = Region()
        for line in column:
            region.add(line)
            line.region = region
        for row in rows_of(column):
            for line in row:
                line.beside = len(row) > 1
    return _merge_rows(upright) + _merge_rows(aside)


def rows_of(lines: Sequence[Line]) -> list[list[Line]]:
    """Lines grouped by the height they stand at, top to bottom, left to right in each."""
    rows: list[list[Line]] = []
    for line in sorted(lines, key=lambda item: (item.y0 + item.y1) / 2):
        middle = (line.y0 + line.y1) / 2
        if rows and rows[-1][0].y0 <= middle <= rows[-1][0].y1:
            rows[-1].append(line)
        else:
            rows.append([line])
    for row in rows:
        row.sort(key=lambda item: item.x0)
    return rows


def _join_shifted(lines: Sequence[Line]) -> list[Line]:
    """Joins pieces that PDFium put on lines of their own only for a shifted baseline: raised note
    marks, and the text after them."""
    joined: list[Line] = []
    for line in lines:
        last = joined[-1] if joined else None
        if last is None or last.turn or line.turn or not _abuts(last, line):
            joined.append(line)
            continue
        size = max(last.size, line.size)
        if line.size < 0.8 * last.size and line.y1 < last.y1 - 0.18 * last.size:
            for char in line.chars:
                if char.text.isascii() and char.text.isdecimal():
                    char.text = char.text.translate(_SUPERSCRIPTS)
        space = [Char(" ", 0.0, 0.0, -1.0, 0.0)] if line.x0 - last.x1 > 0.15 * size else []
        last.chars = _with_single_spaces([*last.chars, *space, *line.chars])
        last.x1 = line.x1
        if line.size > last.size:
            last.y0, last.y1 = line.y0, line.y1
    return joined


def _abuts(last: Line, line: Line) -> bool:
    overlap = min(last.y1, line.y1) - max(last.y0, line.y0)
    gap = line.x0 - last.x1
    size = max(last.size, line.size)
    return overlap > 0.35 * min(last.size, line.size) and -0.3 * size <= gap <= 0.6 * size


def _is_gap(last: Char, char: Char, turn: int) -> bool:
    if turn:
        return False
    size = max(last.y1 - last.y0, char.y1 - char.y0)
    return char.x0 - last.x1 > 2.0 * size or char.x0 < last.x0 - size


def _append(lines: list[Line], piece: list[Char], row: int, turn: int) -> None:
    while piece and piece[0].text == " ":
        piece = piece[1:]
    while piece and piece[-1].text == " ":
        piece = piece[:-1]
    placed = [char for char in piece if char.x1 >= char.x0]
    if not placed:
        return
    height = median(char.y1 - char.y0 for char in placed)
    bottom = median(char.y1 for char in placed)
    full = [char for char in placed if char.y1 - char.y0 > 0.8 * height] or placed
    if turn == 0:
        for char in placed:
            if char.text.isdecimal() and char.text.isascii() and _is_raised(char, height, bottom):
                char.text = char.text.translate(_SUPERSCRIPTS)
    lines.append(
        Line(
            chars=_with_single_spaces(piece),
            x0=min(char.x0 for char in placed),
            y0=median(char.y0 for char in full),
            x1=max(char.x1 for char in placed),
            y1=median(char.y1 for char in full),
            row=row,
            turn=turn,
        )
    )


def _is_raised(char: Char, height: float, bottom: float) -> bool:
    return char.y1 - char.y0 < 0.8 * height and char.y1 < bottom - 0.18 * height


def _with_single_spaces(chars: list[Char]) -> list[Char]:
    """Runs of spaces as one; a space without a place gets the gap between its neighbours."""
    kept: list[Char] = []
    for char in chars:
        if char.text == " " and kept and kept[-1].text == " ":
            continue
        kept.append(char)
    for before, space, after in zip(kept, kept[1:], kept[2:], strict=False):
        if space.text == " " and space.x1 < space.x0 and before.x1 <= after.x0:
            space.x0, space.x1, space.y0, space.y1 = before.x1, after.x0, before.y0, before.y1
    return kept


def _sorted_runs(lines: list[Line]) -> list[Line]:
    """Drawing order, but stretches that were drawn too early or too late moved to their height.

    A step up and to the right is the next cell or column; a step up otherwise starts a new stretch.
    """
    stretches: list[list[Line]] = []
    previous: Line | None = None
    for line in lines:
        climbs = (
            previous is not None
            and line.y0 < previous.y0 - 0.6 * previous.size
            and line.x0 < previous.x1 - previous.size
        )
        if previous is None or climbs:
            stretches.append([])
        stretches[-1].append(line)
        previous = line
    if len(stretches) == 1:
        return lines
    ranges = sorted(
        (min(line.y0 for line in part), max(line.y1 for line in part), index)
        for index, part in enumerate(stretches)
    )
    apart = all(b[0] >= a[1] - 4 for a, b in zip(ranges, ranges[1:], strict=False))
    if apart:
        return [line for _, _, index in ranges for line in stretches[index]]
    if len(stretches) > max(3, len(lines) // 8):
        return _by_rows(lines)
    ordered = stretches[0]
    for stretch in stretches[1:]:
        if sum(_stands_beside(line, ordered) for line in stretch) > len(stretch) // 3:
            # Cells of a table, whose drawing order is better than any that geometry gives.
            return lines
        ordered = _inserted(ordered, stretch)
    return ordered


def _stands_beside(line: Line, others: Sequence[Line]) -> bool:
    middle = (line.y0 + line.y1) / 2
    return any(other.y0 <= middle <= other.y1 for other in others)


def _inserted(ordered: list[Line], late: Sequence[Line]) -> list[Line]:
    """`late` lines, drawn after the text around them, put where they stand on the page."""
    result = list(ordered)
    for line in late:
        middle = (line.y0 + line.y1) / 2
        place = len(result)
        for index, other in enumerate(result):
            beside = other.y0 <= middle <= other.y1
            if (beside and line.x0 < other.x0) or (not beside and other.y0 > middle):
                place = index
                break
        result.insert(place, line)
    return result


def _by_rows(lines: Sequence[Line]) -> list[Line]:
    ordered: list[Line] = []
    for number, row in enumerate(rows_of(lines)):
        for line in row:
            # Pieces of one geometric row are one line from here on.
            line.row = -1 - number
            ordered.append(line)
    return ordered


def _columns(lines: Sequence[Line], width: float, depth: int) -> list[list[Line]]:
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
            parts += _columns(left, width, depth + 1) + _columns(right, width, depth + 1)
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


def _merge_rows(lines: Sequence[Line]) -> list[Line]:
    """Neighbouring pieces of one row become one line, with a space between."""
    merged: list[Line] = []
    for line in lines:
        last = merged[-1] if merged else None
        if last is None or last.row != line.row or last.turn != line.turn or line.x0 < last.x1 - 2:
            merged.append(line)
            continue
        numbered = len(last.chars) <= 8 and starts_clause(last.text + " ")
        last.chars = [*last.chars, Char(" ", last.x1, last.y0, line.x0, last.y1), *line.chars]
        last.x1 = line.x1
        last.y0, last.y1 = min(last.y0, line.y0), max(last.y1, line.y1)
        last.cells += 0 if numbered else 1
    return merged
