"""Writes a cell of a sheet as people read it: grouped digits, percent, currency, ISO dates.

A typed number keeps all its digits, a computed one is rounded as the sheet shows it. It knows
number formats (ECMA-376 18.8.31) as far as contracts use them; fractions, exponents and other
exotic ones show the plain number. It knows no sheets.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import ROUND_HALF_UP, Decimal

_CURRENCY = re.compile(r"\[\$([^\]-]*)(?:-[^\]]*)?\]")
_CONDITION = re.compile(r"\[[^\]]*\]")
_LITERAL = re.compile(r'"([^"]*)"|\\(.)|[_*].')
_CORE = re.compile(r"[#0?][#0?,]*(?:\.[#0?]+)?\s?%?")
_SIGNIFICANT = 15


@dataclass(frozen=True, slots=True)
class NumberFormat:
    """What a format code says: `decimals` are those it always shows, `most` those at most."""

    prefix: str
    suffix: str
    percent: bool
    grouped: bool
    decimals: int
    most: int


def shown(value: object, code: str, *, computed: bool = False) -> str:
    """The text of a cell value under a number format code; "" for an empty cell."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        at = value.time().replace(microsecond=0)
        return value.date().isoformat() if at == time() else f"{value:%Y-%m-%d %H:%M}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time):
        return f"{value:%H:%M}"
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, int | float):
        return _number(value, code, computed)
    return str(value)


def number_format(code: str) -> NumberFormat | None:
    """The parts of a format code, None for one that shows the plain number (General, text)."""
    section = _CONDITION.sub("", _CURRENCY.sub(r'"\1"', code.split(";")[0]))
    # Literals may hold digits and signs of their own, so the core is looked for without them.
    literals: list[str] = []

    def keep(found: re.Match[str]) -> str:
        literals.append(found.group(1) or found.group(2) or "")
        return f"\x00{chr(0xE000 + len(literals) - 1)}"

    bare = _LITERAL.sub(keep, section)
    core = _CORE.search(bare)
    if core is None or re.search(r"[#0?]\s*(?:/|E[+-])", bare):
        return None

    def text(part: str) -> str:
        plain = re.sub("\x00(.)", lambda found: literals[ord(found.group(1)) - 0xE000], part)
        return plain.strip(" ()+-")

    # The sections of some built-in formats come without the mark between them.
    after = bare[core.end() :] if _CORE.search(bare, core.end()) is None else ""

    whole, _, fraction = core.group().rstrip(" %").partition(".")
    return NumberFormat(
        prefix=text(bare[: core.start()]),
        suffix=text(after),
        percent="%" in core.group(),
        grouped="," in whole.rstrip(","),
        decimals=fraction.count("0"),
        most=len(fraction),
    )


def _number(value: float, code: str, computed: bool) -> str:
    exact = Decimal(format(value, f".{_SIGNIFICANT}g")) if isinstance(value, float) else value
    number = Decimal(exact)
    if not number.is_finite():
        return str(value)
    rule = number_format(code)
    if rule is None:
        return _plain(number)
    if rule.percent:
        number *= 100
    # Only if there is something to round: a number filled up may be longer than a Decimal can be.
    if computed and -_exponent(number) > rule.most:
        number = number.quantize(Decimal(1).scaleb(-rule.most), rounding=ROUND_HALF_UP)
    digits = _plain(abs(number))
    whole, _, fraction = digits.partition(".")
    fraction = fraction.ljust(rule.decimals, "0")
    if rule.grouped:
        whole = f"{int(whole):,}"
    text = whole + (f".{fraction}" if fraction else "") + ("%" if rule.percent else "")
    gap = " " if rule.prefix[-1:].isalpha() else ""
    after = " " if rule.suffix[:1].isascii() and rule.suffix[:1].isalpha() else ""
    sign = "-" if number < 0 else ""
    return f"{rule.prefix}{gap}{sign}{text}{after}{rule.suffix}"


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)
    return exponent


def _plain(number: Decimal) -> str:
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text
