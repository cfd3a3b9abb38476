"""Finds values in gold texts by plain patterns of its own.

It need not find everything: a value that it misses is not altered. It must not misread, because a
"rewritten" true answer would then be a lie; so it takes the usual forms only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from decimal import Decimal

from eval.corruption.numerals import english
from eval.corruption.types import Kind, Place
from retrieval.types import Language

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_MONTH = "|".join(_MONTHS)
_NUMBER = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
_SCALE = {"million": 6, "billion": 9, "万": 4, "亿": 8}
_CURRENCY = {
    "US$": "USD", "$": "USD", "USD": "USD", "HK$": "HKD", "€": "EUR", "EUR": "EUR", "£": "GBP",
    "GBP": "GBP", "RMB": "CNY", "元": "CNY", "美元": "USD", "港元": "HKD", "欧元": "EUR",
}  # fmt: skip
_PERIOD_ZH = {
    "个工作日": "business day", "工作日": "business day", "日": "day", "天": "day",
    "个月": "month", "年": "year", "周": "week", "小时": "hour", "个小时": "hour",
}  # fmt: skip
_HANZI = {c: i for i, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
UNITS_EN = (
    "square feet", "shares", "miles", "units", "feet", "pounds", "tons", "employees",
    "pages", "times", "copies", "kilometers", "square meters",
)  # fmt: skip
UNITS_ZH = (
    "平方米", "公里", "人", "吨", "亩", "倍", "台", "套", "公斤", "千克", "次", "份", "克", "名",
    "辆", "件", "米", "毫升", "周岁",
)  # fmt: skip

_PERIODS = "business day|calendar day|day|month|year|week|hour"
_SPELLED = "[a-z]+(?:[ -][a-z]+)*?"
_FIGURE_ENDS = r"(?![\w%)/:-]|[.,]\d|\s?(?:\(|%|percent|per cent|million|billion|thousand))"
_MONEY_ENDS = r"(?![\w%]|[.,]\d|\s?(?:million|billion|thousand|[MKmk]\b|\())"
_CLAUSE_ENDS = r"(?![\w(%]|[.,][\da-z]|\s?(?:\(|,|and|or|to|through)\s?[\d(])"
_EN: tuple[tuple[Kind, str], ...] = (
    ("date", rf"\b(?P<m>{_MONTH}) (?P<d>\d{{1,2}}), (?P<y>(?:19|20)\d\d)\b"),
    ("date", rf"(?<!\d)(?P<d>\d{{1,2}}) (?P<m>{_MONTH}) (?P<y>(?:19|20)\d\d)\b"),
    ("clause", r"(?<![\w§])(?:Section|Clause|Article|Paragraph|§)\s?"
     rf"(?P<label>\d+(?:\.\d+)*(?:\([a-z0-9]{{1,4}}\))*){_CLAUSE_ENDS}"),
    ("currency", rf"(?<![\w$(])(?P<unit>US\$|HK\$|[$€£]|USD|EUR|GBP|RMB)\s?(?P<n>{_NUMBER})"
     rf"(?:\s(?P<scale>million|billion)\b)?{_MONEY_ENDS}"),
    ("percentage", rf"(?<![\d.,$(-])(?P<n>{_NUMBER})\s?(?:%|percent\b|per cent\b)(?!\s?\()"),
    ("percentage", rf"\b(?P<words>{_SPELLED}) percent \((?P<n>{_NUMBER})%\)"),
    ("duration", rf"\b(?P<words>{_SPELLED}) \((?P<n>\d{{1,3}})\) (?P<unit>{_PERIODS})s?\b"),
    ("duration", rf"(?<![\d.,($-])(?P<n>\d{{1,3}}) (?P<unit>{_PERIODS})s?\b"),
    ("unit", rf"(?<![\d.,($-])(?P<n>{_NUMBER}) (?P<unit>{'|'.join(UNITS_EN)})\b"),
    ("figure", rf"(?<![\w.,$€£§:/(#*&’'-])(?P<n>{_NUMBER}){_FIGURE_ENDS}"),
)  # fmt: skip
_NO_NUMBER_BEFORE = r"(?<![\d.,．月年第个一二三四五六七八九十百千])"
_ZH_PERIODS = r"个工作日|工作日|个小时|小时|个月|日|天|周(?!岁|年)|年(?!度|级|代|终|\d)"
_ZH: tuple[tuple[Kind, str], ...] = (
    ("date", r"(?<![\d至到~-])(?P<y>(?:19|20)\d\d)年(?P<m>\d{1,2})月(?P<d>\d{1,2})日"
     r"(?![\d至到~-])"),
    ("clause", r"第(?P<label>\d{1,3}|[一二三四五六七八九十百零]{1,6})条(?!之|第)"),
    ("currency", rf"(?<![\d.,．])(?:人民币)?(?P<n>{_NUMBER})(?P<scale>[万亿])?"
     r"(?P<unit>元|美元|港元|欧元)(?![/角])"),
    ("percentage", rf"(?<![\d.,．])(?P<n>{_NUMBER})[%％]"),
    ("percentage", r"(?P<base>[百千万])分之(?P<n>\d+(?:\.\d+)?|[一二三四五六七八九十]{1,3})"
     r"(?![\d百千点])"),
    ("duration", rf"{_NO_NUMBER_BEFORE}(?P<n>\d{{1,3}}|[一二三四五六七八九十]{{1,3}})"
     rf"(?P<unit>{_ZH_PERIODS})(?!以?[前后]?\d|本)"),
    ("unit", rf"(?<![\w.,．])(?P<n>{_NUMBER})(?P<unit>{'|'.join(UNITS_ZH)})(?!民|下)"),
    ("figure", rf"(?<![\w.,．$￥¥:/(（#*第%％-])(?P<n>{_NUMBER})(?![\w%％‰)）/:-]|[.,]\d)"),
)  # fmt: skip
# Numbers of clauses in a list of them, and page or exhibit numbers, are no figures.
_NUMBERED = re.compile(
    r"(?:\b(?:sections?|articles?|clauses?|paragraphs?|exhibits?|schedules?"
    r"|appendix|annex|parts?|years?|no\.)|§)\s*"
    r"(?:[\d.]+(?:\([a-z0-9]+\))*\s*(?:,|and|or|to|through|-|–)*\s*)*$",
    re.IGNORECASE,
)
_PATTERNS = {
    "en": [(kind, re.compile(pattern)) for kind, pattern in _EN],
    "zh": [(kind, re.compile(pattern)) for kind, pattern in _ZH],
}


def find_places(text: str, language: Language) -> tuple[Place, ...]:
    """Values of `text` that don't overlap, in order of their kinds."""
    found: list[Place] = []
    for place in _all(text, language):
        if not any(place.start < other.end and other.start < place.end for other in found):
            found.append(place)
    return tuple(found)


