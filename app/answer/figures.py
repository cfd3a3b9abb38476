"""Figures with their units: money, percentages, durations, measures, plain numbers.

Values are exact Decimals in canonical units: percent for every share (万分之五 is 0.05 %), months
for years, days for weeks, ISO codes for currencies. A number in words and in brackets is one figure
("three (3) months"), and the lower end of a range takes the unit of the upper one (10-20%). A
single 一, 万 or "one" without a unit is not taken for a number. The third year is not three years.

Does not know dates or clause numbers: the caller says which places are taken by them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from app.answer.numbers import CORE, ZH, read, zh_number
from app.answer.units import CANONICAL, MEASURES, MONEY
from retrieval.folding import fold_width

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number with its unit, at `text[start:end]`.

    `value` is in the canonical `unit` ("" when there is none), `number` as it is written: 5 years
    are 60 months. A vague number has no value and equals only the same words.
    """

    start: int
    end: int
    text: str
    value: Decimal | None
    unit: str
    number: Decimal | None = None

    @property
    def key(self) -> str:
        """Equal for figures that say the same."""
        if self.value is None:
            return f"vague {self.text}"
        return f"{self.value.normalize():f} {self.unit}".strip()


def _any(words: Iterable[str]) -> str:
    ordered = sorted(words, key=len, reverse=True)
    return "|".join(re.escape(w) + (r"\b" if w[-1].isascii() and w[-1].isalpha() else "")
                    for w in ordered)  # fmt: skip


_MONEY = "|".join(
    ("(?<![a-z])" if word[0].isalpha() else "") + re.escape(word)
    for word in sorted(MONEY, key=len, reverse=True)
)
_BEFORE = re.compile(
    rf"(?:(?P<first>{_MONEY})\s*)?(?P<unit>{_MONEY})"
    r"(?:\s|[:：]|[（(](?:大写|小写)[)）])*(?P<minus>[-−]|负)?\s*(?P<bracket>[（(])?$",
    re.IGNORECASE,
)
_AFTER = re.compile(
    r"(?P<half1>个半(?=月|星期|小时))?(?:[\s\]-]*(?:\(|（)?\s*)(?:个(?!半))?"
    rf"(?P<unit>{_any([*MONEY, *MEASURES])})"
    r"(?P<half2>半)?",
    re.IGNORECASE,
)
_MINOR = re.compile(
    rf"[\s,]*(?:零|〇)?(?:(?P<jiao>{ZH}|\d)角)?(?:[零〇]?(?P<fen>{ZH}|\d)分(?!之|钟|期))?"
)
_REPEATED = re.compile(r"\s*[（(]\s*\d")
_REPEATS = re.compile(r"\d\s*[（(]\s*$")
_IN_WORD = re.compile(r"[A-Za-z]-?$")
_PAIR_END = re.compile(r"[整正]?\s*[)）]")
_PAIR_GAP = re.compile(r"[整正]?\s*[（(]\s*(?:[大小]写)?\s*[:：]?\s*")
_RANGE = re.compile(r"\s*(?:-|–|—|~|～|至|到|to|and)\s*", re.IGNORECASE)
_BETWEEN = re.compile(r"\bbetween\s+$", re.IGNORECASE)
_LONE = re.compile(rf"{ZH}|one", re.IGNORECASE)
_MINUS = re.compile(r"(?:负|\bminus\s+|\bnegative\s+|(?:^|[\s(（：:，,])[-−]\s?)$", re.IGNORECASE)
# A unit is not one where it begins another word: 3日本, 5名称, 10人民币.
_NO_UNIT = re.compile(
    "日(?=本)|名(?=称|义)|人(?=民)|期(?=间|限)|家(?=庭|属)|位(?=置|于)|度(?=假)|台(?=湾|账)|件(?=事)"
    "|头(?=等)|间(?=接|隔)|只(?=有|要|能|是)|张(?=某)|次(?=日|月|年)"
)


def find_figures(text: str, taken: Sequence[Span] = ()) -> tuple[Figure, ...]:
    """Every figure of `text` that touches no place in `taken`, in order."""
    folded = fold_width(text)
    found: list[Figure] = []
    position = 0
    while match := CORE.search(folded, position):
        position = match.end()
        if any(match.start() < end and start < match.end() for start, end in taken):
            continue
        done = found[-1].end if found else 0
        at_odds = match["ordinal"] and read(folded, match) is None
        vague = match["vague"] or at_odds
        figure = _vague(folded, match) if vague else _read(folded, match, done)
        if figure is None:
            continue
        position = figure.end
        found.append(figure)
    return tuple(_ranged(folded, _paired(folded, text, found)))


def _vague(folded: str, match: re.Match[str]) -> Figure:
    after = _AFTER.match(folded, match.end())
    unit, end = "", match.end()
    if after and _keeps(folded, match, after):
        unit, end = (MONEY | MEASURES)[after["unit"].lower()], after.end()
    return Figure(match.start(), end, folded[match.start() : end], None, unit)


