"""Units of figures in English and Chinese, and the unit that each is compared in.

Knows spellings only; `figures` decides which word is the unit of which number.
"""

from __future__ import annotations

from decimal import Decimal

MONEY = {
    "人民币": "CNY", "rmb": "CNY", "cny": "CNY", "yuan": "CNY", "renminbi": "CNY", "￥": "CNY",
    "¥": "CNY", "元": "CNY", "圆": "CNY",
    "美元": "USD", "美金": "USD", "us$": "USD", "u.s.$": "USD", "usd": "USD", "$": "USD",
    "u.s. dollars": "USD", "us dollars": "USD", "united states dollars": "USD", "dollars": "USD",
    "dollar": "USD", "hk$": "HKD", "hkd": "HKD", "港元": "HKD", "港币": "HKD",
    "hong kong dollars": "HKD", "欧元": "EUR", "eur": "EUR", "€": "EUR", "euros": "EUR",
    "euro": "EUR", "英镑": "GBP", "gbp": "GBP", "£": "GBP", "pounds sterling": "GBP",
    "日元": "JPY", "日圆": "JPY", "jpy": "JPY", "yen": "JPY", "japanese yen": "JPY",
    "瑞士法郎": "CHF", "chf": "CHF", "swiss francs": "CHF", "cad": "CAD", "c$": "CAD",
    "ca$": "CAD", "cdn$": "CAD", "cdn": "CAD", "canadian dollars": "CAD", "加元": "CAD",
    "加拿大元": "CAD", "aud": "AUD", "a$": "AUD", "au$": "AUD", "australian dollars": "AUD",
    "澳元": "AUD", "澳大利亚元": "AUD", "sgd": "SGD", "s$": "SGD", "singapore dollars": "SGD",
    "新加坡元": "SGD", "inr": "INR", "rs.": "INR", "rupees": "INR", "卢比": "INR", "nt$": "TWD",
    "新台币": "TWD", "韩元": "KRW", "krw": "KRW", "卢布": "RUB", "泰铢": "THB", "cents": "cent",
    "cent": "cent",
}  # fmt: skip
MEASURES = {
    "工作日": "business day", "营业日": "business day", "交易日": "trading day",
    "自然日": "day", "日历天": "day", "日历日": "day", "天": "day", "日": "day", "周": "week",
    "星期": "week", "礼拜": "week", "月": "month", "季度": "quarter", "年": "year", "周年": "year",
    "小时": "hour", "钟头": "hour", "分钟": "minute", "秒": "second", "倍": "times",
    "平方米": "m²", "㎡": "m²", "平米": "m²", "平方公里": "km²", "平方千米": "km²",
    "立方米": "m³", "公里": "km", "千米": "km", "毫米": "mm", "厘米": "cm", "米": "m",
    "海里": "nmi", "英里": "mile",
    "亩": "mu", "公顷": "ha", "公斤": "kg", "千克": "kg", "吨": "t", "克": "g", "毫克": "mg",
    "毫升": "ml", "升": "l", "千瓦": "kW", "兆瓦": "MW", "度": "度", "台": "台", "套": "套",
    "份": "份", "人": "人", "名": "人", "位": "人", "次": "次", "期": "期", "层": "层", "户": "户",
    "股": "股", "岁": "岁", "周岁": "岁", "页": "页", "件": "件", "辆": "辆", "批": "批",
    "张": "张", "艘": "艘", "箱": "箱", "头": "头", "只": "只", "间": "间", "家": "家",
    "株": "株", "棵": "株", "桶": "桶", "瓶": "瓶", "袋": "袋", "栋": "栋", "幢": "栋",
    "个百分点": "%", "个基点": "bp", "％": "%", "%": "%", "‰": "‰", "percent": "%", "pct": "%",
    "per cent": "%", "percentage points": "%", "basis points": "bp", "basis point": "bp",
    "bps": "bp", "bp": "bp", "per mille": "‰",
    "business days": "business day", "business day": "business day",
    "working days": "business day", "working day": "business day",
    "banking days": "business day", "banking day": "business day",
    "trading days": "trading day", "trading day": "trading day",
    "calendar days": "day", "calendar day": "day", "consecutive days": "day", "days": "day",
    "day": "day", "weeks": "week", "week": "week", "calendar months": "month",
    "calendar month": "month", "months": "month", "month": "month", "calendar quarters": "quarter",
    "calendar quarter": "quarter", "quarters": "quarter", "quarter": "quarter",
    "calendar years": "year", "calendar year": "year", "years": "year", "year": "year",
    "hours": "hour", "hour": "hour", "minutes": "minute", "minute": "minute", "seconds": "second",
    "times": "times", "square feet": "ft²", "square foot": "ft²", "sq. ft.": "ft²",
    "sq ft": "ft²", "square meters": "m²", "square metres": "m²", "m²": "m²", "m³": "m³",
    "cubic meters": "m³", "cubic metres": "m³", "acres": "acre", "acre": "acre", "hectares": "ha",
    "miles": "mile", "mile": "mile", "kilometers": "km", "kilometres": "km", "km": "km",
    "meters": "m", "metres": "m", "feet": "ft", "inches": "inch", "kilograms": "kg", "kg": "kg",
    "tons": "ton", "tonnes": "t", "metric tons": "t", "pounds": "pound", "lbs": "pound",
    "gallons": "gallon", "barrels": "barrel", "liters": "l", "litres": "l", "megawatts": "MW",
    "mw": "MW", "kw": "kW", "kilowatts": "kW", "shares": "股", "units": "unit", "copies": "份",
    "pages": "页", "employees": "employee", "persons": "人", "people": "人",
}  # fmt: skip
# Factors to the unit in which values are compared.
CANONICAL: dict[str, tuple[Decimal, str]] = {
    "year": (Decimal(12), "month"), "week": (Decimal(7), "day"), "‰": (Decimal("0.1"), "%"),
    "bp": (Decimal("0.01"), "%"), "quarter": (Decimal(3), "month"),
}  # fmt: skip
