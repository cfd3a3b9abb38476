"""Calendar dates and how they compare: 2024年3月1日, 二〇二四年三月一日, 2024-03-01, 1 March 2024.

A date may lack its year or its day. One written only with numbers that can be read two ways
(03/04/2024) equals the same spelling and nothing else. Does not know relative dates.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.folding import fold_width
from retrieval.numerals import NUMERAL_CLASS, chinese_number

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Date:
    """A date at `text[start:end]`. Parts that are not written are None. `ambiguous` dates have
    month and day in an unknown order; they are kept as written."""

    start: int
    end: int
    text: str
    year: int | None
    month: int | None
    day: int | None
    ambiguous: bool = False

    @property
    def key(self) -> str:
        """Equal for dates that say the same."""
        parts = (self.year, self.month, self.day)
        order = "?" if self.ambiguous else ""
        return order + "-".join("*" if part is None else str(part) for part in parts)

    def within(self, other: Date) -> bool:
        """Whether every part of this date is the same in `other`."""
        if self.ambiguous != other.ambiguous:
            return False
        pairs = ((self.year, other.year), (self.month, other.month), (self.day, other.day))
        return all(mine is None or mine == theirs for mine, theirs in pairs)


_MONTHS = {
    name: number
    for number, names in enumerate(
        ("january jan", "february feb", "march mar", "april apr", "may", "june jun", "july jul",
         "august aug", "september sept sep", "october oct", "november nov", "december dec"),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ZH = f"[{NUMERAL_CLASS}廿卅]"
_Y = r"(?:19|20)\d\d"
_PATTERN = re.compile(
    rf"""
    (?<!\d)(?P<zy>\d{{4}}|[〇○零一二三四五六七八九]{{4}})\s*年(?:度(?!第))?
        (?:\s*(?P<zm>\d{{1,2}}|{_ZH}{{1,3}})\s*月(?:\s*(?P<zd>\d{{1,2}}|{_ZH}{{1,3}})\s*[日号])?)?
  | (?<![\d个第])(?P<nm>\d{{1,2}}|{_ZH}{{1,3}})月\s?(?P<nd>\d{{1,2}}|{_ZH}{{1,3}})[日号]
  | (?<![\d.\-/])(?P<iy>{_Y})(?P<isep>[-/.])(?P<im>1[0-2]|0?[1-9])(?P=isep)
        (?P<id>3[01]|[12]\d|0?[1-9])(?![\d\-/])(?!\.\d)
  | (?<![\d./-])(?P<a>\d{{1,2}})(?P<asep>[-/.])(?P<b>\d{{1,2}})(?P=asep)
        (?P<ay>{_Y}|\d\d)(?![\d/-])(?!\.\d)
  | (?<![\d.])(?P<dd>[0-3]?\d)\s*(?:st|nd|rd|th)?\s+(?:day\s+of\s+|of\s+)?(?P<dm>{_MONTH})\b\.?
        (?:,?\s+(?:in\s+the\s+year\s+)?(?P<dy>{_Y}))?
  | \b(?P<mm>{_MONTH})\b\.?\s+(?P<md>[0-3]?\d)\s*(?:st|nd|rd|th)?(?![\d%])(?!,\d{{3}}(?!\d)|\.\d)
        (?:\s*,?\s*(?P<my>{_Y})(?!\d))?
  | \b(?P<om>{_MONTH})\b\.?,?\s+(?:of\s+)?(?P<oy>{_Y})(?!\d)
    """,
    re.VERBOSE | re.IGNORECASE,
)


def find_dates(text: str, taken: Sequence[Span] = ()) -> tuple[Date, ...]:
    """Every date of `text` that exists in the calendar, in order."""
    found: list[Date] = []
    for match in _PATTERN.finditer(fold_width(text)):
        start, end = match.span()
        if any(start < b and a < end for a, b in taken):
            continue
        parts = _parts(match)
        if parts is None:
            continue
        year, month, day, ambiguous = parts
        if not ambiguous and not _exists(year, month, day):
            # Still a date to its reader: it must be marked, and equals only the same impossibility.
            ambiguous = True
        found.append(Date(start, end, text[start:end], year, month, day, ambiguous))
    return tuple(found)


def _parts(match: re.Match[str]) -> tuple[int | None, int | None, int | None, bool] | None:
    group = match.group
    if group("zy"):
        month = _whole(group("zm"))
        return _whole(group("zy")), month, _whole(group("zd")), False
    if group("nm"):
        return None, _whole(group("nm")), _whole(group("nd")), False
    if group("iy"):
        return int(group("iy")), int(group("im")), int(group("id")), False
    if group("a"):
        return _numeric(int(group("a")), int(group("b")), group("ay"))
    if group("dm"):
        return _whole(group("dy")), _MONTHS[group("dm").lower()], int(group("dd")), False
    if group("mm"):
        # "may 5" inside a sentence is the verb, "May 5" the month.
        if group("mm") == "may":
            return None
        return _whole(group("my")), _MONTHS[group("mm").lower()], int(group("md")), False
    if group("om") == "may":
        return None
    return int(group("oy")), _MONTHS[group("om").lower()], None, False


def _numeric(first: int, second: int, year: str) -> tuple[int, int, int, bool] | None:
    whole = int(year) if len(year) == 4 else 2000 + int(year) - (100 if int(year) >= 70 else 0)
    if first > 12 >= second:
        return whole, second, first, False
    if second > 12 >= first or first == second:
        return whole, first, second, False
    if first > 31 or second > 31 or not first or not second:
        return None
    return whole, first, second, True


def _exists(year: int | None, month: int | None, day: int | None) -> bool:
    try:
        datetime.date(year or 2000, month or 1, day or 1)
    except ValueError:
        return False
    return True


def _whole(text: str | None) -> int | None:
    if not text:
        return None
    if text.isdigit():
        return int(text)
    value = chinese_number(text.replace("廿", "二十").replace("卅", "三十"))
    return None if value is None else int(value)
