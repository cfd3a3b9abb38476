"""Finds running headers, footers and page numbers: lines that repeat at the page's edge.

A line that stands there once is text and stays, and so does a clause heading whose number changes.
Knows the lines of all pages, not their reading order.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from retrieval.parse.joining import starts_clause
from retrieval.parse.pdf_lines import Line
from retrieval.parse.pdf_rows import rows_of

_BAND = 0.16
_ROWS = 5
_SAME_HEIGHT = 0.03
_SHARE = 0.4
_MIN_STRETCH = 4
_STRETCH_SHARE = 0.6
_ROMAN = re.compile(r"[ivxlc]{1,6}")
_ROMAN_PAGE = re.compile(r"(?:(?<=page)|(?<=第))\s*([ivxlc]{1,6})\b(?=\s*(?:页|頁|of|$|\W))")
_PAGE_WORD = re.compile(r"\bpage\b|\bpg\b|页|頁", re.IGNORECASE)

_OUTERMOST = 2
_MIN_STAMPS = 5
_STAMP_LETTERS = 25

_Place = tuple[int, str, int, bool]


def strip_furniture(
    pages: Sequence[Sequence[Line]], sizes: Sequence[tuple[float, float]]
) -> list[list[Line]]:
    """The lines of each page without the repeated ones. `sizes`: (width, height) of the pages as
    read, in points."""
    places: dict[tuple[str, str], list[_Place]] = defaultdict(list)
    rows_by_page: list[list[tuple[str, str, _Place, list[Line]]]] = []
    for number, (lines, (width, height)) in enumerate(zip(pages, sizes, strict=True)):
        found: list[tuple[str, str, _Place, list[Line]]] = []
        for band, row, outermost in _edge_rows(lines, height):
            text = " ".join(line.text for line in row)
            signature = _signature(text)
            across = row[0].y0 / height if row[0].turn == 0 else row[0].x0 / width
            place = (number, text, round(across / _SAME_HEIGHT), outermost)
            places[band, signature].append(place)
            found.append((band, signature, place, row))
        rows_by_page.append(found)
    filled = sum(1 for lines in pages if lines)
    dropped: set[int] = set()
    for found in rows_by_page:
        for band, signature, place, row in found:
            alike = places[band, signature]
            near = [other for other in alike if abs(other[2] - place[2]) <= 1]
            # Where pages end early the footer follows the text, at any height.
            last = [other for other in alike if other[3]] if place[3] else []
            if _repeats(near, filled) or _repeats(last, filled) or _is_stamp(last):
                dropped.update(id(line) for line in row)
    kept = [[line for line in lines if id(line) not in dropped] for lines in pages]
    # One line a page and nothing else: that is what the document says, not its furniture.
    return kept if any(kept) else [list(lines) for lines in pages]


def _edge_rows(lines: Sequence[Line], height: float) -> list[tuple[str, list[Line], bool]]:
    """(band, row, whether it is one of the two outermost) of rows that may be furniture."""
    rows = rows_of([line for line in lines if line.turn == 0])
    found = [
        ("top", row, index < _OUTERMOST)
        for index, row in enumerate(rows[:_ROWS])
        if row[0].y1 < _BAND * height or index < _OUTERMOST
    ]
    found += [
        ("bottom", row, index < _OUTERMOST)
        for index, row in enumerate(rows[: -_ROWS - 1 : -1])
        if row[0].y0 > (1 - _BAND) * height or index < _OUTERMOST
    ]
    # Turned text in the margin, such as a printer's mark.
    found += [("side", [line], True) for line in lines if line.turn != 0]
    return found


def _signature(text: str) -> str:
    return re.sub(r"\s+", "", re.sub(r"\d+", "#", _with_arabic(text)))


def _repeats(places: Sequence[_Place], page_count: int) -> bool:
    numbers = sorted({place[0] for place in places})
    count = len(numbers)
    if count < 2:
        return False
    varies = len({re.sub(r"\s+", "", place[1].casefold()) for place in places}) > 1
    if varies and not (_counts_pages(places) and not _is_heading(places[0][1])):
        return False
    needed = page_count * (0.5 if page_count <= 5 else _SHARE)
    if count > needed or (count == needed and page_count > 5) or count == page_count:
        return True
    return count >= _MIN_STRETCH and count >= _STRETCH_SHARE * (numbers[-1] - numbers[0] + 1)


def _is_stamp(places: Sequence[_Place]) -> bool:
    """The same whole sentence at the edge of several pages, however far apart: a filing's stamp."""
    texts = {place[1] for place in places}
    letters = sum(char.isalpha() for char in places[0][1]) if places else 0
    return len(places) >= _MIN_STAMPS and len(texts) == 1 and letters >= _STAMP_LETTERS


def _counts_pages(places: Sequence[_Place]) -> bool:
    """Whether some number in the lines grows as the pages do (amounts and dates don't).

    Numbering may start again in an exhibit, so half of the steps are enough.
    """
    ordered = sorted(places)
    values = [_numbers(place[1]) for place in ordered]
    for position in range(min(len(value) for value in values)):
        steps = [
            after[position] - before[position] == second[0] - first[0]
            for before, after, first, second in zip(
                values, values[1:], ordered, ordered[1:], strict=False
            )
        ]
        if sum(steps) * 2 >= len(steps):
            return True
    return False


def _numbers(text: str) -> list[int]:
    return [int(digits[:9]) for digits in re.findall(r"\d+", _with_arabic(text))]


def _with_arabic(text: str) -> str:
    """`text` in small letters, Roman page numbers in digits: "- iv -", "Page iv", "第 iv 页"."""
    lowered = text.casefold()
    if _ROMAN.fullmatch(re.sub(r"[\W_]", "", lowered)):
        return _ROMAN.sub(lambda found: str(_from_roman(found.group())), lowered)
    return _ROMAN_PAGE.sub(lambda found: f" {_from_roman(found.group(1))} ", lowered)


def _from_roman(letters: str) -> int:
    worth = {"i": 1, "v": 5, "x": 10, "l": 50, "c": 100, "": 0}
    total = 0
    for index, letter in enumerate(letters):
        value = worth[letter]
        total += -value if worth[letters[index + 1 : index + 2]] > value else value
    return total


def _is_heading(text: str) -> bool:
    """A clause heading whose number changes from page to page is text; "Page 3 of 9" is not."""
    return starts_clause(text) and not _PAGE_WORD.search(text)