def _read(folded: str, match: re.Match[str], done: int) -> Figure | None:
    """The figure of a number; words before `done` belong to the figure before it."""
    number = read(folded, match)
    if number is None:
        return None
    start, end, value = match.start(), number.end, number.value
    if match["share"] or match["simple"] or match["tenths"]:
        value = -value if _minus(folded, start, done) else value
        return Figure(start, end, folded[start:end], value, "%", value)
    if match["ordinal"]:
        unit = match["ounit"].lower()
        unit = "year" if unit == "anniversary" else unit
        return Figure(start, end, folded[start:end], value, f"第{unit}", value)
    before = _BEFORE.search(folded, max(done, start - 40), start)
    after = _AFTER.match(folded, end)
    # "A12" and "RD-40" are codes; "徐x88000元" is an amount behind a masked name.
    paid = after is not None and after.start("unit") == end and after["unit"].lower() in MONEY
    code = match["digits"] and before is None and not paid
    if code and _IN_WORD.search(folded, max(0, start - 2), start):
        return None
    unit, half = "", Decimal(0)
    if after and _keeps(folded, match, after):
        unit = (MONEY | MEASURES)[after["unit"].lower()]
        half = Decimal("0.5") if after["half1"] or after["half2"] else half
        end = after.end()
    lone = not unit and not before and _LONE.fullmatch(folded, match.start(), end)
    if lone and not _REPEATED.match(folded, end) and not _REPEATS.search(folded, 0, start):
        return None
    if folded[max(0, start - 1) : start] == "第":
        return Figure(start, end, folded[start:end], value, f"第{unit}", value)
    negative = _minus(folded, start, done)
    if before and before["unit"].lower() not in ("元", "圆"):
        if unit == "" or unit in MONEY.values():
            unit = _currency(before, unit)
        bracketed = before["bracket"] and _PAIR_END.match(folded, end)
        negative = negative or bool(before["minus"]) or bool(bracketed)
        start = before.start("first") if before["first"] else before.start("unit")
        negative = negative or _minus(folded, start, done)
    value += half
    if unit in MONEY.values() and after and folded[end - 1] in "元圆":
        minor = _MINOR.match(folded, end)
        if minor and (minor["jiao"] or minor["fen"]):
            value += _small(minor["jiao"]) / 10 + _small(minor["fen"]) / 100
            end = minor.end()
    factor, canonical = CANONICAL.get(unit, (Decimal(1), unit))
    value = -value if negative else value
    return Figure(start, end, folded[start:end], value * factor, canonical, value)


def _minus(folded: str, start: int, done: int) -> bool:
    """Whether a sign stands right before `start`; between two figures it is an operator."""
    sign = _MINUS.search(folded, max(0, start - 10), start)
    return sign is not None and not (done and not folded[done : sign.start()].strip())


def _currency(before: re.Match[str], after: str) -> str:
    """Of "CAD $" or "HKD 5 dollars" the narrower word: a sign alone may stand for several."""
    unit = before["unit"].lower()
    if unit not in ("$", "¥", "￥"):
        return MONEY[unit]
    if before["first"]:
        return MONEY[before["first"].lower()]
    return after or MONEY[unit]


def _keeps(folded: str, match: re.Match[str], after: re.Match[str]) -> bool:
    """Whether the words after a number are its unit. "30 (days" is, "(3) 日本" is not."""
    gap = folded[match.end() : after.start("unit")]
    if "\n" in gap:
        return False
    if _NO_UNIT.match(folded, after.start("unit")):
        return False
    word = after["unit"]
    following = folded[after.end() : after.end() + 1]
    return not (word == "月" and match["hanzi"] and "个" not in gap and after["half1"] is None
                and following == "日")  # fmt: skip


def _small(text: str | None) -> Decimal:
    return (zh_number(text) or Decimal(0)) if text else Decimal(0)


def _paired(folded: str, text: str, found: Sequence[Figure]) -> list[Figure]:
    """Joins "three (3) months", 三（3）个月 and "five percent (5%)" to one figure; where the two
    disagree, the figure is vague and equals only the same words."""
    joined: list[Figure] = []
    for figure in found:
        last = joined[-1] if joined else None
        pair = last and _pair(folded, text, last, figure)
        if pair:
            joined[-1] = pair
        else:
            joined.append(replace(figure, text=text[figure.start : figure.end]))
    return joined


def _pair(folded: str, text: str, last: Figure, figure: Figure) -> Figure | None:
    """`figure` in brackets right after `last` as one figure: the unit stands once, in the brackets
    or behind them, or both say it."""
    closing = _PAIR_END.match(folded, figure.end)
    if not closing or not _PAIR_GAP.fullmatch(folded[last.end : figure.start]):
        return None
    if figure.number is None or last.number is None:
        return None
    end, unit, factor = closing.end(), figure.unit, Decimal(1)
    if last.unit:
        # "100 shares (5%)" are two figures; "five percent (5)" and "$5 (five dollars)" are one.
        if last.unit.startswith("第") or unit not in ("", last.unit):
            return None
        agree = last.value in (figure.value, None) or (not unit and last.number == figure.number)
        if not agree and not unit and last.unit not in ("%", "day", "month", "business day"):
            return None
        value, number, unit = last.value, last.number, last.unit
    else:
        agree = last.number in (figure.number, figure.value)
        value, number = figure.value, figure.number
        after = _AFTER.match(folded, end)
        if after and value is not None and "\n" not in folded[end : after.start("unit")]:
            word = (MONEY | MEASURES)[after["unit"].lower()]
            factor, unit = CANONICAL.get(word, (Decimal(1), word))
            value, end = value * factor, after.end()
    words = text[last.start : end]
    return Figure(last.start, end, words, value if agree else None, unit, number)


def _ranged(folded: str, found: Sequence[Figure]) -> list[Figure]:
    """Gives the lower end of a range the unit of the upper one: "10-20%", 30至60日."""
    figures = list(found)
    for index in range(len(figures) - 2, -1, -1):
        low, high = figures[index], figures[index + 1]
        gap = _RANGE.fullmatch(folded[low.end : high.start])
        if gap is None or low.unit or low.value is None or high.value is None or not high.unit:
            continue
        if gap[0].strip().lower() == "and" and not _BETWEEN.search(folded[: low.start]):
            continue
        if high.unit.startswith("第") or not folded[low.start].isdigit() and gap[0].strip() == "-":
            continue
        factor = high.value / high.number if high.number else Decimal(1)
        figures[index] = replace(low, value=low.value * factor, unit=high.unit)
    return figures
