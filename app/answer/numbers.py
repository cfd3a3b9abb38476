"""Reads numbers as exact Decimals: digits, Chinese numerals, English words, fractions, ordinals.

Whole Chinese numerals are read by cn2an (through retrieval); decimals, mixed forms (1亿2千万),
shares (万分之五, 三成) and vague numbers (三十几万, which have no value) are read here, because
cn2an refuses or misreads them. English words follow the grammar of numbers, so that "three and
one-half" is 3.5 and not 4. Knows no units, signs or currencies: see `figures`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal

from retrieval.number_words import BELOW_TWENTY, TENS
from retrieval.numerals import NUMERAL_CLASS, chinese_number

ZH = f"[{NUMERAL_CLASS}廿卅]"
_ONES = {word: value for value, word in enumerate(BELOW_TWENTY) if value < 10}
_TEENS = {word: value for value, word in enumerate(BELOW_TWENTY) if value >= 10}
_TENS = {word: 10 * value for value, word in enumerate(TENS, start=2)}
_SCALES = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_WORD = "|".join([*_TEENS, *_TENS, *_ONES, "hundred", *_SCALES])
_LETTERS = {"k": 3, "m": 6, "mm": 6, "bn": 9} | _SCALES
_ZH_SCALES = {"百": 2, "千": 3, "万": 4, "亿": 8}
_PARTS = {"half": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "tenth": 10}
_VULGAR = {"½": "0.5", "¼": "0.25", "¾": "0.75", "⅓": "1/3", "⅔": "2/3", "⅛": "0.125"}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
         "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth"),
        start=1,
    )
} | {"twentieth": 20, "thirtieth": 30}  # fmt: skip
# "天数九百" is a count of days; "数百" is some hundreds.
_NOUN_BEFORE = "(?<![总人天次户件份额倍基系参分级页字期月年台层整个])"
# "One-quarter" and "one quarter of the price" are shares; "one quarter" alone is three months.
CORE = re.compile(
    rf"""
    (?P<share>(?P<den>{ZH}{{1,4}}|\d+)分之(?P<num>{ZH}+(?:点{ZH}+)?|\d+(?:\.\d+)?))
  | (?P<simple>\b(?:one|two|three|four|an?)[\s-]
        (?:half|thirds?|fourths?|fifths?|tenths?)\b
        |\b(?:one|two|three|four|an?)(?:-quarters?\b|\squarters?(?=\s+of\b|\s*\(\s*[\d.]+\s*%))
        |一半)
  | (?P<tenths>{ZH}|[1-9])成(?P<tenthhalf>半)?(?![立为员本果交年功人份熟效都])
  | (?P<vague>(?:几|{_NOUN_BEFORE}数)[十百千万亿]+
        |{ZH}+[几余多]{ZH}*(?=[个天日年月元倍份人次名吨米万亿]|美元|周))
  | (?P<euro>(?<![\d.,])(?:\d{{1,3}}(?:\.\d{{3}}){{2,}}(?:,\d{{1,2}})?|\d{{1,3}}\.\d{{3}},\d{{1,2}}
        |\d{{1,3}},\d{{1,2}})(?![\d,]|\.\d))
  | (?P<ordinal>(?<![\w.,])\d{{1,3}}(?:st|nd|rd|th)|\b(?:{"|".join(_ORDINALS)}))
        (?:\s*\((?P<again>\d{{1,3}})(?:st|nd|rd|th)\))?
        (?=[\s-]+(?:(?:contract|business|calendar|full|successive|consecutive)\s+)?
        (?P<ounit>year|month|week|day|quarter|anniversary))
  | (?P<mixed>\d+(?:\.\d+)?[万亿](?:\d+(?:\.\d+)?[百千]?[百千万])+)
  | (?P<digits>(?<![\d.])(?:\d{{1,3}}(?:,\d{{3}})+|\d{{1,2}}(?:,\d{{2}})+,\d{{3}}|\d+)(?:\.\d+)?)
    (?:(?P<vulgar>[{"".join(_VULGAR)}])|[^\S\n](?P<top>[1-9])/(?P<bottom>[2-9])(?![\d/]))?
    (?:[^\S\n]?(?P<many>thousand|million|billion|trillion|mm|bn|[mk](?![a-z²³]))\b
      |(?P<scale>[百千万亿]{{1,2}}))?
  | (?P<hanzi>{ZH}+(?:点{ZH}+)?|半(?=[年月日天]|个月))
  | (?P<words>\b(?:{_WORD}|an?\s+(?:hundred|thousand|million|billion))
        (?:(?:,?\s+and\s+|,\s+|[\s-]+)(?:{_WORD})\b)*)\b
    """,
    re.VERBOSE | re.IGNORECASE,
)
_FRACTION = re.compile(
    r"\s+and\s+(?:(?P<top>one|an?|two|three|four)[\s-]+(?P<part>half|third|quarter|fourth|fifth)s?"
    r"|(?P<digits>[1-9])/(?P<bottom>[2-9]))\b"
    r"|\s+point\s+(?P<point>(?:(?:zero|one|two|three|four|five|six|seven|eight|nine)\b\s*)+)",
    re.IGNORECASE,
)
_SIMPLE = re.compile(r"(?P<top>\w+)[\s-](?P<part>[a-z]+?)s?$", re.IGNORECASE)
_HAS_DIGIT = re.compile("[零〇○一二三四五六七八九两壹贰叁肆伍陆柒捌玖貳參陸廿卅十拾]")
_TOP = {"one": 1, "a": 1, "an": 1, "two": 2, "three": 3, "four": 4}


@dataclass(frozen=True, slots=True)
class Read:
    """The value of a number and where its words end."""

    value: Decimal
    end: int


def read(folded: str, match: re.Match[str]) -> Read | None:
    """The number that CORE found in `folded`; None when its words are no number after all."""
    if match["words"]:
        return _words(folded, match.start("words"), match.end("words"))
    value = _value(match)
    return None if value is None else Read(value, match.end())


def _value(match: re.Match[str]) -> Decimal | None:
    if match["share"]:
        num, den = zh_number(match["num"]), zh_number(match["den"])
        return None if num is None or not den else (100 * num / den).normalize()
    if match["tenths"]:
        tenths = zh_number(match["tenths"])
        return None if tenths is None else 10 * tenths + (5 if match["tenthhalf"] else 0)
    if match["simple"]:
        return _simple(match["simple"].lower())
    if match["euro"]:
        return Decimal(match["euro"].replace(".", "").replace(",", "."))
    if match["ordinal"]:
        word = match["ordinal"].lower()
        value = Decimal(_ORDINALS[word] if word in _ORDINALS else re.sub(r"\D", "", word))
        return value if match["again"] in (None, str(value)) else None
    if match["mixed"]:
        parts = re.findall(r"([\d.]+)([百千万亿]*)", match["mixed"])
        return sum((_scaled(Decimal(n), scale) for n, scale in parts), Decimal(0))
    if match["digits"]:
        value = Decimal(match["digits"].replace(",", "")) + _part(match)
        if match["many"]:
            value = value.scaleb(_LETTERS[match["many"].lower()])
        return _scaled(value, match["scale"] or "")
    return zh_number(match["hanzi"])


def _part(match: re.Match[str]) -> Decimal:
    """The fraction after a whole number: 3½, 3 1/2."""
    if match["top"]:
        return Decimal(match["top"]) / Decimal(match["bottom"])
    top, _, bottom = _VULGAR.get(match["vulgar"] or "", "0").partition("/")
    return Decimal(top) / Decimal(bottom or 1)


def _scaled(value: Decimal, scales: str) -> Decimal:
    for scale in scales:
        value = value.scaleb(_ZH_SCALES[scale])
    return value


def _simple(words: str) -> Decimal | None:
    """A fraction of the whole, in percent; "a third" and "a second" may be no fractions."""
    if words == "一半":
        return Decimal(50)
    match = _SIMPLE.match(words)
    if match is None or (match["top"] in ("a", "an") and match["part"] != "half"):
        return None
    return (Decimal(100 * _TOP[match["top"]]) / _PARTS[match["part"]]).normalize()


def zh_number(text: str) -> Decimal | None:
    """The value of digits or a Chinese numeral, with decimals after 点; None when it has none."""
    if text[0].isdigit():
        return Decimal(text)
    if text == "半":
        return Decimal("0.5")
    if text in ("百", "千", "万"):
        return Decimal(10 ** _ZH_SCALES[text])
    whole, _, decimals = text.partition("点")
    if not _HAS_DIGIT.search(whole):
        return None
    value = chinese_number(whole.replace("廿", "二十").replace("卅", "三十"))
    if value is None:
        return None
    if decimals:
        digits = [chinese_number(character) for character in decimals]
        if any(digit is None or digit > 9 for digit in digits):
            return None
        return Decimal(f"{int(value)}.{''.join(str(int(digit or 0)) for digit in digits)}")
    return Decimal(repr(value)).normalize()


def _words(folded: str, start: int, end: int) -> Read | None:
    """The longest beginning of English number words that is one number, with its fraction."""
    total, current, last = Decimal(0), 0, ""
    done = start
    for match in re.finditer(r"[a-z]+", folded[start:end].lower()):
        word = match[0]
        kind = _kind(word)
        if kind in ("and", "a"):
            if kind == "and" and last not in ("hundred", "scale"):
                break
            continue
        if not _may_follow(kind, last):
            break
        if kind == "hundred":
            current = max(current, 1) * 100
        elif kind == "scale":
            total += Decimal(max(current, 1)).scaleb(_SCALES[word])
            current = 0
        else:
            current += (_ONES | _TEENS | _TENS)[word]
        last, done = kind, start + match.end()
    if not last:
        return None
    value = total + current
    after = _FRACTION.match(folded, done)
    if after is None:
        return Read(value, done)
    if after["point"]:
        digits = "".join(str(BELOW_TWENTY.index(word)) for word in after["point"].lower().split())
        return Read(value + Decimal(f"0.{digits}"), done + len(after[0].rstrip()))
    if after["part"]:
        part = Decimal(_TOP[after["top"].lower()]) / _PARTS[after["part"].lower()]
    else:
        part = Decimal(after["digits"]) / Decimal(after["bottom"])
    return Read(value + part, after.end())


def _kind(word: str) -> str:
    if word in _ONES:
        return "ones"
    if word in _TEENS:
        return "teens"
    if word in _TENS:
        return "tens"
    return {"and": "and", "a": "a", "an": "a", "hundred": "hundred"}.get(word, "scale")


_AFTER: dict[str, tuple[str, ...]] = {
    "": ("ones", "teens", "tens", "hundred", "scale"),
    "ones": ("hundred", "scale"),
    "teens": ("hundred", "scale"),
    "tens": ("ones", "hundred", "scale"),
    "hundred": ("ones", "teens", "tens", "scale"),
    "scale": ("ones", "teens", "tens"),
}


def _may_follow(kind: str, last: str) -> bool:
    return kind in _AFTER[last]
