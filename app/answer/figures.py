"""Figures with their units: money, percentages, durations, measures, plain numbers.

Values are exact Decimals in canonical units: percent for every share (万分之五 is 0.05 %), months
for years, days for weeks, ISO codes for currencies. Chinese integers are read by cn2an (through
retrieval); 角 and 分, halves, fractions and vague numbers (三十几万) are read here, because cn2an
refuses or misreads them. A single 一 or 万 without a unit is not taken for a number.

Does not know dates or clause numbers: the caller says which places are taken by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from app.answer.units import CANONICAL, MEASURES, MONEY
from retrieval.folding import fold_width
from retrieval.numerals import NUMERAL_CLASS, chinese_number, english_number

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit, at `text[start:end]`.

    `unit` is canonical and "" when there is none. A vague number has no value and equals only the
    same words.
    """

    start: int
    end: int
    text: str
    value: Decimal | None
    unit: str

    @property
    def key(self) -> str:
        """Equal for figures that say the same."""
        if self.value is None:
            return f"vague {self.text}"
        return f"{self.value.normalize():f} {self.unit}".strip()


_ZH = f"[{NUMERAL_CLASS}廿卅]"
_WORD = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|"
    "sixteen|seventeen|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|"
    "hundred"
)
_WORDS = rf"(?:{_WORD})(?:(?:\s+and\s+|[\s-]+)(?:{_WORD}|thousand))*"
_CORE = re.compile(
    rf"""
    (?P<share>(?P<den>{_ZH}{{1,4}}|\d+)分之(?P<num>{_ZH}+(?:点{_ZH}+)?|\d+(?:\.\d+)?))
  | (?P<vague>[几数]{_ZH}+|{_ZH}+[几余多]{_ZH}*(?=[个天日年月元倍份人次名吨米万亿]|美元|周))
  | (?P<euro>(?<![\d.,])(?:\d{{1,3}}(?:\.\d{{3}}){{2,}}(?:,\d{{1,2}})?|\d{{1,3}}\.\d{{3}},\d{{1,2}}
        |\d{{1,3}},\d{{1,2}})(?![\d,]|\.\d))
  | (?P<digits>(?<![\d.])(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+)?)
    (?:[^\S\n]?(?P<many>thousand|million|billion|trillion|mm|bn|[mk](?![a-z²³]))\b
      |(?P<scale>[百千万亿]{{1,2}}))?
  | (?P<hanzi>{_ZH}+(?:点{_ZH}+)?|半(?=[年月日天]|个月))
  | (?P<words>\b{_WORDS}\b)(?:\s+(?P<wmany>thousand|million|billion|trillion)\b)?
  | (?P<simple>\b(?:one[\s-](?:half|third|quarter|fifth)|two[\s-]thirds|three[\s-]quarters)\b)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_MANY = {
    "thousand": 3,
    "k": 3,
    "million": 6,
    "mm": 6,
    "m": 6,
    "billion": 9,
    "bn": 9,
    "trillion": 12,
}
_SCALE = {"百": 2, "千": 3, "万": 4, "亿": 8}
_SIMPLE = {"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5}


def _escaped(words: Iterable[str]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _any(words: Sequence[str]) -> str:
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(w) + (r"\b" if w[-1].isascii() and w[-1].isalpha() else "")
                    for w in ordered)  # fmt: skip


_BEFORE = re.compile(
    rf"(?:(?<![a-z])(?P<unit>{_escaped(MONEY)}))"
    r"(?:\s|[:：]|[（(](?:大写|小写)[)）])*(?P<minus>[-−])?\s*$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?P<half1>个半(?=月|星期|小时))?(?:[\s-]*(?:\(|（)?\s*)(?:个(?!半))?"
    rf"(?P<unit>{_any([*MONEY, *MEASURES])})"
    r"(?P<half2>半)?",
    re.IGNORECASE,
)
_MINOR = re.compile(rf"(?:(?P<jiao>{_ZH}|\d)角)?(?:[零〇]?(?P<fen>{_ZH}|\d)分(?!之|钟|期))?")
_REPEATED = re.compile(r"\s*[（(]\s*\d")
_IN_WORD = re.compile(r"[A-Za-z]-?$")
_PAIR_END = re.compile(r"\s*[)）]")
_PAIR_GAP = re.compile(r"\s*[（(]\s*$")
_LONE = re.compile(rf"^{_ZH}$")
_HAS_DIGIT = re.compile("[零〇○一二三四五六七八九两壹贰叁肆伍陆柒捌玖貳參陸廿卅十拾]")


def find_figures(text: str, taken: Sequence[Span] = ()) -> tuple[Figure, ...]:
    """Every figure of `text` that touches no place in `taken`, in order."""
    folded = fold_width(text)
    found: list[Figure] = []
    position = 0
    while match := _CORE.search(folded, position):
        position = match.end()
        if any(match.start() < end and start < match.end() for start, end in taken):
            continue
        figure = _read(folded, match)
        if figure is None:
            continue
        position = max(position, figure.end)
        found.append(figure)
    return tuple(_paired(folded, text, found))


def _read(folded: str, match: re.Match[str]) -> Figure | None:
    start, end = match.span()
    if match["vague"]:
        return Figure(start, end, match[0], None, "")
    value = _value(match)
    if value is None:
        return None
    if match["share"] or match["simple"]:
        return Figure(start, end, match[0], value, "%")
    before = _BEFORE.search(folded, max(0, start - 24), start)
    after = _AFTER.match(folded, end)
    if match["digits"] and before is None and _IN_WORD.search(folded, max(0, start - 2), start):
        return None
    unit, half = "", Decimal(0)
    if after and _keeps(folded, match, after):
        unit = (MONEY | MEASURES)[after["unit"].lower()]
        half = Decimal("0.5") if after["half1"] or after["half2"] else half
        end = after.end()
    lone = match["hanzi"] and not unit and not before and _LONE.match(match[0])
    if lone and not _REPEATED.match(folded, end):
        return None
    if before and before["unit"].lower() not in ("元", "圆"):
        if unit == "" or unit in MONEY.values():
            unit = MONEY[before["unit"].lower()]
        start = before.start("unit")
    value += half
    if unit in MONEY.values() and after and folded[end - 1] in "元圆":
        minor = _MINOR.match(folded, end)
        if minor and minor[0]:
            value += _small(minor["jiao"]) / 10 + _small(minor["fen"]) / 100
            end = minor.end()
    if (before and before["minus"]) or _negative(folded, match.start()):
        value = -value
    factor, canonical = CANONICAL.get(unit, (Decimal(1), unit))
    return Figure(start, end, folded[start:end], value * factor, canonical)


def _keeps(folded: str, match: re.Match[str], after: re.Match[str]) -> bool:
    """Whether the words after a number are its unit. "30 (days" is, "(3) 日本" is not."""
    gap = folded[match.end() : after.start("unit")]
    if "\n" in gap:
        return False
    word = after["unit"]
    following = folded[after.end() : after.end() + 1]
    if word == "日" and following == "本":
        return False
    if word == "名" and following == "称":
        return False
    if word == "人" and following == "民":
        return False
    return not (word == "月" and match["hanzi"] and "个" not in gap and after["half1"] is None
                and following == "日")  # fmt: skip


def _negative(folded: str, start: int) -> bool:
    before = folded[max(0, start - 2) : start]
    if before.endswith("负"):
        return True
    return before.endswith(("-", "−")) and (len(before) < 2 or before[0] in " (（：:，,")


def _value(match: re.Match[str]) -> Decimal | None:
    if match["share"]:
        num, den = _number(match["num"]), _number(match["den"])
        return None if num is None or not den else (100 * num / den).normalize()
    if match["simple"]:
        top, bottom = re.split(r"[\s-]", match["simple"].lower())
        return Decimal(100 * {"one": 1, "two": 2, "three": 3}[top]) / _SIMPLE[bottom]
    if match["euro"]:
        return Decimal(match["euro"].replace(".", "").replace(",", "."))
    if match["digits"]:
        value = Decimal(match["digits"].replace(",", ""))
        if match["many"]:
            value = value.scaleb(_MANY[match["many"].lower()])
        for scale in match["scale"] or "":
            value = value.scaleb(_SCALE[scale])
        return value
    if match["hanzi"]:
        return _number(match["hanzi"])
    words = english_number(match["words"])
    if words is None:
        return None
    return Decimal(words).scaleb(_MANY.get((match["wmany"] or "").lower(), 0))


def _number(text: str) -> Decimal | None:
    if text[0].isdigit():
        return Decimal(text)
    if text == "半":
        return Decimal("0.5")
    if text in ("百", "千", "万"):
        return Decimal(10 ** _SCALE[text])
    whole, _, decimals = text.partition("点")
    if not _HAS_DIGIT.search(whole):
        return None
    value = chinese_number(re.sub("卅", "三十", whole))
    if value is None:
        return None
    if decimals:
        digits = [chinese_number(character) for character in decimals]
        if any(digit is None or digit > 9 for digit in digits):
            return None
        return Decimal(f"{int(value)}.{''.join(str(int(digit or 0)) for digit in digits)}")
    return Decimal(repr(value)).normalize()


def _small(text: str | None) -> Decimal:
    return (_number(text) or Decimal(0)) if text else Decimal(0)


def _paired(folded: str, text: str, found: Sequence[Figure]) -> list[Figure]:
    """Joins "three (3) months" and 三（3）个月 to one figure; where the two disagree, the figure is
    vague and equals only the same words."""
    joined: list[Figure] = []
    for figure in found:
        last = joined[-1] if joined else None
        pair = last and _pair(folded, text, last, figure)
        if pair:
            joined[-1] = pair
        else:
            words = text[figure.start : figure.end]
            joined.append(Figure(figure.start, figure.end, words, figure.value, figure.unit))
    return joined


def _pair(folded: str, text: str, last: Figure, figure: Figure) -> Figure | None:
    """`figure` in brackets right after `last`, which has no unit of its own, as one figure."""
    closing = _PAIR_END.match(folded, figure.end)
    if last.unit or not closing or not _PAIR_GAP.fullmatch(folded[last.end : figure.start]):
        return None
    if figure.value is None or last.value is None:
        return None
    end, unit, factor = closing.end(), figure.unit, Decimal(1)
    after = _AFTER.match(folded, end)
    if after and "\n" not in folded[end : after.start("unit")]:
        word = (MONEY | MEASURES)[after["unit"].lower()]
        factor, unit = CANONICAL.get(word, (Decimal(1), word))
        end = after.end()
    value = figure.value * factor if last.value == figure.value else None
    return Figure(last.start, end, text[last.start : end], value, unit)
