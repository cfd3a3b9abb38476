"""Seeded small lies: a sentence with one figure, date, unit, negation or clause number changed.

The places are found with plain patterns of their own, not with the finders that the answer checks
use, so that a figure the checks can't see is changed too. Knows nothing of answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

LieKind = Literal["figure", "date", "unit", "negation", "clause"]


@dataclass(frozen=True, slots=True)
class Lie:
    """`text` is the sentence with one change at `start`."""

    kind: LieKind
    text: str
    start: int


_DIGITS = re.compile(r"\d+")
_HANZI = re.compile("[一二三四五六七八九十壹贰叁肆伍陆柒捌玖]+(?=[个日天年月元万％%]|工作日|百|千)")
_WORDS = re.compile(
    r"\b(?:two|three|four|five|six|seven|eight|nine|ten|fifteen|twenty|thirty|forty|sixty|ninety)\b",
    re.IGNORECASE,
)
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_MONTH = re.compile("|".join(f"{month}(?= \\d)" for month in _MONTHS))
_ZH_DATE = re.compile(r"\d{4}年\d{1,2}月(\d{1,2})日|(?<=年)(\d{1,2})(?=月)")
_CLAUSE = re.compile(
    r"(?<=Section )\d+|(?<=Article )\d+|(?<=Clause )\d+|(?<=Sections )\d+"
    r"|(?<=第)(?:\d+|[一二三四五六七八九十百]+)(?=[条款])"
)
_UNITS = (
    ("days", "months"), ("months", "years"), ("years", "months"), ("dollars", "euros"),
    ("USD", "EUR"), ("US$", "HK$"), ("percent", "basis points"), ("hours", "days"),
    ("个月", "年"), ("工作日", "个月"), ("万元", "亿元"), ("美元", "港元"), ("％", "‰"),
    ("小时", "日"),
)  # fmt: skip
_NEGATIONS_EN = re.compile(r"\b(shall|will|may|is|are|does|do|has|must|can)( not)?\b")
_NEGATIONS_ZH = re.compile("(不得)|(不能)|(应当)|(可以)|(不承担)|(承担)|(未经)")
_ZH_OPPOSITE = {"不得": "应当", "不能": "能", "应当": "不应当", "可以": "不可以", "不承担": "承担",
                "承担": "不承担", "未经": "经"}  # fmt: skip


def lies(sentence: str, seed: int) -> tuple[Lie, ...]:
    """One lie of each kind that the sentence allows, the same ones for the same seed."""
    chance = random.Random(f"{seed}:{sentence}")
    makers: tuple[Callable[[str, random.Random], Lie | None], ...] = (
        _figure, _date, _unit, _negation, _clause,
    )  # fmt: skip
    return tuple(lie for maker in makers if (lie := maker(sentence, chance)) is not None)


def _figure(sentence: str, chance: random.Random) -> Lie | None:
    places = [m.span() for p in (_DIGITS, _HANZI, _WORDS) for m in p.finditer(sentence)]
    if not places:
        return None
    start, end = chance.choice(places)
    return Lie(
        "figure", sentence[:start] + _other(sentence[start:end], chance) + sentence[end:], start
    )


def _date(sentence: str, chance: random.Random) -> Lie | None:
    months = list(_MONTH.finditer(sentence))
    if months:
        match = chance.choice(months)
        other = chance.choice([month for month in _MONTHS if month != match[0]])
        return Lie(
            "date", sentence[: match.start()] + other + sentence[match.end() :], match.start()
        )
    days = [m.span(1 if m[1] else 2) for m in _ZH_DATE.finditer(sentence)]
    if not days:
        return None
    start, end = chance.choice(days)
    other = str(chance.choice([n for n in range(1, 12) if n != int(sentence[start:end])]))
    return Lie("date", sentence[:start] + other + sentence[end:], start)


def _unit(sentence: str, chance: random.Random) -> Lie | None:
    # Only units that follow or precede a number: "days" alone is no figure.
    found = []
    for old, new in _UNITS:
        after = rf"(?<=[\d一二三四五六七八九十百千)）])\s?{re.escape(old)}(?![a-z])"
        before = rf"{re.escape(old)}(?=\s?\d)"
        for match in re.finditer(before if old in ("USD", "US$") else after, sentence):
            found.append((match.end() - len(old), match.end(), new))
    if not found:
        return None
    start, end, new = chance.choice(found)
    return Lie("unit", sentence[:start] + new + sentence[end:], start)


def _negation(sentence: str, chance: random.Random) -> Lie | None:
    english = list(_NEGATIONS_EN.finditer(sentence))
    if english:
        match = chance.choice(english)
        other = match[1] if match[2] else f"{match[1]} not"
        return Lie(
            "negation", sentence[: match.start()] + other + sentence[match.end() :], match.start()
        )
    chinese = list(_NEGATIONS_ZH.finditer(sentence))
    if not chinese:
        return None
    match = chance.choice(chinese)
    text = sentence[: match.start()] + _ZH_OPPOSITE[match[0]] + sentence[match.end() :]
    return Lie("negation", text, match.start())


def _clause(sentence: str, chance: random.Random) -> Lie | None:
    places = list(_CLAUSE.finditer(sentence))
    if not places:
        return None
    match = chance.choice(places)
    text = sentence[: match.start()] + _other(match[0], chance) + sentence[match.end() :]
    return Lie("clause", text, match.start())


def _other(number: str, chance: random.Random) -> str:
    """Another number of the same form."""
    if number.isdigit():
        place = chance.randrange(len(number))
        low = "1" if place == 0 and len(number) > 1 else "0"
        digit = chance.choice(
            [d for d in "0123456789" if d != str(int(number[place])) and d >= low]
        )
        return number[:place] + digit + number[place + 1 :]
    if number.isascii():
        choices = [w for w in ("two", "five", "eight", "eleven", "fifty") if w != number.lower()]
        return chance.choice(choices)
    digits = (
        "壹贰叁肆伍陆柒捌玖"
        if any(c in "壹贰叁肆伍陆柒捌玖" for c in number)
        else "一二三四五六七八九"
    )
    places = [index for index, character in enumerate(number) if character in digits]
    if not places:
        return "十二" if number != "十二" else "十三"
    place = chance.choice(places)
    return (
        number[:place]
        + chance.choice([d for d in digits if d != number[place]])
        + number[place + 1 :]
    )
