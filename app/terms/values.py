"""The values that a passage gives for a term, in normal form, each at its own words.

Figures and dates are read by the readers that check answers. A value is never composed: what is
not written in the passage is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from app.answer.clause_numbers import find_clause_numbers
from app.answer.dates import find_dates
from app.answer.figures import find_figures
from app.answer.units import MONEY
from app.terms.blanks import find_blanks
from app.terms.cues import belongs, renewed
from app.terms.rules import ValueKind
from retrieval.folding import fold_width

_HOLE = re.compile(r"(?<=[\u4e00-\u9fff])\s{2,}|[_＿×]")
"""A printed "一九　　年" is the start of a date that was never filled in, not nineteen years."""
_PERIODS = ("day", "month", "hour", "business day", "trading day")
_CURRENCIES = frozenset(MONEY.values())
_LAW = re.compile(
    r"laws?\s+(?:of|in\s+force\s+in)\s+(?:the\s+)?(?P<of>[A-Z\[][^,.;()]{1,70}?)"
    r"(?=\s*(?:[,.;()]|$|\bwithout\b|\bexcluding\b|\bexcept\b|\bapplicable\b|\bas\b|\band\s+(?:the|any|all|shall|will|each|no)\b"
    r"|\bregardless\b|\birrespective\b|\bshall\b|\bwill\b|\bwith(?:out)?\b|\bfor\b|\bin\s|\bto\b|\bgoverning\b|\bnot\b))"
    r"|\b(?P<adjective>(?-i:[A-Z][A-Za-z]+(?:\s[A-Z][A-Za-z]+)?))\s+laws?\b(?!\s+of)"
    r"|(?P<zh>中华人民共和国|中国|香港(?:特别行政区)?|美国|英国|法国|德国|日本|瑞士|瑞典|新加坡|(?:英格兰|纽约州?))(?:的)?(?:有关|现行)?(?:法律|法)",
    re.IGNORECASE,
)
_LAW_PREFIX = re.compile(
    r"^(?:the\s+)?(?:state|commonwealth|province)\s+of\s+(?:the\s+)?", re.IGNORECASE
)
_NOT_LAW = frozenset(
    re.findall(
        r"\w+",
        """
        applicable governing federal state such the any all this and local by common substantive
        bankruptcy with securities internal conflict of in patent international
        """,
    )
)


@dataclass(frozen=True, slots=True)
class Found:
    """A value at `text[start:end]` of a passage; None without a normal form."""

    value: str | None
    start: int
    end: int
    blank: bool = False


def read_values(text: str, kind: ValueKind) -> tuple[Found, ...]:
    """The values of one kind in a passage, in order; empty when it holds none. Blanks come out as
    such only where no value of the kind stands."""
    found = tuple(_readers(text, kind))
    found = tuple(_of_term(text, found, kind))
    if found or kind == "text":
        return found
    return tuple(Found(None, start, end, True) for start, end in find_blanks(text))


def _readers(text: str, kind: ValueKind) -> Iterator[Found]:
    if kind == "law":
        yield from _laws(text)
    elif kind in ("duration", "notice", "within"):
        yield from _figures(text, periods=True)
    elif kind == "money":
        yield from _figures(text, money=True)
    elif kind in ("figure", "cap"):
        yield from _figures(text, money=True, periods=False, shares=True)
    elif kind == "time":
        dates = [Found(iso(text[a:b]), a, b) for a, b in date_spans(text)]
        both = [*dates, *_figures(text, periods=True)]
        yield from sorted(both, key=lambda one: one.start)


def _of_term(text: str, found: Iterable[Found], kind: ValueKind) -> Iterator[Found]:
    """The values that belong to the term; of a first period and that of a renewal the first."""
    last: Found | None = None
    for one in found:
        # A date has no unit.
        if kind == "time" and not (one.value or "0")[-1].isalpha():
            last = one
        elif not belongs(text, one.start, one.end, kind):
            continue
        elif kind == "time":
            if last is not None and renewed(text, last.end, one.start):
                continue
            last = one
        yield one


def date_spans(text: str) -> Iterator[tuple[int, int]]:
    """Dates that name a year."""
    for date in find_dates(text):
        if date.year is not None:
            yield date.start, date.end


def iso(text: str) -> str | None:
    """The one date of a stretch of text as yyyy-mm-dd, or as far as it is written; None when it is
    ambiguous."""
    dates = find_dates(text)
    if len(dates) != 1 or dates[0].ambiguous or dates[0].year is None:
        return None
    date = dates[0]
    parts = [f"{date.year:04d}"]
    parts += [f"{part:02d}" for part in (date.month, date.day) if part is not None]
    return "-".join(parts)


def _figures(
    text: str, *, money: bool = False, periods: bool = False, shares: bool = False
) -> Iterator[Found]:
    taken = [(number.start, number.end) for number in find_clause_numbers(text)]
    taken += [(date.start, date.end) for date in find_dates(text, taken)]
    for figure in find_figures(text, taken):
        if figure.value is None or _HOLE.search(text[figure.start : figure.end]):
            continue
        if (
            (money and figure.unit in _CURRENCIES)
            or (periods and figure.unit in _PERIODS)
            or (shares and figure.unit in ("%", "times"))
        ):
            yield Found(figure.key, figure.start, figure.end)


def _laws(text: str) -> Iterator[Found]:
    folded = fold_width(text)
    for match in _LAW.finditer(folded):
        name = match.lastgroup or ""
        said = match[name]
        if name == "adjective" and (
            not said[0].isupper() or {word.lower() for word in said.split()} & _NOT_LAW
        ):
            continue
        blank = said.startswith("[")
        yield Found(None if blank else law_name(said), *match.span(name), blank)


def law_name(said: str) -> str:
    """The jurisdiction without "State of" and in one spelling."""
    name = _LAW_PREFIX.sub("", " ".join(said.split()))
    name = name.title() if name.isupper() else name
    return {"中华人民共和国": "中国"}.get(name, name)
