"""Values and the ways of writing them in contracts: money, shares, durations, dates, clauses.

Each `write_…` gives every form of one value; two forms of one value say the same. Knows nothing of
how they are read.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from eval.corruption.numerals import english, hanzi, hanzi_digits
from retrieval.types import Language

_WIDE = str.maketrans("0123456789,.%", "０１２３４５６７８９，．％")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
_SYMBOLS = {
    "USD": ("$", "US$", "USD "), "EUR": ("€", "EUR "), "GBP": ("£", "GBP "), "HKD": ("HK$", "HKD "),
    "CNY": ("RMB ", "CNY ", "¥", "RMB¥"), "CAD": ("CAD ", "C$"), "JPY": ("JPY ",),
}  # fmt: skip
_NAMES_EN = {
    "USD": ("U.S. dollars", "US dollars"), "EUR": ("euros",), "GBP": ("pounds sterling",),
    "HKD": ("Hong Kong dollars",), "CNY": ("yuan", "Renminbi"), "CAD": ("Canadian dollars",),
    "JPY": ("Japanese yen",),
}  # fmt: skip
_NAMES_ZH = {
    "CNY": "元", "USD": "美元", "HKD": "港元", "EUR": "欧元", "GBP": "英镑", "JPY": "日元",
    "CAD": "加元",
}  # fmt: skip
CURRENCIES = tuple(_SYMBOLS)
_DAYS_EN = {"business day": ("business", "working"), "day": ("", "calendar")}
_PERIODS_ZH = {
    "day": ("日", "天"), "business day": ("个工作日",), "month": ("个月",), "year": ("年",),
    "week": ("周", "个星期"), "hour": ("小时", "个小时"), "quarter": ("个季度",),
}  # fmt: skip
PERIODS = tuple(_PERIODS_ZH)


def plain(value: Decimal) -> str:
    """The number without an exponent and without zeros at its end."""
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def grouped(value: Decimal) -> str:
    """1,500,000.5"""
    whole, point, rest = plain(value).partition(".")
    return f"{int(whole):,}{point}{rest}"


def wide(text: str) -> str:
    """The text in full-width digits."""
    return text.translate(_WIDE)


def write_money(value: Decimal, currency: str, language: Language) -> list[str]:
    """Forms of an amount that is not negative, with at most two decimals."""
    return _money_zh(value, currency) if language == "zh" else _money_en(value, currency)


def _money_en(value: Decimal, currency: str) -> list[str]:
    numbers = [grouped(value), plain(value), f"{value:,.2f}"]
    scaled: list[str] = []
    for power, name in ((9, "billion"), (6, "million")):
        head = value.scaleb(-power)
        if head >= 1 and len(plain(head).partition(".")[2]) <= 3:
            scaled.append(f"{plain(head)} {name}")
    forms = [symbol + number for symbol in _SYMBOLS[currency] for number in (*numbers, *scaled)]
    forms += [f"{n} {name}" for name in _NAMES_EN[currency] for n in (grouped(value), *scaled)]
    if value == int(value) and 0 < value < 10**9:
        forms += [f"{english(int(value))} {name}" for name in _NAMES_EN[currency]]
        symbol = _SYMBOLS[currency][0].strip()
        forms.append(f"{english(int(value))} {_NAMES_EN[currency][0]} ({symbol}{grouped(value)})")
    return forms


def _money_zh(value: Decimal, currency: str) -> list[str]:
    name = _NAMES_ZH[currency]
    forms = [f"{plain(value)}{name}", f"{grouped(value)}{name}", f"{value:,.2f}{name}"]
    forms.append(wide(f"{plain(value)}") + name)
    for power, scale in ((8, "亿"), (4, "万")):
        head = value.scaleb(-power)
        if head >= 1 and len(plain(head).partition(".")[2]) <= 2:
            forms.append(f"{plain(head)}{scale}{name}")
    whole, cents = int(value), int(value * 100) % 100
    if currency == "CNY":
        forms += [f"人民币{form}" for form in forms] + [
            f"￥{value:,.2f}",
            f"人民币{grouped(value)}",
        ]
        formal = _formal(whole, cents)
        forms += [formal, f"人民币{formal}"]
    if not cents and whole:
        forms.append(f"{hanzi(whole)}{name}")
    return forms


def _formal(whole: int, cents: int) -> str:
    """伍佰万元整, 叁万伍仟元伍角贰分, 壹佰元零伍分."""
    text = hanzi(whole, formal=True) + "元"
    if not cents:
        return text + "整"
    jiao, fen = divmod(cents, 10)
    if jiao:
        text += hanzi(jiao, formal=True) + "角"
    elif whole:
        text += "零"
    return text + (hanzi(fen, formal=True) + "分" if fen else "")


def write_share(percent: Decimal, language: Language) -> list[str]:
    """Forms of a share; `percent` is 0.05 for five in ten thousand."""
    number = plain(percent)
    whole = percent == int(percent) and 0 < percent < 1000
    if language == "en":
        forms = [f"{number}%", f"{number} percent", f"{number} per cent", f"{number} %"]
        if whole:
            word = english(int(percent))
            forms += [f"{word} percent", f"{word} percent ({number}%)", f"{word} per cent"]
        points = percent * 100
        if points == int(points) and points < 1000:
            forms += [f"{plain(points)} basis points", f"{plain(points)} bps"]
        return forms
    forms = [f"{number}%", wide(f"{number}%"), f"百分之{number}"]
    if whole:
        forms.append(f"百分之{hanzi(int(percent))}")
    elif percent < 100:
        head, _, rest = number.partition(".")
        decimals = "".join("零一二三四五六七八九"[int(digit)] for digit in rest)
        forms.append(f"百分之{hanzi(int(head))}点{decimals}")
    for factor, name in ((10, "千分之"), (100, "万分之")):
        part = percent * factor
        if part == int(part) and part < 100 and not whole:
            forms += [f"{name}{hanzi(int(part))}", f"{name}{plain(part)}"]
    if percent * 10 == int(percent * 10) and percent < 10:
        forms.append(f"{plain(percent * 10)}‰")
    return forms


def write_period(count: Decimal, unit: str, language: Language) -> list[str]:
    """Forms of a duration; only whole counts have word forms."""
    whole = count == int(count) and 0 < count < 1000
    number = plain(count)
    if language == "zh":
        names = _PERIODS_ZH[unit]
        forms = [f"{number}{name}" for name in names] + [f"{wide(number)}{names[0]}"]
        if whole:
            word = hanzi(int(count))
            forms += [f"{word}{name}" for name in names] + [f"{word}（{number}）{names[0]}"]
        return forms
    plural = "" if count == 1 else "s"
    names = tuple(
        f"{kind} day{plural}".strip() for kind in _DAYS_EN.get(unit, ())
    ) or (f"{unit}{plural}",)  # fmt: skip
    forms = [f"{number} {name}" for name in names]
    if whole:
        word = english(int(count))
        forms += [f"{word} {name}" for name in names] + [f"{word} ({number}) {n}" for n in names]
        forms.append(f"{number} ({word}) {names[0]}")
    return forms


def write_date(day: date, language: Language) -> list[str]:
    """Forms of a whole date; none that can be read as two dates."""
    iso = [day.isoformat(), f"{day.year}/{day.month:02d}/{day.day:02d}", f"{day:%Y.%m.%d}"]
    if language == "zh":
        return [
            f"{day.year}年{day.month}月{day.day}日",
            f"{day.year}年{day.month:02d}月{day.day:02d}日",
            f"{hanzi_digits(day.year)}年{hanzi(day.month)}月{hanzi(day.day)}日",
            wide(f"{day.year}") + f"年{wide(str(day.month))}月{wide(str(day.day))}日",
            *iso,
        ]
    name = _MONTHS[day.month - 1]
    ending = "th" if 10 < day.day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    short = "Sept" if day.month == 9 else name[:3]
    return [
        f"{name} {day.day}, {day.year}",
        f"{day.day} {name} {day.year}",
        f"{name} {day.day}{ending}, {day.year}",
        f"the {day.day}{ending} day of {name}, {day.year}",
        f"{short}. {day.day}, {day.year}" if day.month != 5 else f"May {day.day}, {day.year}",
        *iso,
    ]


def write_clause(label: str, language: Language) -> list[str]:
    """Forms of a clause reference: "12.3(b)" in English, whole numbers in Chinese."""
    if language == "en":
        words = ("Section ", "Clause ", "Article ", "§", "§ ", "Sec. ", "paragraph ")
        return [word + label for word in words]
    return [f"第{label}条", f"第{wide(label)}条", f"第{hanzi(int(label))}条"]
