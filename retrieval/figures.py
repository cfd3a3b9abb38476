"""Figures, percentages, dates and clause references in a text, each with one normal form.

`1,500,000.00`, `$1.5m` and `150万元` are all `#1500000`; `5%` and `百分之五` are both `#5%`;
`1 March 2024` and `2024年3月1日` are `@2024-03-01`; `第12条` and `Article 12` are `§12`. It
does not know currencies (USD 5 and EUR 5 share `#5`) and reads `03/04/2024` month first, as
American contracts do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from retrieval.numerals import NUMERAL_CLASS, chinese_number, english_number

FigureKind = Literal["number", "percent", "date", "clause"]

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan", "february feb", "march mar", "april apr", "may", "june jun",
            "july jul", "august aug", "september sept sep", "october oct", "november nov",
            "december dec",
        ),
        start=1,
    )
    for name in names.split()
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_N = f"[{NUMERAL_CLASS}]"
_DIGITS = (
    r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d{1,3}(?:\.\d{3}){2,}(?:,\d+)?|\d{1,3}\.\d{3},\d{1,2}(?!\d)"
    r"|\d+(?:\.\d+)?"
)
_WORD_NUMBER = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen"
    r"|sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
    r"|hundred)"
)
_DOTTED = r"\d+(?:\.\d+)*(?:\s?\([a-z0-9]{1,4}\))*"

# Order matters: dates and clause references hold numbers, so they are tried first.
_PATTERN = re.compile(
    rf"""
    # Most places hold nothing: a cheap look at the first character comes first.
    (?:(?=[\d第§几数{NUMERAL_CLASS}])|(?<![a-z])(?=[acdefhjmnopst]))(?:
    (?P<zh_date>(?:(?P<zy>\d{{4}}|[〇○零一二三四五六七八九]{{4}})年)\s*(?P<zm>\d{{1,2}}|{_N}{{1,3}})月
        (?:\s*(?P<zd>\d{{1,2}}|{_N}{{1,3}})[日号])?)
  | (?P<iso>(?<![\d.])(?P<iy>(?:19|20)\d\d)
        [-/.](?P<im>0?[1-9]|1[0-2])[-/.](?P<id>0?[1-9]|[12]\d|3[01])(?![\d.-]))
  | (?P<us>(?<![\d./])(?P<um>0?[1-9]|1[0-2])
        /(?P<ud>0?[1-9]|[12]\d|3[01])/(?P<uy>(?:19|20)?\d\d)(?![\d/]))
  | (?P<dmy>(?<!\d)(?P<dd>[0-3]?\d)(?:st|nd|rd|th)?
        \s+(?:day\s+of\s+)?(?P<dm>{_MONTH})\.?,?\s+(?P<dy>(?:19|20)\d\d))
  | (?P<mdy>\b(?P<mm>{_MONTH})\.?\s+(?P<md>[0-3]?\d)(?:st|nd|rd|th)?\s*,?\s+(?P<my>(?:19|20)\d\d))
  | (?P<vague>[几数]\s?[十百千万亿拾佰仟]+(?=[\u4e00-\u9fff])
      | (?:\d+(?:\.\d+)?|{_N}+)\s?[几多余来][十百千万亿拾佰仟]*
        (?=\s?(?:[个名位元圆天年月日人次家份件套台吨米亩户]|平方|公里|小时|美元|港元)))
  | (?P<zh_money>(?P<yuan>{_DIGITS}|{_N}+)\s?[元圆][零〇]?
        (?:(?P<jiao>\d|{_N})角[零〇]?(?:(?P<fen>\d|{_N})分)?|(?P<fen_only>\d|{_N})分))
  | (?P<zh_percent>(?P<zpk>百|千|万)分之\s*(?P<zpv>{_N}+(?:点{_N}+)?|\d+(?:\.\d+)?))
  | (?P<zh_clause>第\s*(?P<zc>\d+(?:\.\d+)*|{_N}+)\s*(?P<zcu>[条章节])
        (?!生产|[线船路街河管鱼道课])(?:之(?P<zcs>{_N}))?)
  | (?P<en_clause>\b(?:articles?|sections?|clauses?|paragraphs?|§§?)\s*(?P<ec>{_DOTTED}))
  | (?P<percent>(?P<pv>{_DIGITS})\s*(?P<pk>%|‰|per\s?cent\b|percent\b))
  | (?P<word_percent>\b(?P<wpv>{_WORD_NUMBER}(?:[\s-]{_WORD_NUMBER})*)\s+per\s?cent\b)
  | (?P<comma_decimal>(?<![\d.,])(?P<cd>\d{{1,4}},\d{{1,2}})(?![\d,]))
  | (?P<dotted>(?<![\d.,])\d{{1,3}}(?:\.\d{{1,3}}){{2,4}}(?![\d,]))
  | (?P<number>(?<![\d])(?P<nv>{_DIGITS})
        \s?(?P<nk>[万亿千百](?![分第])|thousand\b|million\b|billion\b|mm?\b|bn\b|k\b)?)
  | (?P<zh_number>(?P<zn>{_N}{{2,}}|{_N}(?=[个日天年月元倍份次名人周期层套台吨]))(?P<zhalf>半)?)
  | (?P<word_number>\b(?P<wn>{_WORD_NUMBER}(?:[\s-]{_WORD_NUMBER})*(?:\s+thousand|\s+million)?)\b)
    )
    """,
    re.VERBOSE,
)
_SCALE = {
    "万": 1e4, "亿": 1e8, "千": 1e3, "百": 1e2, "thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6,
    "mm": 1e6, "billion": 1e9, "bn": 1e9,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Figure:
    """`text[start:end]` of the folded text, and its normal form `value`, its sign in front."""

    start: int
    end: int
    kind: FigureKind
    value: str


_EXACT_DIGITS = 15
"""A float holds every whole number of so many digits; account numbers have up to 19."""


def _plain(value: float) -> str:
    if math.isinf(value):
        # Hundreds of digits in a row are a key or a rule of noughts, not an amount.
        return str(value)
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _digits(text: str) -> float:
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}", text):
        return float(text.replace(".", "").replace(",", "."))
    return float(text.replace(",", ""))


def _whole(text: str) -> int | None:
    if text.isdigit():
        return int(text)
    value = chinese_number(text)
    return None if value is None else int(value)


def _date(year: str, month: int | None, day: str | None) -> str | None:
    number = _whole(year)
    which = _whole(day) if day else None
    if number is None or month is None or not 1 <= month <= 12 or (which or 1) > 31:
        return None
    if number < 100:
        number += 2000 if number < 50 else 1900
    return f"@{number:04d}-{month:02d}" + (f"-{which:02d}" if which else "")


def _read_date(match: re.Match[str], kind: str) -> str | None:
    group = match.group
    if kind == "zh_date":
        return _date(group("zy"), _whole(group("zm")), group("zd"))
    if kind == "iso":
        return _date(group("iy"), int(group("im")), group("id"))
    if kind == "us":
        return _date(group("uy"), int(group("um")), group("ud"))
    if kind == "dmy":
        return _date(group("dy"), _MONTHS[group("dm")], group("dd"))
    return _date(group("my"), _MONTHS[group("mm")], group("md"))


def _read_percent(match: re.Match[str], kind: str) -> str | None:
    group = match.group
    if kind == "zh_percent":
        text = group("zpv")
        value = float(text) if text[0].isdigit() else chinese_number(text)
        if value is None:
            return None
        return f"#{_plain(value * {'百': 1, '千': 0.1, '万': 0.01}[group('zpk')])}%"
    if kind == "word_percent":
        words = english_number(group("wpv"))
        return None if words is None else f"#{words}%"
    value = _digits(group("pv"))
    return f"#{_plain(value / 10 if group('pk') == '‰' else value)}%"


def _read_number(match: re.Match[str], kind: str) -> str | None:
    group = match.group
    if kind == "comma_decimal":
        return f"#{_plain(float(group('cd').replace(',', '.')))}"
    if kind == "dotted":
        return f"#{group('dotted')}"
    if kind == "number":
        whole = group("nv").replace(",", "")
        if len(whole) > _EXACT_DIGITS and whole.isdecimal() and not group("nk"):
            return f"#{whole.lstrip('0')}"
        return f"#{_plain(_digits(group('nv')) * _SCALE.get(group('nk') or '', 1.0))}"
    value = chinese_number(group("zn")) if kind == "zh_number" else english_number(group("wn"))
    return None if value is None else f"#{_plain(value)}"


def _read_money(match: re.Match[str], kind: str) -> str | None:
    parts = [match.group(name) for name in ("yuan", "jiao", "fen", "fen_only")]
    values = [
        None if part is None else _digits(part) if part[0].isdigit() else chinese_number(part)
        for part in parts
    ]
    if values[0] is None:
        return None
    jiao, fen = values[1] or 0.0, values[2] or values[3] or 0.0
    return f"#{_plain(values[0] + jiao / 10 + fen / 100)}"


def _read_vague(match: re.Match[str], kind: str) -> str | None:
    return None


def _read_clause(match: re.Match[str], kind: str) -> str | None:
    if kind == "en_clause":
        return "§" + re.sub(r"\s", "", match.group("ec"))
    text = match.group("zc")
    value = text if text[0].isdigit() else _whole(text)
    if value is None:
        return None
    suffix = _whole(match.group("zcs")) if match.group("zcs") else None
    unit = match.group("zcu")
    return f"§{value}" + (f"-{suffix}" if suffix else "") + ("" if unit == "条" else unit)


_READERS: dict[str, tuple[FigureKind, Callable[[re.Match[str], str], str | None]]] = {
    "zh_date": ("date", _read_date), "iso": ("date", _read_date), "us": ("date", _read_date),
    "dmy": ("date", _read_date), "mdy": ("date", _read_date),
    "zh_percent": ("percent", _read_percent), "percent": ("percent", _read_percent),
    "word_percent": ("percent", _read_percent),
    "zh_money": ("number", _read_money), "vague": ("number", _read_vague),
    "zh_clause": ("clause", _read_clause), "en_clause": ("clause", _read_clause),
    "comma_decimal": ("number", _read_number), "dotted": ("number", _read_number),
    "number": ("number", _read_number), "zh_number": ("number", _read_number),
    "word_number": ("number", _read_number),
}  # fmt: skip


def find_figures(folded: str) -> Iterator[Figure]:
    """Every figure of a folded text (`folding.fold` or `fold_in_place`), in order, not overlapping.

    Something that looks like a figure and has no value (a 32nd day, 万 alone), or no exact one
    (三十几万元, 二十余天), is left out.
    """
    for match in _PATTERN.finditer(folded):
        # The alternative that matched closes last, after the groups inside it.
        name = match.lastgroup or ""
        kind, read = _READERS[name]
        value = read(match, name)
        if value is not None:
            yield Figure(match.start(), match.end(), kind, value)
