"""Changes exactly one thing: a value by its kind, or a negation by its words.

`another` gives a place with its value changed, `forms` every way of writing a place, `same` the
value unchanged in a form other than the written one.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal

from eval.corruption.places import UNITS_EN, UNITS_ZH
from eval.corruption.types import Place
from eval.corruption.writing import (
    CURRENCIES,
    PERIODS,
    grouped,
    plain,
    wide,
    write_clause,
    write_date,
    write_money,
    write_period,
    write_share,
)
from retrieval.types import Language

_SAME_UNIT = ({"人", "名"}, {"公斤", "千克"})


def forms(place: Place, language: Language, written: str) -> list[str]:
    """Every way of writing the place's value; `written` (its words) decides what stays."""
    value = place.value
    if isinstance(value, date):
        return write_date(value, language)
    if isinstance(value, str):
        return _clause_forms(value, language, written)
    if place.kind == "currency":
        return write_money(value, place.unit, language)
    if place.kind == "percentage":
        return write_share(value, language)
    if place.unit in PERIODS:
        return write_period(value, place.unit, language)
    numbers = [plain(value)]
    if not 1900 <= value <= 2100:
        # A year is never written with a comma.
        numbers.append(grouped(value))
    if language == "zh":
        numbers.append(wide(plain(value)))
        return [number + place.unit for number in numbers]
    return [f"{number} {place.unit}".strip() for number in numbers]


def _clause_forms(label: str, language: Language, written: str) -> list[str]:
    every = write_clause(label, language)
    # A section of an agreement is no article of it: only signs and abbreviations are exchanged.
    if language == "en" and not written.startswith(("Section", "§")):
        word = re.match(r"[A-Za-z]*\.?\s*", written)
        return [f"{word[0] if word else ''}{label}"]
    return [form for form in every if not form.startswith(("Clause", "Article", "paragraph"))]


def same(place: Place, language: Language, written: str, chance: random.Random) -> str | None:
    """The value in another form; None when it has only the written one."""
    others = [form for form in forms(place, language, written) if form != written]
    return chance.choice(others) if others else None


def another(place: Place, language: Language, chance: random.Random) -> Place:
    """The place with one thing changed: its value, or its unit where that is its kind."""
    value = place.value
    if isinstance(value, date):
        return replace(place, value=_other_date(value, chance))
    if isinstance(value, str):
        return replace(place, value=_other_label(value, chance))
    if place.kind == "currency":
        others = ("USD", "EUR", "HKD", "CNY", "JPY") if language == "zh" else CURRENCIES
        return replace(place, unit=chance.choice([c for c in others if c != place.unit]))
    if place.kind == "unit" or (place.kind == "duration" and chance.random() < 0.3):
        return replace(place, unit=_other_unit(place.unit, language, chance))
    if place.kind == "percentage" and chance.random() < 0.3:
        return replace(place, value=value.scaleb(chance.choice((-1, -2, 1))))
    return replace(place, value=other_number(value, chance))


def other_number(value: Decimal, chance: random.Random) -> Decimal:
    """One digit changed, the point moved, a digit added, or one more or less."""
    text = plain(value)
    way = chance.choice(("digit", "digit", "digit", "scale", "longer", "near"))
    if way == "near" and value > 1:
        return value + chance.choice((-1, 1))
    if way == "scale" and value == int(value) and value:
        return value * chance.choice((10, 100, 1000))
    if way == "longer":
        return Decimal(chance.choice("123456789") + text)
    places = [index for index, character in enumerate(text) if character.isdigit()]
    at = chance.choice(places)
    low = "1" if at == 0 else "0"
    digit = chance.choice([d for d in "0123456789" if d >= low and d != text[at]])
    return Decimal(text[:at] + digit + text[at + 1 :])


