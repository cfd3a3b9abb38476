"""Names by form: capitals inside a sentence, identifiers, titles, parties, organisations."""

from __future__ import annotations

import pytest

from app.answer.items import find_items
from app.answer.names import find_names, stands_in
from retrieval.folding import fold


def names(text: str) -> list[str]:
    return [name.text for name in find_names(text)]


def test_capitals_inside_a_sentence_are_names_and_at_its_start_are_not() -> None:
    assert names("Termination requires consent of Acme.") == ["Acme"]
    assert names("Payment is due. Delivery follows.") == []


@pytest.mark.parametrize("text", ["HT2024-001", "COVID-19", "24B-2", "10-K"])
def test_identifiers_are_names_and_their_digits_no_figures(text: str) -> None:
    items = find_items(f"as stated in {text} today")
    assert [name.text for name in items.names] == [text]
    assert items.figures == ()


def test_chinese_titles_and_parties_are_names() -> None:
    assert names("依照《民法典》，甲方赔偿乙方") == ["《民法典》", "甲方", "乙方"]


@pytest.mark.parametrize(
    ("name", "source", "found"),
    [
        ("Acme's", "the seller, Acme, pays", True),
        ("Acme", "acmeville pays", False),
        ("A1", "金海湾A1栋3单元", True),
        ("《民法典》", "中华人民共和国民法典", True),
        ("向上海第一仲裁委员会", "提交上海第一仲裁委员会仲裁", True),
        ("北京仲裁委员会", "提交上海仲裁委员会仲裁", False),
    ],
)
def test_names_against_a_source(name: str, source: str, found: bool) -> None:
    assert stands_in(name, [fold(source)]) is found
