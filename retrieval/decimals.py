"""Decimal clause numbers that confirm each other, over a whole text.

A number of several levels says itself where it stands: 15.3 comes behind 15.2, whatever was missed
before it. Candidates whose neighbours are the numbers before or behind them are confirmed; the
longest rising row of those is the text's backbone. References that wrap to the start of a line and
numbers in an index have no such neighbours, or fall out of the row. Numbering that begins again (a
schedule, the text behind its table of contents) begins a row of its own.

Knows numbers only. The row is the longest increasing subsequence, found by patience sorting
(Fredman, 1975).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from retrieval.headings import Candidate, Style

Path = tuple[int, ...]

_NEAR = 3
"""Decimal candidates among which a number looks for its neighbour: references stand between."""
_AGAIN = 3
"""Numbering that was in this clause or a later one and is in the first again began anew."""

_ENTRIES, _ENTRY_CHARS = 4, 160
"""Entries that a table of contents has at least, and the most characters of half of them."""
_LONGER = 3
"""How many times as long the text is, at least, as its table of contents."""
_TITLE_ABOVE = 200
"""Characters before the first entry in which the heading above it stands."""
_SKIPPED = 2
"""How far a heading between two numbers of a row may be from the first of them."""


@dataclass(frozen=True, slots=True)
class _Number:
    start: int
    path: Path
    inline: bool


def _decimal_path(candidate: Candidate) -> Path | None:
    for style, path in candidate.readings:
        if style == "dotted" and len(path) > 1:
            return path
    return None


def follows(path: Path, other: Path) -> bool:
    """Whether `other` may be the next number of an outline behind `path`: 15.3 is followed by
    15.3.1, 15.4, 16 and 16.1."""
    if other == (*path, 1):
        return True
    depth = len(other) - 1
    if depth < len(path) and other[:depth] == path[:depth] and other[depth] == path[depth] + 1:
        return True
    # The heading between may have no decimal number, and the first clause of 16 is 16.1.
    shared = depth - 1
    return (
        other[-1] == 1
        and shared < len(path)
        and other[:shared] == path[:shared]
        and other[shared] == path[shared] + 1
    )


@dataclass(frozen=True, slots=True)
class Backbone:
    """`numbers`: places (`Candidate.start`) of the candidates that belong to the text's decimal
    numbering, and of the headings above them, with their numbers. `contents`: from where to where
    the text is its table of contents, None without one."""

    numbers: Mapping[int, Path]
    contents: tuple[int, int] | None


def backbone(candidates: Sequence[Candidate]) -> Backbone:
    """What the decimal numbers among `candidates`, which are in order, say of their text.

    Numbers at the start of a line make the rows; those within lines are taken where they fit
    between them, so that an index does not outweigh the clauses.
    """
    numbered = [
        _Number(candidate.start, path, candidate.inline)
        for candidate in candidates
        if (path := _decimal_path(candidate)) is not None
    ]
    lines = [number for number in numbered if not number.inline]
    known = _neighbours(numbered) | _neighbours(lines)
    rows: list[list[_Number]] = []
    for row in _rows([number for number in numbered if number.start in known], candidates):
        chosen = _longest_rising([number for number in row if not number.inline])
        chosen += _between(row, chosen)
        rows.append(sorted(chosen, key=lambda number: number.start))
    contents = None
    if len(rows) > 1 and _lists(rows[0], rows[1]):
        entries, clauses = rows[:2]
        end = _last_entry(candidates, entries[-1].start, clauses[0].start) + 1
        contents = (entries[0].start - _TITLE_ABOVE, end)
    found = {number.start: number.path for row in rows for number in row}
    return Backbone(found | _headings(candidates, found), contents)


def _lists(row: Sequence[_Number], later: Sequence[_Number]) -> bool:
    """Whether the first row of a text is the table of contents of the next: short entries, the
    same numbers, and the next is the long one."""
    length = row[-1].start - row[0].start
    if len(row) < _ENTRIES or later[-1].start - later[0].start < _LONGER * length:
        return False
    gaps = sorted(second.start - first.start for first, second in pairwise(row))
    again = {number.path for number in later}
    shared = sum(number.path in again for number in row)
    return gaps[len(gaps) // 2] <= _ENTRY_CHARS and 2 * shared >= len(row)


def _last_entry(candidates: Sequence[Candidate], start: int, text: int) -> int:
    """Where the last entry of a table of contents begins, of which one begins at `start`: schedules
    are listed behind the clauses. At `text` the first clause begins."""
    for candidate in candidates:
        near = start < candidate.start < text and candidate.start - start <= _ENTRY_CHARS
        if near and _is_attachment(candidate):
            start = candidate.start
    return start


def _is_attachment(candidate: Candidate) -> bool:
    return any(style == "attachment" for style, _ in candidate.readings)


def _headings(candidates: Sequence[Candidate], found: Mapping[int, Path]) -> dict[int, Path]:
    """Numbers of one level at the start of a line that lead such a row on: "6. Term" before 6.1,
    or between 5.4 and 7.1."""
    places = sorted(found)
    headings: dict[int, Path] = {}
    for candidate in candidates:
        path = _single_path(candidate)
        at = bisect_left(places, candidate.start)
        if path is None or candidate.inline or at == len(places):
            continue
        above = found[places[at - 1]][0] if at else 0
        below = found[places[at]]
        again = at > 0 and below <= found[places[at - 1]]
        leads = below[:2] == (path[0], 1) and (above != path[0] or again)
        stands_between = candidate.titled and above < path[0] <= above + _SKIPPED
        if leads or (stands_between and path[0] < below[0] and above):
            headings[candidate.start] = path
    return headings


def _single_path(
    candidate: Candidate, styles: tuple[Style, ...] = ("dotted", "article")
) -> Path | None:
    for style, path in candidate.readings:
        if style in styles and len(path) == 1:
            return path
    return None


def _neighbours(numbered: Sequence[_Number]) -> set[int]:
    """Places of those that have the number before or behind them near by, in that order."""
    found: set[int] = set()
    for at, number in enumerate(numbered):
        for other in numbered[at + 1 : at + 1 + _NEAR]:
            if follows(number.path, other.path):
                found.update((number.start, other.start))
    return found


def _rows(confirmed: Sequence[_Number], candidates: Sequence[Candidate]) -> list[list[_Number]]:
    """The candidates in rows, each with one numbering. Behind the heading of an attachment one may
    begin again with any number, and behind a clause's own heading with its first: a form may have
    clause 3 twice, to choose from."""
    attachments = [candidate.start for candidate in candidates if _is_attachment(candidate)]
    headings: dict[int, list[int]] = {}
    for candidate in candidates:
        single = _single_path(candidate, ("dotted", "article", "chapter"))
        if single is not None and candidate.titled and not candidate.inline:
            headings.setdefault(single[0], []).append(candidate.start)
    rows: list[list[_Number]] = []
    highest = headed = previous = 0
    for number in confirmed:
        path = number.path
        under = path[1:] == (1,) and _any_between(headings.get(path[0], ()), previous, number.start)
        again = not rows or path == (1, 1) or (path[0] == 1 and highest >= _AGAIN)
        if not again and path <= rows[-1][-1].path:
            again = (under and path[0] == headed) or _any_between(
                attachments, rows[-1][-1].start, number.start
            )
        if again:
            rows.append([])
            highest = 0
        rows[-1].append(number)
        highest = max(highest, path[0])
        headed = path[0] if under else headed
        previous = number.start
    return rows


def _any_between(places: Sequence[int], start: int, end: int) -> bool:
    at = bisect_left(places, start)
    return at < len(places) and places[at] < end


def _between(row: Sequence[_Number], chosen: Sequence[_Number]) -> list[_Number]:
    """Those within lines that fit between the chosen ones at the start of lines."""
    gaps: list[list[_Number]] = [[] for _ in range(len(chosen) + 1)]
    starts = [number.start for number in chosen]
    for number in row:
        at = bisect_left(starts, number.start)
        above = at == 0 or chosen[at - 1].path < number.path
        below = at == len(chosen) or number.path < chosen[at].path
        if number.inline and above and below:
            gaps[at].append(number)
    return [number for gap in gaps for number in _longest_rising(gap)]


def _longest_rising(row: Sequence[_Number]) -> list[_Number]:
    tails: list[Path] = []
    ends: list[int] = []
    before: list[int] = []
    for at, number in enumerate(row):
        length = bisect_left(tails, number.path)
        before.append(ends[length - 1] if length else -1)
        if length == len(tails):
            tails.append(number.path)
            ends.append(at)
        else:
            tails[length] = number.path
            ends[length] = at
    chosen: list[_Number] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chosen.append(row[at])
        at = before[at]
    return chosen[::-1]
