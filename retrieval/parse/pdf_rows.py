"""Groups the pieces of text on one row of a page, and keeps wrapped table cells together.

Knows places and characters, neither columns nor the order of the page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from retrieval.parse.joining import ends_sentence, is_cjk, separator, starts_clause
from retrieval.parse.pdf_chars import Char
from retrieval.parse.pdf_lines import Line

_TABLE_CELLS = 3


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


def merge_rows(lines: Sequence[Line]) -> list[Line]:
    """Neighbouring pieces of one row become one line; a table cell that wraps stays in its row.

    Between two pieces stands a space: a clause number and its text, a name and its value. Between
    three or more stands " | ", as they are cells of a table.
    """
    merged: list[Line] = []
    piece: Line | None = None
    gaps: dict[int, list[Char]] = {}
    alone = Counter(line.row for line in lines)
    for line in lines:
        last = merged[-1] if merged else None
        start = replace(line)
        if last is not None and last.turn == line.turn == 0 and _in_row(last, line):
            numbered = len(last.chars) <= 8 and starts_clause(last.text + " ")
            gaps.setdefault(id(last), []).extend(_extend(last, line, " "))
            last.cells += 0 if numbered else 1
        elif (
            last is not None
            and piece is not None
            and last.cells > 1
            and alone[line.row] == 1
            and _continues_cell(piece, line)
        ):
            _extend(last, line, separator(last.text[-1], line.text[0]))
        else:
            merged.append(line)
        piece = start
    for line in merged:
        if line.cells >= _TABLE_CELLS:
            line.chars = _with_marks(line.chars, gaps.get(id(line), []))
    return merged


def _with_marks(chars: Sequence[Char], gaps: Sequence[Char]) -> list[Char]:
    """`chars` with a mark in the middle of each of those gaps."""
    marked = {id(gap) for gap in gaps}
    found: list[Char] = []
    for char in chars:
        found.append(char)
        if id(char) in marked:
            found += [replace(char, text="|"), replace(char)]
    return found


def _in_row(last: Line, line: Line) -> bool:
    if line.x0 < last.x1 - 2:
        return False
    overlap = min(last.y1, line.y1) - max(last.y0, line.y0)
    return last.row == line.row or overlap > 0.6 * line.size


def _continues_cell(piece: Line, line: Line) -> bool:
    """Whether a line stands right under a cell and goes on with its words."""
    step = line.y1 - piece.y1
    if not 0.3 * piece.size < step <= 1.4 * piece.size or starts_clause(line.text):
        return False
    aligned = abs(piece.x0 - line.x0) <= 2 or abs(piece.x0 + piece.x1 - line.x0 - line.x1) <= 3
    chinese = is_cjk(piece.text[-1]) and any(is_cjk(char) for char in line.text)
    goes_on = line.text[0].islower() or piece.text[-1] in ",-(&" or chinese
    return aligned and goes_on and not ends_sentence(piece.text)


def _extend(last: Line, line: Line, between: str) -> list[Char]:
    """Puts `line` behind `last`; what stands between them."""
    gap = [Char(between, last.x1, last.y0, line.x0, last.y1)] if between else []
    last.chars = [*last.chars, *gap, *line.chars]
    last.x1 = max(last.x1, line.x1)
    last.y0, last.y1 = min(last.y0, line.y0), max(last.y1, line.y1)
    return gap
