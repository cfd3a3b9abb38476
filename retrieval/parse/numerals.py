"""Writes list numbers in the formats of Word and HTML. Knows no document."""

from __future__ import annotations

from retrieval.number_words import BELOW_TWENTY, TENS

_DIGITS = "零一二三四五六七八九"
_LEGAL_DIGITS = "零壹贰叁肆伍陆柒捌玖"
_TRADITIONAL_LEGAL_DIGITS = "零壹貳參肆伍陸柒捌玖"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"
_STEMS = "甲乙丙丁戊己庚辛壬癸"
_BRANCHES = "子丑寅卯辰巳午未申酉戌亥"
_MOST = 2**31 - 1
_MOST_LETTERS = 780
"""The last number that is written as repeated letters (30 times z)."""
_ROMAN = (
    (1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"),
    (50, "l"), (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"),
)  # fmt: skip


def numeral(value: int, kind: str) -> str:
    """`value` in the Word number format `kind` (ECMA-376 ST_NumberFormat), or in one of the CSS
    styles "lower-alpha" and "upper-alpha".

    A format not known here is written in decimal, as Word shows an unknown one; so is a value that
    the format has no short form for.
    """
    if value < 0 and kind not in ("none", "bullet"):
        return str(value)
    match kind:
        case "none" | "bullet":
            return ""
        case "decimalZero":
            return f"{value:02d}"
        case "upperRoman":
            return _roman(value).upper()
        case "lowerRoman":
            return _roman(value)
        case "upperLetter":
            return _letters(value).upper()
        case "lowerLetter":
            return _letters(value)
        case "upper-alpha":
            return _places(value).upper()
        case "lower-alpha":
            return _places(value)
        case "ordinal":
            return f"{value}{_ordinal_ending(value)}"
        case "cardinalText":
            return _cardinal(value).capitalize()
        case (
            "chineseCounting"
            | "chineseCountingThousand"
            | "taiwaneseCountingThousand"
            | ("japaneseCounting")
        ):
            return _chinese(value, _DIGITS, "十百千", short_ten=True)
        case (
            "ideographDigital"
            | "taiwaneseDigital"
            | "taiwaneseCounting"
            | "japaneseDigitalTenThousand"
        ):
            if kind == "taiwaneseCounting" and value < 100:
                return _chinese(value, _DIGITS, "十百千", short_ten=True)
            return "".join("〇一二三四五六七八九"[int(digit)] for digit in str(value))
        case "chineseLegalSimplified":
            return _chinese(value, _LEGAL_DIGITS, "拾佰仟", short_ten=False)
        case "ideographLegalTraditional":
            return _chinese(value, _TRADITIONAL_LEGAL_DIGITS, "拾佰仟", short_ten=False)
        case "decimalFullWidth" | "decimalFullWidth2":
            return "".join(chr(ord(digit) + 0xFEE0) for digit in str(value))
        case "decimalEnclosedCircle" | "decimalEnclosedCircleChinese":
            return _CIRCLED[value - 1] if 1 <= value <= 20 else str(value)
        case "decimalEnclosedParen":
            return f"({value})"
        case "decimalEnclosedFullstop":
            return f"{value}."
        case "ideographTraditional":
            return _STEMS[value - 1] if 1 <= value <= 10 else str(value)
        case "ideographZodiac":
            return _BRANCHES[value - 1] if 1 <= value <= 12 else str(value)
    return str(value)


def _roman(value: int) -> str:
    if not 0 < value < 4000:
        return str(value)
    text = ""
    for worth, letters in _ROMAN:
        count, value = divmod(value, worth)
        text += letters * count
    return text


def _letters(value: int) -> str:
    """a to z, then aa, bb (Word repeats the letter)."""
    if not 0 < value <= _MOST_LETTERS:
        return str(value)
    count, index = divmod(value - 1, 26)
    return chr(ord("a") + index) * (count + 1)


def _places(value: int) -> str:
    """a to z, then aa, ab (HTML counts in places of 26)."""
    if value < 1:
        return str(value)
    text = ""
    while value:
        value, index = divmod(value - 1, 26)
        text = chr(ord("a") + index) + text
    return text


def bounded(value: str | None, default: int) -> int:
    """The number that a file states, held to 32 bits; `default` for none or what is no number."""
    try:
        stated = int(value) if value is not None else default
    except ValueError:
        return default
    return min(max(stated, -_MOST), _MOST)


def _ordinal_ending(value: int) -> str:
    if value % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


def _cardinal(value: int) -> str:
    if not 0 <= value < 100:
        return str(value)
    if value < 20:
        return BELOW_TWENTY[value]
    tens, ones = divmod(value, 10)
    return TENS[tens - 2] + (f"-{BELOW_TWENTY[ones]}" if ones else "")


def _chinese(value: int, digits: str, units: str, *, short_ten: bool) -> str:
    """Positional Chinese numerals up to 9999: 一百零三; 10 to 19 without 一 when `short_ten`."""
    if not 0 < value < 10000:
        return digits[0] if value == 0 else str(value)
    text = ""
    places = str(value)
    for index, digit in enumerate(places):
        power = len(places) - index - 1
        if digit == "0":
            if not text.endswith(digits[0]) and places[index:].strip("0"):
                text += digits[0]
            continue
        text += digits[int(digit)] + (units[power - 1] if power else "")
    return text[1:] if short_ten and text.startswith(digits[1] + units[0]) else text
