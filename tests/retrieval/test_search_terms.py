"""Index terms: figures, dates and clause numbers have one form; Chinese has pairs and words."""

from __future__ import annotations

import pytest

from retrieval.figures import find_figures
from retrieval.folding import fold, fold_in_place, fold_width
from retrieval.language import detect
from retrieval.numerals import chinese_number, english_number
from retrieval.tokens import terms


def values(text: str) -> list[str]:
    return [figure.value for figure in find_figures(fold(text))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("USD 1,500,000.00", "#1500000"),
        ("1500000", "#1500000"),
        ("$1.5m", "#1500000"),
        ("1.5 million", "#1500000"),
        ("人民币１５０万元", "#1500000"),
        ("一百五十万元", "#1500000"),
        ("伍佰万元整", "#5000000"),
        ("1.500.000,00", "#1500000"),
        ("€9,90", "#9.9"),
        ("€19,90", "#19.9"),
        ("5%", "#5%"),
        ("５％", "#5%"),
        ("百分之五", "#5%"),
        ("five percent", "#5%"),
        ("千分之一", "#0.1%"),
        ("万分之三", "#0.03%"),
        ("2024-03-01", "@2024-03-01"),
        ("1 March 2024", "@2024-03-01"),
        ("March 1st, 2024", "@2024-03-01"),
        ("2024年3月1日", "@2024-03-01"),
        ("二〇二四年三月一日", "@2024-03-01"),
        ("第12条", "§12"),
        ("第１２条", "§12"),
        ("第十二条", "§12"),
        ("第十二条之一", "§12-1"),
        ("Section 12.3(b)", "§12.3(b)"),
        ("三十日", "#30"),
        ("thirty days", "#30"),
        ("forty-five days", "#45"),
    ],
)
def test_one_form_for_one_value(text: str, value: str) -> None:
    assert value in values(text)
    assert value in terms(text)


def test_no_figure_where_there_is_none() -> None:
    assert values("一般 万一 一切 phone") == []
    assert values("2024年13月1日") != ["@2024-13-01"]


def test_number_words() -> None:
    assert chinese_number("一百二十") == 120
    assert chinese_number("万") is None
    assert chinese_number("五二十一") is None
    assert english_number("two hundred and five") == 205
    assert english_number("apple") is None


def test_chinese_terms_are_characters_pairs_words_and_concepts() -> None:
    found = terms("违约金为合同总价")
    assert {"违约", "约金", "违约金", "违", "总价", "=liquidated_damages"} <= set(found)


def test_english_terms_are_stems_without_stop_words() -> None:
    found = terms("The Suppliers shall be terminating it")
    assert {"supplier", "termin", "=termination"} <= set(found)
    assert "the" not in found


def test_traditional_and_full_width_spellings_fold() -> None:
    assert fold("違約金") == fold("违约金")
    assert fold("ＵＳＤ") == "usd"
    for text in ("違約金㎡ＡＢＣ“x”ﬁ", "plain", "第１２条"):
        assert len(fold_in_place(text)) == len(text) == len(fold_width(text))


@pytest.mark.parametrize("text", ["", "   ", "。。。---", "\f\n", "the of"])
def test_no_terms(text: str) -> None:
    assert terms(text) == []


@pytest.mark.parametrize(
    ("text", "language"),
    [("SLA 违约金", "zh"), ("The Supplier", "en"), ("", "en"), ("甲方 Party A 乙方应当付款", "zh"),
     ("The company (公司) shall deliver the goods", "en")],
)  # fmt: skip
def test_language(text: str, language: str) -> None:
    assert detect(text) == language


def test_third_production_line_is_no_clause() -> None:
    assert values("第三条生产线") == []
    assert values("第三条规定") == ["§3"]