def _all(text: str, language: Language) -> Iterator[Place]:
    for kind, pattern in _PATTERNS[language]:
        for match in pattern.finditer(text):
            place = _READERS[kind](kind, match)
            if place is not None:
                yield place


def _date(kind: Kind, match: re.Match[str]) -> Place | None:
    month = match["m"]
    number = _MONTHS.index(month) + 1 if month in _MONTHS else int(month)
    try:
        value = date(int(match["y"]), number, int(match["d"]))
    except ValueError:
        return None
    return Place(*match.span(), kind, value)


def _clause(kind: Kind, match: re.Match[str]) -> Place | None:
    label = match["label"]
    if label[0] not in "0123456789":
        number = small_hanzi(label)
        if number is None:
            return None
        label = str(number)
    return Place(*match.span(), kind, label)


def _amount(kind: Kind, match: re.Match[str]) -> Place | None:
    value = Decimal(match["n"].replace(",", "")).scaleb(_SCALE.get(match["scale"] or "", 0))
    if value != round(value, 2):
        return None
    return Place(*match.span(), kind, value, _CURRENCY[match["unit"]])


def _share(kind: Kind, match: re.Match[str]) -> Place | None:
    groups = match.groupdict()
    value = _count(match["n"])
    start = None if value is None else _spelled_from(match, value)
    if value is None or start is None:
        return None
    base = {"千": 1, "万": 2}.get(groups.get("base") or "", 0)
    return Place(start, match.end(), kind, value.scaleb(-base), "%")


def _period(kind: Kind, match: re.Match[str]) -> Place | None:
    unit = match["unit"]
    value = _count(match["n"])
    start = _spelled_from(match, value) if value else None
    if not value or start is None:
        return None
    name = _PERIOD_ZH.get(unit, unit.replace("calendar ", ""))
    return Place(start, match.end(), kind, value, name)


def _spelled_from(match: re.Match[str], value: Decimal) -> int | None:
    """Where the value begins: at the number words before the brackets, which must be exactly the
    number in them; None when they are not."""
    words = match.groupdict().get("words")
    if words is None:
        return match.start()
    spelled = english(int(value))
    head = words.removesuffix(spelled)
    if head == words or re.search(r"(?:hundred|thousand|and|-|ty|one)\s*$", head):
        return None
    return match.start("words") + len(head)


def _plain(kind: Kind, match: re.Match[str]) -> Place | None:
    unit = match.groupdict().get("unit") or ""
    if _NUMBERED.search(match.string, 0, match.start()):
        return None
    return Place(*match.span(), kind, Decimal(match["n"].replace(",", "")), unit)


_READERS: dict[str, Callable[[Kind, re.Match[str]], Place | None]] = {
    "date": _date, "clause": _clause, "currency": _amount, "percentage": _share,
    "duration": _period, "unit": _plain, "figure": _plain,
}  # fmt: skip


def _count(text: str) -> Decimal | None:
    if text[0] in "0123456789":
        return Decimal(text.replace(",", ""))
    number = small_hanzi(text)
    return None if number is None else Decimal(number)


def small_hanzi(text: str) -> int | None:
    """The value of a plain Chinese numeral below 1000; None for anything else."""
    match = re.fullmatch(
        r"(?:(?P<h>[一二三四五六七八九两])百)?(?P<o>零)?(?:(?P<t>[一二三四五六七八九])?(?P<ten>十))?"
        r"(?P<u>[一二三四五六七八九])?",
        text,
    )
    if match is None or not text or text == "零":
        return None
    hundreds = _HANZI[match["h"]] * 100 if match["h"] else 0
    tens = 10 * (_HANZI[match["t"]] if match["t"] else 1) if match["ten"] else 0
    return hundreds + tens + (_HANZI[match["u"]] if match["u"] else 0)
