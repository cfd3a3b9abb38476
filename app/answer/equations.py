"""Computed figures in a text that shows its operands: "USD 100 + USD 250 = USD 350".

Finds sums, differences, products, shares of an amount, day counts (from … to … is … days) and end
dates (… plus 30 days is …), and computes each anew. Calendar arithmetic is dateutil's. A result
whose operands are not shown is no equation, and business days are not counted (holidays are not
known), so neither can be found right. Does not know where the operands must stand: see `checks`.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from dateutil.relativedelta import relativedelta

from app.answer.dates import Date
from app.answer.figures import Figure
from app.answer.items import Items


@dataclass(frozen=True, slots=True)
class Equation:
    """A result at `text[start:end]` and the operands that it is said to follow from; `right` when
    it does; `exact` when an equals sign says so, in words or as a sign."""

    start: int
    end: int
    operands: tuple[Figure | Date, ...]
    right: bool
    exact: bool


_EQUALS = re.compile(
    r"\s*(?:=|,?\s*(?:which\s+)?(?:equals?|is|are|makes?|gives?|totals?|comes? to|amounts? to|for a"
    r" total of|in total)|[，,]?\s*(?:等于|合计|共计|总计|一共|共|计|得|即|是|为)(?:为|是)?)\s*",
    re.IGNORECASE,
)
_OPERATORS = (
    ("+", re.compile(r"\s*(?:\+|plus|加上?)\s*", re.IGNORECASE)),
    ("-", re.compile(r"\s*(?:\s[-−–]\s|minus|less|减去?)\s*", re.IGNORECASE)),
    ("×", re.compile(r"\s*(?:×|\*|x|times|multiplied by|乘以?)\s*", re.IGNORECASE)),
    ("of", re.compile(r"\s*(?:of|的)\s*", re.IGNORECASE)),
    ("→", re.compile(r"\s*(?:→|to|until|至|到)\s*", re.IGNORECASE)),
)
# "USD 100 and USD 250 total USD 350": a bare "and" adds only where the equals sign says so.
_AND = re.compile(r"\s*(?:and|和|与|及|、)\s*", re.IGNORECASE)
_EXACT = re.compile(r"=|\bequals?\b|等于", re.IGNORECASE)
_ADDS_UP = re.compile(r"total|合计|共计|总计|一共", re.IGNORECASE)


def find_equations(text: str, items: Items) -> tuple[Equation, ...]:
    """Every result in `text` that is shown with its operands, in order; `items` are the text's."""
    both: list[Figure | Date] = [*items.dates, *items.figures]
    values = sorted(both, key=lambda item: item.start)
    found: list[Equation] = []
    for index in range(2, len(values)):
        gap = _gap(text, values[index - 1], values[index])
        if not _EQUALS.fullmatch(gap):
            continue
        operands, operators = _chain(text, values, index - 1, adds_up=bool(_ADDS_UP.search(gap)))
        if operators:
            right = _follows(operands, operators, values[index])
            result = values[index]
            exact = bool(_EXACT.search(gap))
            found.append(Equation(result.start, result.end, tuple(operands), right, exact))
    return tuple(found)


def _gap(text: str, one: Figure | Date, other: Figure | Date) -> str:
    return text[one.end : other.start]


def _chain(
    text: str, values: list[Figure | Date], last: int, *, adds_up: bool
) -> tuple[list[Figure | Date], list[str]]:
    """The operands that end at `values[last]` and the operators between them."""
    operands, operators = [values[last]], list[str]()
    for index in range(last, 0, -1):
        gap = _gap(text, values[index - 1], values[index])
        operator = next((sign for sign, pattern in _OPERATORS if pattern.fullmatch(gap)), "")
        if not operator and adds_up and _AND.fullmatch(gap):
            operator = "+"
        if not operator:
            break
        operands.insert(0, values[index - 1])
        operators.insert(0, operator)
    return operands, operators


def _follows(operands: list[Figure | Date], operators: list[str], result: Figure | Date) -> bool:
    """Whether the result, with its unit, is what the operands make."""
    if isinstance(operands[0], Date):
        return len(operands) == 2 and _calendar(operands[0], operators[0], operands[1], result)
    figures = [item for item in operands if isinstance(item, Figure)]
    if len(figures) < len(operands) or not isinstance(result, Figure):
        return False
    value, unit = figures[0].value, figures[0].unit
    for operator, figure in zip(operators, figures[1:], strict=True):
        if value is None or figure.value is None:
            return False
        made = _made(value, unit, operator, figure.value, figure.unit)
        if made is None:
            return False
        value, unit = made
    if value is None or result.value is None or result.number is None or unit != result.unit:
        return False
    # A product may be rounded to the decimals that are shown: 13.38 × 12.43 = 166.31.
    places = result.number.as_tuple().exponent
    rounds = not {"+", "-"} & set(operators) and isinstance(places, int) and places < 0
    if rounds:
        value = value.quantize(Decimal(1).scaleb(int(places)), ROUND_HALF_UP)
    return value == result.value


def _made(
    one: Decimal, unit: str, operator: str, other: Decimal, their_unit: str
) -> tuple[Decimal, str] | None:
    """Value and unit of two figures joined; None where their units don't go together."""
    if operator in ("+", "-"):
        if unit != their_unit:
            return None
        return (one + other if operator == "+" else one - other), unit
    if operator == "of":
        return (one * other / 100, their_unit) if unit == "%" and their_unit != "%" else None
    if operator != "×":
        return None
    if "%" in (unit, their_unit):
        return one * other / 100, their_unit if unit == "%" else unit
    if unit and their_unit and their_unit not in _COUNTED:
        # "USD 5 × 3 months" is money; two measures make a unit that no figure has.
        return None
    return one * other, unit or their_unit


_COUNTED = frozenset({"day", "month", "hour", "times", "股", "人", "份", "unit", "m²", "台", "套"})


def _calendar(one: Date, operator: str, other: Figure | Date, result: Figure | Date) -> bool:
    start = _day(one)
    if start is None:
        return False
    if isinstance(other, Date):
        end = _day(other)
        if operator not in ("→", "-") or end is None or not isinstance(result, Figure):
            return False
        return result.unit == "day" and result.value == abs((end - start).days)
    if other.value is None or other.value != int(other.value) or not isinstance(result, Date):
        return False
    step = int(other.value)
    if operator not in ("+", "-") or other.unit not in ("day", "month"):
        return False
    step = -step if operator == "-" else step
    moved = start + (
        relativedelta(days=step) if other.unit == "day" else relativedelta(months=step)
    )
    return _day(result) == moved


def _day(date: Date) -> datetime.date | None:
    """The calendar day of a whole date."""
    if date.ambiguous or date.year is None or date.month is None or date.day is None:
        return None
    return datetime.date(date.year, date.month, date.day)