def _other_date(value: date, chance: random.Random) -> date:
    way = chance.choice(("year", "month", "day"))
    if way == "year":
        return _safe(value.year + chance.choice((-10, -1, 1, 2)), value.month, value.day)
    if way == "month":
        month = chance.choice([m for m in range(1, 13) if m != value.month])
        return _safe(value.year, month, value.day)
    return value + timedelta(days=chance.choice((-9, -2, -1, 1, 3, 10)))


def _safe(year: int, month: int, day: int) -> date:
    return date(year, month, min(day, 28))


def _other_label(label: str, chance: random.Random) -> str:
    """12.3(b) as 12.3(c), 12.4(b) or 13.3(b)."""
    parts = list(re.finditer(r"\d+|[a-z]+", label))
    part = chance.choice(parts)
    if part[0].isdigit():
        new = str(max(1, int(part[0]) + chance.choice((-1, 1, 2, 10))))
        if new == part[0]:
            new = str(int(part[0]) + 3)
    elif re.fullmatch("[ivx]+", part[0]):
        new = chance.choice([r for r in ("i", "ii", "iii", "iv", "v", "vi") if r != part[0]])
    else:
        new = chance.choice([c for c in "abcdefgh" if c != part[0]])
    return label[: part.start()] + new + label[part.end() :]


def _other_unit(unit: str, language: Language, chance: random.Random) -> str:
    if unit in PERIODS:
        return chance.choice([other for other in PERIODS if other != unit])
    alike = next((group for group in _SAME_UNIT if unit in group), {unit})
    units = UNITS_ZH if language == "zh" else UNITS_EN
    return chance.choice([other for other in units if other not in alike])


_NEGATIONS_EN = (
    (r"\b(shall|will|may|must|does|do|is|are|can|has been|have been) not\b", r"\1"),
    (r"\b(shall|will|must)(?! not| be the| have the right)(?= [a-z])", r"\1 not"),
    (r"\bmay(?! not)(?= (?:be|terminate|assign|use|disclose|sell|elect|require|not)\b)", "may not"),
    (r"\bwithout (?=the prior|prior|the written|the consent|limitation)", "with "),
    (r"\bnot (?=exclusive|transferable|less|more|limited|be |to )", ""),
    (r"\bnon-(?=exclusive|transferable|assignable)", ""),
    (r"\bno (?=right|obligation|liability|event|party)", "a "),
    (r"\bunless\b", "if"),
    (r"\bexcept\b", "including"),
    (r"\bexcluding\b", "including"),
    (r"\bat least\b", "at most"),
    (r"(?<!non-)\bexclusive\b", "non-exclusive"),
)  # fmt: skip
_NEGATIONS_ZH = (
    ("不得", "可以"), ("不得", "应当"), ("不应当?", "应当"), ("不承担", "承担"), ("不予", "予以"),
    ("不能", "能"), ("不支付", "支付"), ("不履行", "履行"), ("不享有", "享有"), ("不需要?", "需要"),
    ("未经", "经"), ("未按", "已按"), ("未(?=[支办签取履交提归偿])", "已"), ("没有", "有"),
    ("(?<!不)应当", "不应当"), ("(?<!不)可以", "不可以"), ("(?<!不)承担", "不承担"),
    ("无权", "有权"), ("有权", "无权"), ("无需", "需"), ("(?<![不要])支付", "不支付"),
    ("不超过", "超过"), ("不少于", "少于"), ("不低于", "低于"), ("是(?=[由因为被])", "不是"),
    ("除外", "包括在内"),
)  # fmt: skip


def negated(text: str, language: Language, chance: random.Random) -> tuple[str, str, str] | None:
    """(text with one negation put in or taken out, words before, words after)."""
    pairs = _NEGATIONS_EN if language == "en" else _NEGATIONS_ZH
    found = [(match, new) for old, new in pairs for match in re.finditer(old, text)]
    if not found:
        return None
    match, new = chance.choice(found)
    after = match.expand(new)
    return text[: match.start()] + after + text[match.end() :], match[0], after
