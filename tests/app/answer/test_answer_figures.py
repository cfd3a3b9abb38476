"""Figures: values and units across the ways of writing them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.answer.figures import find_figures


def keys(text: str) -> list[str]:
    return [figure.key for figure in find_figures(text)]


SAME = [
    ["USD 1,500,000.00", "$1.5 million", "US$1,500,000", "1.5 million dollars", "美元150万"],
    [
        "人民币150万元",
        "RMB 1,500,000",
        "￥1,500,000.00",
        "壹佰伍拾万元整",
        "1500000元",
        "人民币１５０万元",
    ],
    ["伍佰万元整", "500万元", "人民币（大写）：伍佰万元整"],
    ["万分之五", "0.05%", "万分之5"],
    ["百分之五", "5%", "5 per cent", "five percent", "５％"],
    ["千分之三", "0.3%", "3‰", "30 basis points"],
    [
        "three (3) months",
        "3 months",
        "三个月",
        "3个月",
        "three-month",
        "三（3）个月",
        "3 (three) months",
    ],
    ["三十日", "30 days", "thirty (30) calendar days", "30天", "30-day", "卅日"],
    ["5个工作日", "five (5) business days", "五个工作日", "5 working days"],
    ["一个半月", "1.5 months"],
    ["半年", "6 months", "六个月"],
    ["两年半", "30 months"],
    ["叁万伍仟元伍角贰分", "35,000.52元"],
    ["100元5角", "100.50元"],
    ["€9,90", "9.90 EUR"],
    ["one hundred twenty thousand dollars", "$120,000"],
    ["二分之一", "50%", "一半", "one-half", "五成"],
    ["four quarters", "4 quarters", "12 months", "四个季度"],
    ["three quarters of the price", "three-quarters", "three quarters (75%)", "75%", "四分之三"],
    ["壹佰元零伍分", "RMB 100.05", "一百元零五分"],
    ["three and one-half percent (3.5%)", "3½%", "3 1/2 percent", "百分之三点五", "350 bp"],
    ["two and a half years", "30 months", "two and one half (2.5) years"],
    ["1亿2千万元", "RMB 120,000,000", "一亿二千万元"],
    ["15,00,000", "1,500,000"],
    ["-$5", "$-5", "minus $5", "USD (5)", "negative five US dollars"],
    ["CAD $5", "C$5", "5 Canadian dollars", "5加元"],
    ["[30] days", "30 days"],
    ["the third year", "the third (3rd) year", "第三年", "第3年", "third anniversary"],
    ["5 (five) years", "five years (5)", "60 months"],
    ["five million US dollars (US$5 million)", "5,000,000美元"],
    ["人民币伍拾万元整（小写：￥500,000.00）", "50万元"],
    ["日历天数九百（900）日", "900 days"],
]


@pytest.mark.parametrize("group", SAME, ids=lambda group: group[0])
def test_forms_of_one_figure_have_one_key(group: list[str]) -> None:
    found = [keys(form) for form in group]
    assert all(len(found_keys) == 1 for found_keys in found), found
    assert len({found_keys[0] for found_keys in found}) == 1, found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("30 days", "30 months"),
        ("30 days", "30 business days"),
        ("RMB 500", "USD 500"),
        ("HK$500", "US$500"),
        ("5%", "5"),
        ("5%", "-5%"),
        ("150万元", "150元"),
        ("三十几万元", "三十万元"),
        ("千分之五", "百分之五"),
        ("9,90", "19,90"),
        ("十余日", "十日"),
        ("三十几万元", "三十几万美元"),
        ("USD 5", "USD (5)"),
        ("第三年", "三年"),
        ("the third year", "three years"),
        ("CAD $5", "$5"),
        ("5‰", "5%"),
        ("2 1/2 years", "2 years"),
        ("15名", "15套"),
    ],
)
def test_different_figures_have_different_keys(one: str, other: str) -> None:
    assert keys(one) != keys(other)


@pytest.mark.parametrize(
    "text", ["一方", "统一", "万一", "十分重要", "一切", "一致", "COVID-19", "A4"]
)
def test_words_that_hold_numerals_are_no_figures(text: str) -> None:
    assert keys(text) == []


@pytest.mark.parametrize(
    "text", ["five (6) years", "five percent (6%)", "the fifth (8th) day", "三（4）个月"]
)
def test_a_pair_that_disagrees_equals_only_itself(text: str) -> None:
    assert [key.startswith("vague ") for key in keys(text)] == [True]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10-20%", ["10 %", "20 %"]),
        ("between five and ten percent", ["5 %", "10 %"]),
        ("30至60日", ["30 day", "60 day"]),
        ("100 shares (5%)", ["100 股", "5 %"]),
        ("fees and five days", ["5 day"]),
    ],
)
def test_the_lower_end_of_a_range_has_the_unit_of_the_upper(text: str, found: list[str]) -> None:
    assert keys(text) == found


@pytest.mark.parametrize("text", ["no one may", "one or more", "one another"])
def test_one_alone_is_a_word(text: str) -> None:
    assert keys(text) == []


def test_places_are_in_the_original_text() -> None:
    text = "价款为人民币１５０万元，三（３）个月内付清。"
    for figure in find_figures(text):
        assert text[figure.start : figure.end] == figure.text
    assert [figure.text for figure in find_figures(text)] == ["人民币１５０万元", "三（３）个月"]


def test_taken_places_are_left_out() -> None:
    text = "Section 5 and 7 days"
    assert [figure.key for figure in find_figures(text, [(0, 9)])] == ["7 day"]


@given(st.integers(min_value=0, max_value=10**12), st.integers(min_value=0, max_value=99))
def test_thousands_separators_do_not_change_a_value(whole: int, cents: int) -> None:
    plain = find_figures(f"USD {whole}.{cents:02d}")[0]
    grouped = find_figures(f"USD {whole:,}.{cents:02d}")[0]
    assert plain.value == grouped.value == Decimal(whole) + Decimal(cents) / 100


def test_an_amount_behind_a_masked_name_is_a_figure_and_a_code_is_none() -> None:
    assert [figure.key for figure in find_figures("给付徐x８８０００欧元")] == ["88000 EUR"]
    assert [figure.key for figure in find_figures("给付徐x88000元，徐x8作出声明")] == ["88000 CNY"]
    assert find_figures("panel RD-40 and cable A12 of the series") == ()
