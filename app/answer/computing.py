"""Sums, day counts and end dates, computed from figures that are quoted.

Only when the question asks for one and every operand stands in a quote (or, as a date, in the
question) without a second candidate; else nothing is computed. Calendar arithmetic is dateutil's.
Does not know holidays, so business days are never counted, nor whether a contract counts the first
or the last day, which the remark says.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from dateutil.relativedelta import relativedelta

from app.answer import notices
from app.answer.citations import without_markers
from app.answer.dates import Date, find_dates
from app.answer.equations import find_equations
from app.answer.figures import Figure, find_figures
from app.answer.items import find_items
from app.answer.units import MONEY
from app.types import Check, Citation
from retrieval.definitions import find_definitions
from retrieval.folding import fold
from retrieval.stems import words
from retrieval.types import Language
from retrieval.wordlists import word_list

ComputationKind = Literal["sum", "days", "end_date"]

_END = re.compile(
    r"\bwhen (?:does|do|will|is|are|must|shall|should|would)\b.*\b(?:ends?|expires?|expiry"
    r"|lapse|due|over|run out|latest|deadline|pay|paid|deliver|delivered)\b"
    r"|\b(?:expiry|expiration|end|due) date\b|\b(?:until|by) (?:when|what date|which date)\b"
    r"|\blast day\b|\bdeadline\b|\bwhat (?:date|day) .*\b(?:end|expire|due)"
    r"|(?:什么时候|何时|哪一?天|几号|哪年哪月).{0,6}(?:到期|届满|结束|截止|终止|期满|付|支付|交)"
    r"|到期日|截止日|届满日|最[晚迟](?:.{0,8})(?:什么时候|何时|哪一?天|几号)",
    re.IGNORECASE,
)
_DAYS = re.compile(
    r"\b(?:how many|number of) (?:calendar )?days\b.*\b(?:between|from|until|to|apart|separate)\b"
    r"|\bhow long\b.*\bbetween\b"
    r"|(?:相隔|相差|之间|间隔|从.{1,20}到.{1,20}).{0,8}(?:多少|几)[天日]"
    r"|(?:多少|几)[天日].{0,4}(?:间隔|之间)",
    re.IGNORECASE,
)
_SUM_OF = re.compile(
    r"\b(?:total|sum|combined (?:amount|total|value|price|cost)) of"
    r" (?P<items>[^?]+?\b(?:and|plus)\b[^?]+)"
    r"|(?:is|are|do|does|cost|for|amount to) (?P<before>[^?]+?\b(?:and|plus)\b[^?]+?)"
    r" (?:together|combined|in total|altogether|taken together|add up to|come to|amount to)\b"
    r"|(?P<zh>[^？?，,]+?(?:和|与|加上?|以及|及|、)[^？?，,]+?)"
    r"(?:合计|总共|一共|加起来|总和|之和|共计|相加)",
    re.IGNORECASE,
)
_ITEMS = re.compile(r",? (?:and|plus) |, |和|与|加上?|以及|及|、")
_NOISE = re.compile(r"(?:合计|总共|一共|加起来|共计|是多少|多少钱?|的)$")
_OPEN_END = re.compile(
    r"\b(?:until|till|through|expir\w*|ending|ends?|terminat\w*|to)\s+(?:on\s+)?(?:and\s+including\s+)?$"
    r"|[至到止]\s*$",
    re.IGNORECASE,
)
_BACKWARDS = re.compile(r"\b(?:before|prior to|preceding)\b|[之以]?前", re.IGNORECASE)
_FORWARDS = re.compile(
    r"\b(?:for|within|period|term|after|from|following|no later than|not later than|up to|of)\b"
    r"|[内后]|为期|期限|有效期|期为|起",
    re.IGNORECASE,
)
_CURRENCIES = frozenset(MONEY.values()) - {"cent"}
_MAX_OPERANDS = 6
_MAX_MARKER = 999


@dataclass(frozen=True, slots=True)
class Operand:
    """A figure or date as it is written. `marker` is the number of the citation that holds it, None
    for one of the question."""

    text: str
    marker: int | None

    def shown(self) -> str:
        """The operand with its marker."""
        return self.text if self.marker is None else f"{self.text} [{self.marker}]"


@dataclass(frozen=True, slots=True)
class Computation:
    """A figure made of quoted ones. `sources` are the texts in which the operands must stand."""

    kind: ComputationKind
    operands: tuple[Operand, ...]
    result: str
    sources: tuple[str, ...]

    def sentence(self, language: Language) -> str:
        """The computation in words, with operands and result."""
        shown = [operand.shown() for operand in self.operands]
        if self.kind == "days":
            expression = f"{shown[0]} → {shown[1]} = {self.result}"
        else:
            expression = f"{' + '.join(shown)} = {self.result}"
        return notices.computed(language, expression, calendar=self.kind != "sum")

    def check(self, said: str, *, offset: int) -> Check:
        """Whether every operand stands in its source and the result follows from them, read and
        computed anew from what `said` shows."""
        texts = tuple(operand.text for operand in self.operands)
        stand = all(any(text in source for source in self.sources) for text in texts)
        plain = without_markers(said, _MAX_MARKER)
        equations = find_equations(plain, find_items(plain))
        follows = len(equations) == 1 and equations[0].right
        note = "" if follows else "the result does not follow from the operands"
        if not stand:
            note = "an operand is not in the cited text"
        start = offset + said.rindex(self.result)
        end = start + len(self.result)
        return Check("computed", self.result, stand and follows, start, end, note, texts)


def compute(question: str, citations: Sequence[Citation], language: Language) -> Computation | None:
    """What the question asks to be computed, if every operand is quoted; None otherwise."""
    quoted = [
        (number, citation)
        for number, citation in enumerate(citations, start=1)
        if not citation.replaced
    ]
    if not quoted:
        return None
    found: tuple[ComputationKind, list[Operand]] | None = None
    if items := _summed(question):
        found = _with_kind("sum", _sum_operands(items, quoted))
    elif _DAYS.search(question):
        found = _with_kind("days", _day_operands(question, quoted))
    elif _END.search(question):
        found = _with_kind("end_date", _end_operands(question, quoted))
    if found is None:
        return None
    kind, operands = found
    result = _result(kind, [operand.text for operand in operands], language)
    if result is None:
        return None
    sources = (question, *(citation.quote for _, citation in quoted))
    return Computation(kind, tuple(operands), result, sources)


def _with_kind(
    kind: ComputationKind, operands: list[Operand] | None
) -> tuple[ComputationKind, list[Operand]] | None:
    return None if operands is None else (kind, operands)


def _result(kind: ComputationKind, texts: Sequence[str], language: Language) -> str | None:
    if kind == "sum":
        return _sum(texts)
    if kind == "days":
        first, last = (_day(date) for text in texts for date in find_dates(text)[:1])
        if first is None or last is None:
            return None
        count = abs((last - first).days)
        return f"{count:,}天" if language == "zh" else f"{count:,} days"
    dates, lengths = find_dates(texts[0]), find_figures(texts[1])
    start = _day(dates[0]) if dates else None
    step = _step(lengths[0]) if lengths else None
    if start is None or step is None:
        return None
    end = start + step
    if language == "zh":
        return f"{end.year}年{end.month}月{end.day}日"
    return f"{end.day} {end:%B} {end.year}"


def _sum(texts: Sequence[str]) -> str | None:
    amounts = [_money(text) for text in texts]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(texts) or len({unit for _, unit in known}) != 1:
        return None
    total = sum((value for value, _ in known), Decimal(0))
    return f"{known[0][1]} {total:,.2f}".removesuffix(".00")


def _money(text: str) -> tuple[Decimal, str] | None:
    figures = [figure for figure in find_figures(text) if figure.unit in _CURRENCIES]
    if len({figure.key for figure in figures}) != 1 or figures[0].value is None:
        return None
    return figures[0].value, figures[0].unit


def _day(date: Date) -> datetime.date | None:
    if date.ambiguous or None in (date.year, date.month, date.day):
        return None
    assert date.year is not None and date.month is not None and date.day is not None
    return datetime.date(date.year, date.month, date.day)


def _step(figure: Figure) -> relativedelta | None:
    """The length of time of a figure; None for other units, business days and fractions."""
    if figure.value is None or figure.value != figure.value.to_integral_value():
        return None
    count = int(figure.value)
    if not 0 < count <= 100_000 or figure.unit not in ("day", "month"):
        return None
    return relativedelta(days=count) if figure.unit == "day" else relativedelta(months=count)


def _whole_dates(text: str) -> list[Date]:
    """The full dates of a text, each day once."""
    found: dict[datetime.date, Date] = {}
    for date in find_dates(text):
        day = _day(date)
        if day is not None:
            found.setdefault(day, date)
    return list(found.values())


def _lengths(text: str) -> list[Figure]:
    """The lengths of time of a text, each value once; business days are among them."""
    taken = [(date.start, date.end) for date in find_dates(text)]
    found: dict[str, Figure] = {}
    for figure in find_figures(text, taken):
        if figure.unit in ("day", "month", "business day", "trading day", "hour"):
            found.setdefault(figure.key, figure)
    return list(found.values())


def _end_operands(question: str, quoted: Sequence[tuple[int, Citation]]) -> list[Operand] | None:
    number, answer = quoted[0]
    lengths = _lengths(answer.quote)
    if len(lengths) != 1 or not _runs_forward(answer.quote, lengths[0]):
        return None
    length = Operand(lengths[0].text, number)
    asked = _whole_dates(question)
    if asked:
        return [Operand(asked[0].text, None), length] if len(asked) == 1 else None
    starts = [
        (where, date, citation.quote)
        for where, citation in quoted
        if where == number or citation.role == "definition"
        for date in _whole_dates(citation.quote)
    ]
    if len(starts) != 1:
        return None
    where, start, quote = starts[0]
    if where != number and not _begins_with(answer.quote, quote):
        return None
    # "until 31 December 2030" states the end: nothing is left to compute.
    if _OPEN_END.search(quote[max(0, start.start - 30) : start.start]):
        return None
    return [Operand(start.text, where), length]


def _begins_with(answer: str, definition: str) -> bool:
    """Whether the time in `answer` is counted from the term that `definition` defines."""
    return any(
        re.search(
            r"(?:from|after|on|upon|commenc\w+|beginning|begins?|effective|as of|starting|starts?"
            rf"|自|从|于)\s*(?:(?:on|as of|from|the)\s+)*{re.escape(found.term)}",
            answer,
            re.IGNORECASE,
        )
        for found in find_definitions(definition)
    )


def _runs_forward(quote: str, length: Figure) -> bool:
    """Whether a length of time is counted from a start on ("within 30 days after"), not back."""
    around = (
        quote[max(0, length.start - 40) : length.start] + "|" + quote[length.end : length.end + 30]
    )
    return bool(_FORWARDS.search(around)) and not _BACKWARDS.search(around)


def _day_operands(question: str, quoted: Sequence[tuple[int, Citation]]) -> list[Operand] | None:
    asked = [Operand(date.text, None) for date in _whole_dates(question)]
    listed = [
        (number, [Operand(date.text, number) for date in _whole_dates(citation.quote)])
        for number, citation in quoted
    ]
    first = listed[0][1]
    if len(asked) == 1 and len(first) == 1:
        return [*asked, *first]
    if not asked and len(first) == 2:
        return first
    if not asked and len(first) == 1:
        second = next((dates for _, dates in listed[1:] if dates), [])
        if len(second) == 1:
            return [*first, *second]
    return None


def _summed(question: str) -> list[str]:
    """The things whose sum is asked for; empty when none is."""
    match = _SUM_OF.search(question)
    if match is None:
        return []
    named = match["items"] or match["before"] or match["zh"]
    items = [_NOISE.sub("", item.strip()) for item in _ITEMS.split(named)]
    items = [item for item in items if item]
    return items if 2 <= len(items) <= _MAX_OPERANDS else []


def _sum_operands(
    items: Sequence[str], quoted: Sequence[tuple[int, Citation]]
) -> list[Operand] | None:
    """One quoted amount for each item; None when one has no quote of its own with one amount."""
    operands: list[Operand] = []
    for item in items:
        matching = [
            (number, citation.quote)
            for number, citation in quoted
            if _names_it(item, citation.quote) and _money(citation.quote) is not None
        ]
        if len(matching) != 1:
            return None
        number, quote = matching[0]
        if any(operand.marker == number for operand in operands):
            return None
        figure = next(f for f in find_figures(quote) if f.unit in _CURRENCIES)
        operands.append(Operand(figure.text, number))
    return operands


def _names_it(item: str, quote: str) -> bool:
    """Whether a quote holds every content word of an item."""
    folded, said = fold(item), fold(quote)
    if re.search("[\u4e00-\u9fff]", folded):
        return re.sub(r"\s", "", folded) in re.sub(r"\s", "", said)
    stop = word_list("english_stop")
    wanted = {w.stem for w in words(folded) if folded[w.start : w.end] not in stop}
    return bool(wanted) and wanted <= {word.stem for word in words(said)}
