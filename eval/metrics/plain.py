"""A plain reading of numbers that shares nothing with the product's readers but a list of words.

Digit groups, Chinese numerals (cn2an), English number words and months, each with every value it
may stand for ("1.5 million" is 1.5 or 1,500,000). It knows no units and no percent: it sees a
number that was made up or misread, not one whose unit was changed.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

from cn2an import cn2an

from retrieval.number_words import BELOW_TWENTY, TENS

_GROUP = re.compile(
    r"(?P<minus>(?<![^\s(（:：$€£¥])[-−])?[$€£¥]?(?P<digits>[0-9]+(?:[.,][0-9]+)*)"
    r"(?:\s?(?P<scale>thousand|million|billion|trillion|mm|bn|[mk](?![a-z])|百万|千万|百亿|千亿|万亿|[百千万亿]))?",
    re.IGNORECASE,
)
_SCALES = {
    "thousand": 3, "k": 3, "million": 6, "m": 6, "mm": 6, "billion": 9, "bn": 9, "trillion": 12,
    "百": 2, "千": 3, "万": 4, "百万": 6, "千万": 7, "亿": 8, "百亿": 10, "千亿": 11, "万亿": 12,
}  # fmt: skip
_DIGIT_SIGNS = "零〇一二三四五六七八九两壹贰叁肆伍陆柒捌玖"
_NUMERAL = re.compile(
    rf"[{_DIGIT_SIGNS}十百千万亿拾佰仟]{{2,}}"
    rf"|(?<=分之)[{_DIGIT_SIGNS}十]"
    rf"|[{_DIGIT_SIGNS}十拾](?=个|日|天|年|月|元|圆|倍|份|人|次|名|周|期|台|套|吨|条|款|项|章|节)"
)
_WORDS = {word: value for value, word in enumerate(BELOW_TWENTY)} | {
    word: 10 * value for value, word in enumerate(TENS, start=2)
}
_WORD = "|".join(sorted([*_WORDS, "hundred"], key=len, reverse=True))
_SPELLED = re.compile(
    rf"\b(?:{_WORD})(?:(?:[\s-]+|\s+and\s+)(?:{_WORD}|thousand|million))*\b", re.IGNORECASE
)
_MONTHS = (
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
)  # fmt: skip
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONTH_NAME = re.compile(
    rf"\b{_MONTH}\b(?=\.?,?\s+(?:of\s+)?[0-9])|(?<=[0-9]\s){_MONTH}\b"
    rf"|(?<=[0-9](?:st|nd|rd|th)\s){_MONTH}\b|(?<=day\sof\s){_MONTH}\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number at `text[start:end]` and the values that it may stand for."""

    start: int
    end: int
    readings: frozenset[Decimal]


def numbers(text: str) -> tuple[Number, ...]:
    """Every number of `text` that this reading knows."""
    plain = "".join(_narrow(character) for character in text)
    found = [number for match in _GROUP.finditer(plain) for number in _digit_group(match)]
    for match in _NUMERAL.finditer(plain):
        value = _chinese(match[0])
        if value is not None:
            found.append(Number(*match.span(), frozenset((value,))))
    for match in _SPELLED.finditer(plain):
        # "one" alone is a pronoun more often than a number.
        if match[0].lower() != "one":
            found.append(Number(*match.span(), frozenset((_spelled(match[0]),))))
    for match in _MONTH_NAME.finditer(plain):
        month = 1 + _MONTHS.index(match[0][:3].lower())
        found.append(Number(*match.span(), frozenset((Decimal(month),))))
    return tuple(sorted(found, key=lambda number: number.start))


def values(text: str) -> frozenset[Decimal]:
    """Every value that a number of `text` may stand for."""
    return frozenset().union(*(number.readings for number in numbers(text)))


@lru_cache(maxsize=1)
def document_values(text: str) -> frozenset[Decimal]:
    """As `values`, kept for the questions on one document."""
    return values(text)


def _narrow(character: str) -> str:
    wide = unicodedata.normalize("NFKC", character)
    return wide if len(wide) == 1 else character


def _digit_group(match: re.Match[str]) -> list[Number]:
    digits = match["digits"]
    if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?", digits):
        value = Decimal(digits.replace(",", ""))
        if match["minus"]:
            value = -value
        readings = {value}
        if match["scale"]:
            readings.add(value.scaleb(_SCALES[match["scale"].lower()]))
        return [Number(*match.span(), frozenset(readings))]
    # Dates, clause numbers, lists without a space and European decimals: each run of digits.
    start = match.start("digits")
    return [
        Number(start + run.start(), start + run.end(), frozenset((Decimal(run[0]),)))
        for run in re.finditer("[0-9]+", digits)
    ]


def _chinese(text: str) -> Decimal | None:
    if not any(character in _DIGIT_SIGNS or character in "十拾" for character in text):
        return None
    try:
        return Decimal(str(cn2an(text, "smart")))
    except ValueError:
        return None


def _spelled(text: str) -> Decimal:
    total = current = 0
    for word in re.split(r"[\s-]+", text.lower()):
        if word in _WORDS:
            current += _WORDS[word]
        elif word == "hundred":
            current = (current or 1) * 100
        elif word in ("thousand", "million"):
            total += (current or 1) * (1_000 if word == "thousand" else 1_000_000)
            current = 0
    return Decimal(total + current)
