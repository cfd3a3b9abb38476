"""Sums, day counts and end dates, computed from figures that are quoted.

Only when the question asks for one and every operand stands in a quote (or, as a date, in the
question) without a second candidate; else nothing is computed. Calendar arithmetic is dateutil's.
Does not know holidays, so business days are never counted, nor whether a contract counts the first
or the last day, which the remark says.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from dateutil.relativedelta import relativedelta

from app.answer import notices
from app.answer.citations import without_markers
from app.answer.dates import find_dates
from app.answer.equations import find_equations
from app.answer.figures import Figure, find_figures
from app.answer.items import find_items
from app.answer.operands import (
    Operand,
    day_of,
    day_operands,
    end_operands,
    money_of,
    sum_operands,
    summed_items,
)
from app.types import Check, Citation
from retrieval.types import Language

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
_MAX_MARKER = 999


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
    if items := summed_items(question):
        found = _with_kind("sum", sum_operands(items, quoted))
    elif _DAYS.search(question):
        found = _with_kind("days", day_operands(question, quoted))
    elif _END.search(question):
        found = _with_kind("end_date", end_operands(question, quoted))
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
        first, last = (day_of(date) for text in texts for date in find_dates(text)[:1])
        if first is None or last is None:
            return None
        count = abs((last - first).days)
        return f"{count:,}天" if language == "zh" else f"{count:,} days"
    dates, lengths = find_dates(texts[0]), find_figures(texts[1])
    start = day_of(dates[0]) if dates else None
    step = _step(lengths[0]) if lengths else None
    if start is None or step is None:
        return None
    end = start + step
    if language == "zh":
        return f"{end.year}年{end.month}月{end.day}日"
    return f"{end.day} {end:%B} {end.year}"


def _sum(texts: Sequence[str]) -> str | None:
    amounts = [money_of(text) for text in texts]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(texts) or len({unit for _, unit in known}) != 1:
        return None
    total = sum((value for value, _ in known), Decimal(0))
    return f"{known[0][1]} {total:,.2f}".removesuffix(".00")


def _step(figure: Figure) -> relativedelta | None:
    """The length of time of a figure; None for other units, business days and fractions."""
    if figure.value is None or figure.value != figure.value.to_integral_value():
        return None
    count = int(figure.value)
    if not 0 < count <= 100_000 or figure.unit not in ("day", "month"):
        return None
    return relativedelta(days=count) if figure.unit == "day" else relativedelta(months=count)
