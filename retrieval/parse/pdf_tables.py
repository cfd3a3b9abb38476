"""Takes the text of ruled tables out of a page's lines and reads it row by row, " | " between
cells.

A row whose cells hold running text (bilingual contracts side by side) is read cell by cell instead,
each cell as paragraphs of its own. It knows nothing of the order of the rest of the page.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from retrieval.parse.joining import hyphen_stays, separator
from retrieval.parse.pdf_chars import Char
from retrieval.parse.pdf_drawn import Rect
from retrieval.parse.pdf_grid import Grid, grids_of
from retrieval.parse.pdf_lines import Line, Region
from retrieval.parse.pdf_rows import rows_of

_PROSE_CHARS = 160
"""A cell with more text than that, on several full lines, is prose: read as one row it would put
two clauses side by side into one sentence."""
_PROSE_LINES = 4
_FULL = 0.65
_OPEN_LINES = 3
_LEADER_DOTS = 5
_DOTS = " .．·…‥"
_THOUSANDS = re.compile(r"\d{3}(?!\d)")


@dataclass(frozen=True, slots=True)
class Table:
    """The lines that one table reads as, and where it stands (points, origin top left)."""

    lines: tuple[Line, ...]
    box: Rect


def take_tables(lines: Sequence[Line], rules: Sequence[Rect]) -> tuple[list[Line], list[Table]]:
    """(lines outside of tables, tables). Lines that cross a table's edge are cut there."""
    rest = list(lines)
    tables: list[Table] = []
    for grid in grids_of(rules):
        outside: list[Line] = []
        cells: dict[tuple[int, int], list[Line]] = defaultdict(list)
        for line in rest:
            for place, piece in _pieces(line, grid):
                if place is None:
                    outside.append(piece)
                else:
                    cells[place].append(_without_leader(piece))
        if len(cells) < 2 or len({column for _, column in cells}) < 2:
            continue
        rest = outside
        box = (grid.xs[0], grid.ys[0], grid.xs[-1], grid.ys[-1])
        tables.append(Table(tuple(_rows(grid, cells)), box))
    return rest, tables


def put_tables(ordered: Sequence[Line], tables: Sequence[Table]) -> list[Line]:
    """`ordered` with each table after the last line that stands above it in its column."""
    result = list(ordered)
    for table in tables:
        left, top, right, _ = table.box
        above = [
            index
            for index, line in enumerate(result)
            if line.x0 < right and left < line.x1 and (line.y0 + line.y1) / 2 < top
        ]
        place = above[-1] + 1 if above else 0
        result[place:place] = table.lines
    return result


def _pieces(line: Line, grid: Grid) -> list[tuple[tuple[int, int] | None, Line]]:
    """The line cut where it passes from one cell to another."""
    if line.turn or line.y1 < grid.ys[0] or line.y0 > grid.ys[-1]:
        return [(None, line)]
    runs: list[tuple[tuple[int, int] | None, list[Char]]] = []
    for char in line.chars:
        if char.x1 < char.x0 or char.text == " ":
            if runs:
                runs[-1][1].append(char)
            continue
        place = grid.cell_at((char.x0 + char.x1) / 2, (char.y0 + char.y1) / 2)
        if not runs or runs[-1][0] != place:
            runs.append((place, []))
        runs[-1][1].append(char)
    if len(runs) == 1:
        return [(runs[0][0], line)]
    return [(place, _cut(line, chars)) for place, chars in runs]


def _cut(line: Line, chars: list[Char]) -> Line:
    while chars[-1].text == " ":
        chars.pop()
    placed = [char for char in chars if char.x1 >= char.x0]
    left, right = min(char.x0 for char in placed), max(char.x1 for char in placed)
    return Line(chars, left, line.y0, right, line.y1, line.row, line.turn)


def _rows(grid: Grid, cells: dict[tuple[int, int], list[Line]]) -> list[Line]:
    found: list[Line] = []
    region = Region(grid.xs[0], grid.xs[-1])
    for row in sorted({row for row, _ in cells}):
        places = [place for place in sorted(cells) if place[0] == row]
        texts = [_sorted(cells[place]) for place in places]
        wrapped = [
            _is_wrapped(lines, grid.width(place))
            for place, lines in zip(places, texts, strict=True)
        ]
        if any(_is_prose(lines) for lines, wraps in zip(texts, wrapped, strict=True) if wraps):
            for lines in texts:
                found += _paragraphs(lines)
        elif len(texts) == 1 and len(texts[0]) >= _OPEN_LINES and not wrapped[0]:
            # A part of the table without any rules, such as all below its head.
            found += [_row([[line] for line in part], region) for part in rows_of(texts[0])]
        elif _is_open(texts, wrapped):
            found += [_row(part, region) for part in _baselines(texts)]
        else:
            found.append(_row(texts, region))
    return found


