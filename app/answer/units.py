"""Units of figures in English and Chinese, and the unit that each is compared in.

Knows spellings only; `figures` decides which word is the unit of which number.
"""

from __future__ import annotations

from decimal import Decimal

MONEY = {
    "人民币": "CNY", "rmb": "CNY", "cny": "CNY", "yuan": "CNY", "renminbi": "CNY", "￥": "CNY",
    "¥": "CNY", "美元": "USD", "美金": "USD", "us$": "USD", "usd": "USD", "$": "USD",
    "u.s. dollars": "USD", "us dollars": "USD", "dollars": "USD", "dollar": "USD",
    "hk$": "HKD", "hkd": "HKD", "港元": "HKD", "港币": "HKD", "欧元": "EUR", "eur": "EUR",
    "€": "EUR", "euros": "EUR", "euro": "EUR", "英镑": "GBP", "gbp": "GBP", "£": "GBP",
    "pounds sterling": "GBP", "日元": "JPY", "jpy": "JPY", "yen": "JPY", "瑞士法郎": "CHF",
    "chf": "CHF", "cad": "CAD", "c$": "CAD", "aud": "AUD", "a$": "AUD", "sgd": "SGD", "s$": "SGD",
    "inr": "INR", "rs.": "INR", "nt$": "TWD", "新台币": "TWD", "cents": "cent", "cent": "cent",
    "元": "CNY", "圆": "CNY",
}  # fmt: skip
MEASURES = {
    "工作日": "business day", "营业日": "business day", "交易日": "trading day",
    "自然日": "day", "日历天": "day", "日历日": "day", "天": "day", "日": "day", "周": "week",
    "星期": "week", "礼拜": "week", "月": "month", "季度": "quarter", "年": "year", "周年": "year",
    "小时": "hour", "钟头": "hour", "分钟": "minute", "倍": "times", "平方米": "m²", "㎡": "m²",
    "平方公里": "km²", "立方米": "m³", "公里": "km", "千米": "km", "毫米": "mm", "厘米": "cm",
    "米": "m", "亩": "mu", "公顷": "ha", "公斤": "kg", "千克": "kg", "吨": "t", "克": "g",
    "台": "台", "套": "套", "份": "份", "人": "人", "名": "人", "次": "次", "期": "期", "层": "层",
    "户": "户", "股": "股", "岁": "岁", "页": "页", "件": "件", "辆": "辆", "批": "批",
    "个百分点": "%", "个基点": "bp", "％": "%", "%": "%", "‰": "‰", "percent": "%",
    "per cent": "%", "percentage points": "%", "basis points": "bp", "bps": "bp",
    "business days": "business day", "business day": "business day",
    "working days": "business day", "working day": "business day",
    "banking days": "business day", "trading days": "trading day", "trading day": "trading day",
    "calendar days": "day", "calendar day": "day", "consecutive days": "day", "days": "day",
    "day": "day", "weeks": "week", "week": "week", "calendar months": "month",
    "calendar month": "month", "months": "month", "month": "month", "calendar quarters": "quarter",
    "quarters": "quarter", "calendar years": "year", "calendar year": "year", "years": "year",
    "year": "year", "hours": "hour", "hour": "hour", "minutes": "minute", "minute": "minute",
    "times": "times", "square feet": "ft²", "square meters": "m²", "square metres": "m²",
    "miles": "mile", "mile": "mile", "kilometers": "km", "kilometres": "km", "feet": "ft",
    "shares": "股",
}  # fmt: skip
# Factors to the unit in which values are compared.
CANONICAL: dict[str, tuple[Decimal, str]] = {
    "year": (Decimal(12), "month"), "week": (Decimal(7), "day"), "‰": (Decimal("0.1"), "%"),
    "bp": (Decimal("0.01"), "%"), "quarter": (Decimal(3), "month"),
}  # fmt: skip
