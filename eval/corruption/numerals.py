"""Writes whole numbers in words: Chinese numerals (plain and formal) and English.

Shares no code with the readers of `retrieval.numerals`: the two are tested against each other.
"""

from __future__ import annotations

_PLAIN = "零一二三四五六七八九"
_FORMAL = "零壹贰叁肆伍陆柒捌玖"
_PLAIN_UNITS = ("", "十", "百", "千")
_FORMAL_UNITS = ("", "拾", "佰", "仟")
_GROUPS = ("", "万", "亿", "万亿")

_SMALL = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def hanzi(number: int, *, formal: bool = False) -> str:
    """三十五, 一百零二, 十二; with `formal` 叁拾伍. Below 10**16, not negative."""
    digits = _FORMAL if formal else _PLAIN
    if number == 0:
        return digits[0]
    groups: list[int] = []
    while number:
        number, group = divmod(number, 10_000)
        groups.append(group)
    text, gap = "", False
    for index in range(len(groups) - 1, -1, -1):
        group = groups[index]
        if not group:
            gap = bool(text)
            continue
        if text and (gap or group < 1000):
            text += digits[0]
        text += _group(group, formal=formal) + _GROUPS[index]
        gap = False
    if not formal and text.startswith("一十"):
        text = text[1:]
    return text


def _group(group: int, *, formal: bool) -> str:
    digits, units = (_FORMAL, _FORMAL_UNITS) if formal else (_PLAIN, _PLAIN_UNITS)
    text, gap = "", False
    for place in range(3, -1, -1):
        digit = group // 10**place % 10
        if not digit:
            gap = bool(text)
            continue
        text += (digits[0] if gap else "") + digits[digit] + units[place]
        gap = False
    return text


def hanzi_digits(number: int) -> str:
    """二〇二四: digit by digit, as years are written."""
    return "".join("〇一二三四五六七八九"[int(digit)] for digit in str(number))


def english(number: int) -> str:
    """thirty-five, one hundred two, one million five hundred thousand. Below 10**12."""
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if number >= size:
            head, rest = divmod(number, size)
            return f"{english(head)} {name}" + (f" {english(rest)}" if rest else "")
    if number >= 100:
        head, rest = divmod(number, 100)
        return f"{_SMALL[head]} hundred" + (f" {english(rest)}" if rest else "")
    if number >= 20:
        return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")
    return _SMALL[number]