def _is_prose(lines: Sequence[Line]) -> bool:
    return len(lines) >= _PROSE_LINES and sum(len(line.chars) for line in lines) > _PROSE_CHARS


def _is_wrapped(lines: Sequence[Line], width: float) -> bool:
    """Whether all lines but the last fill the cell, as one text that is broken at its edge."""
    widths = [_ink_end(line) - line.x0 for line in lines[:-1]]
    return bool(widths) and median(widths) >= _FULL * width


def _ink_end(line: Line) -> float:
    """Where the words of a line end; the dots that lead to the next cell are none."""
    return max(
        (char.x1 for char in line.chars if char.text not in _DOTS and char.x1 >= char.x0),
        default=line.x0,
    )


def _without_leader(line: Line) -> Line:
    words = line.text.rstrip(_DOTS)
    if len(line.chars) - len(words) >= _LEADER_DOTS and words:
        line.chars = line.chars[: len(words)]
        line.x1 = _ink_end(line)
    return line


def _is_open(texts: Sequence[Sequence[Line]], wrapped: Sequence[bool]) -> bool:
    """Whether one ruled row holds many rows of text: only its columns are ruled."""
    lists = [
        lines
        for lines, wraps in zip(texts, wrapped, strict=True)
        if len(lines) >= _OPEN_LINES and not wraps
    ]
    rows = rows_of([line for lines in texts for line in lines])
    full = sum(len(row) >= len(texts) for row in rows)
    if len(texts) >= 3 and full >= 2 and not any(wrapped):
        return True
    if len(lists) < 2:
        return False
    shared = sum(len(row) * 2 >= len(texts) for row in rows)
    return shared * 2 >= len(rows)


def _baselines(texts: Sequence[Sequence[Line]]) -> list[list[list[Line]]]:
    """Cells row by row for a part of a table without rules between its rows. What stands alone on
    its baseline goes on in its cell."""
    column = {id(line): index for index, lines in enumerate(texts) for line in lines}
    found: list[dict[int, list[Line]]] = []
    bottom = 0.0
    for row in rows_of([line for lines in texts for line in lines]):
        columns = {column[id(line)] for line in row}
        near = row[0].y0 - bottom < row[0].size
        if not found or len(columns) > 1 or not near:
            found.append(defaultdict(list))
        for line in row:
            found[-1][column[id(line)]].append(line)
        bottom = max(line.y1 for line in row)
    return [[cells[index] for index in sorted(cells)] for cells in found]


def _sorted(lines: Sequence[Line]) -> list[Line]:
    return [line for row in rows_of(lines) for line in row]


def _paragraphs(lines: Sequence[Line]) -> list[Line]:
    """The lines of one cell, with its edges, begun anew whatever stood before."""
    region = Region()
    for line in lines:
        region.add(line)
        line.region = region
    lines[0].opens = True
    return list(lines)


def _row(texts: Sequence[Sequence[Line]], region: Region) -> Line:
    chars: list[Char] = []
    for lines in texts:
        if chars:
            chars += [_unplaced(mark) for mark in " | "]
        chars += _cell(lines)
    everything = [line for lines in texts for line in lines]
    top, bottom = min(line.y0 for line in everything), max(line.y1 for line in everything)
    line = Line(chars, region.left, top, region.right, bottom, row=everything[0].row)
    # More than one, so that no paragraph goes on in it, nor it in the next.
    line.cells = max(2, len(texts))
    line.region = region
    return line


def _cell(lines: Sequence[Line]) -> list[Char]:
    chars: list[Char] = []
    last: Line | None = None
    for line in lines:
        if last is not None:
            _meet(chars, last, line)
        chars += line.chars
        last = line
    return chars


def _meet(chars: list[Char], last: Line, line: Line) -> None:
    end, start = chars[-1].text, line.chars[0].text
    before = chars[-2].text if len(chars) > 1 else ""
    same_row = min(last.y1, line.y1) - max(last.y0, line.y0) > 0.5 * median((last.size, line.size))
    if same_row:
        chars.append(_unplaced(" "))
    elif end == "-" and before.isalpha():
        word = "".join(char.text for char in chars[-30:-1]).split(" ")[-1]
        if not hyphen_stays(word, line.text.split(" ")[0], set()):
            chars.pop()
    elif end == "," and before.isdigit() and _THOUSANDS.match(line.text):
        # A figure that a narrow cell cuts after its mark.
        return
    elif separator(end, start):
        chars.append(_unplaced(" "))


def _unplaced(text: str) -> Char:
    return Char(text, 0.0, 0.0, -1.0, 0.0)
