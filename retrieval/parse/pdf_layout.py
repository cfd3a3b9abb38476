"""Puts the runs of a page into reading order and tells which lines share a column.

The order in which the file draws its text is kept wherever it makes sense: word processors draw
cells and columns one by one, which geometry alone can't recover. It knows nothing of other pages.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from retrieval.parse.pdf_chars import Char, RawPage
from retrieval.parse.pdf_columns import columns_of
from retrieval.parse.pdf_lines import Line, Region
from retrieval.parse.pdf_rows import merge_rows, rows_of

_LEADER = re.compile(r"\s*(?:[.．·…‥]\s*){5,}")
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


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
    columns = columns_of(upright, width)
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
        _mark_neighbours(column)
    return [_without_leader(line) for line in merge_rows(upright) + merge_rows(aside)]


def _without_leader(line: Line) -> Line:
    """Makes the row of dots before a page number in a table of contents one "…"."""
    found = _LEADER.search(line.text)
    if found is None:
        return line
    start, end = found.span()
    dots = line.chars[start:end]
    placed = [char for char in dots if char.x1 >= char.x0]
    x0, x1 = min(char.x0 for char in placed), max(char.x1 for char in placed)
    space = Char(" ", 0.0, 0.0, -1.0, 0.0)
    mark = [space, Char("…", x0, line.y0, x1, line.y1), space]
    line.chars = (
        line.chars[:start] + (mark if end < len(line.chars) else mark[:2]) + line.chars[end:]
    )
    # Such a line ends its entry, however long it is.
    line.cells += 1
    return line


def _mark_neighbours(lines: Sequence[Line]) -> None:
    """Sets `beside` on lines that share some height with another one, left or right of them."""
    ordered = sorted(lines, key=lambda line: line.y0)
    for index, line in enumerate(ordered):
        for other in ordered[index + 1 :]:
            if other.y0 >= line.y1 - 0.2 * line.size:
                break
            if other.x0 >= line.x1 or line.x0 >= other.x1:
                line.beside = other.beside = True


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
    # The longest stretch keeps its order; the short ones are headings or page numbers put in later.
    ordered, *short = sorted(stretches, key=len, reverse=True)
    for stretch in short:
        if any(_stands_beside(line, ordered) for line in stretch):
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
