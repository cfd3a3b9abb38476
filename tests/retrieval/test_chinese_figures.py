"""Chinese amounts in capitals with 角 and 分, and amounts that name no exact figure."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.figures import find_figures
from retrieval.folding import fold
from retrieval.index import SearchIndex
from retrieval.types import Document, DocumentPage


def values(text: str) -> list[str]:
    return [figure.value for figure in find_figures(fold(text))]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("人民币壹万贰仟叁佰肆拾伍元陆角柒分", "#12345.67"),
        ("壹佰元零伍分", "#100.05"),
        ("叁仟伍佰圆柒角整", "#3500.7"),
        ("三元五角", "#3.5"),
        ("3元5角", "#3.5"),
        ("1,234元5角6分", "#1234.56"),
        ("一千二百三十四元五角六分", "#1234.56"),
        ("伍佰万元整", "#5000000"),
        ("人民币１５０万元", "#1500000"),
    ],
)
def test_amounts_to_the_cent(text: str, value: str) -> None:
    assert values(text) == [value]


@pytest.mark.parametrize(
    "text",
    [
        "三十几万元", "几十万元", "数百万元", "二十多万元", "一百余元", "三百来万元", "20余万元",
        "十几天", "200多万元", "30多个工作日", "二十余名工人",
    ],
)  # fmt: skip
def test_amounts_without_an_exact_figure_have_none(text: str) -> None:
    assert values(text) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("数量为20吨", ["#20"]),
        ("百分之五", ["#5%"]),
        ("2024年3月1日起多次", ["@2024-03-01"]),
        ("第十二条", ["§12"]),
    ],
)
def test_other_figures_stay(text: str, found: list[str]) -> None:
    assert values(text) == found


CAPITALS = "零壹贰叁肆伍陆柒捌玖"


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9))
def test_capitals_and_digits_meet(yuan: int, jiao: int, fen: int) -> None:
    capital = f"{CAPITALS[yuan]}拾元{CAPITALS[jiao]}角{CAPITALS[fen]}分"
    assert values(capital) == values(f"{yuan}0.{jiao}{fen}元") == [f"#{yuan}0.{jiao}{fen}"]


def test_a_vague_amount_is_not_found_for_an_exact_one() -> None:
    clauses = [
        "第一条 甲方已付款三十几万元。", "第二条 甲方应付运费叁拾元。",
        "第三条 甲方应付货款壹万贰仟叁佰肆拾伍元陆角柒分。",
    ]  # fmt: skip
    text = "\n".join(f"{line}{'双方应当友好协商解决其他事项。' * 70}" for line in clauses)
    found = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "x", "text/plain", "zh")
    index = SearchIndex.build(text, split(document, found), found)
    thirty = index.search("哪一笔是30元？")[0].chunk
    assert "运费" in text[thirty.start : thirty.end]
    exact = index.search("12345.67元是什么款？")[0].chunk
    assert "货款" in text[exact.start : exact.end]
