"""A table of contents is told from the clauses that it lists."""

from __future__ import annotations

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.contents import is_contents, is_contents_line
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage


def test_entries_with_page_numbers_are_contents() -> None:
    assert is_contents("4.1   Quality Agreement 35 4.2   Manufacturing Standards 35 4.3 Other 36")
    assert is_contents("1. Definitions ........ 3\n2. Term ........ 5")
    assert is_contents_line("第一条 定义 ……………… 3")
    assert is_contents_line("23. Insurance … 14")


def test_a_chinese_table_that_lost_its_line_breaks_is_contents() -> None:
    gap = "\u3000" * 8
    assert is_contents(f"第一条 总则{gap}3第二条 合营各方{gap}5第三条 注册资本{gap}8")
    assert not is_contents("第一条 总则\u3000合营各方同意按第二条、第三条办理。")


def test_clauses_are_no_contents() -> None:
    assert not is_contents("4.1 Quality. The Supplier shall keep 35 records.")
    assert not is_contents("3.1 The Buyer shall pay within 30 days.\n3.2 Interest runs from day 5.")
    assert not is_contents_line("The price is USD 5.00.")


CONTENTS = "第二十六条 通知 … 15\n第二十七条 争议解决与法律适用 … 16\n第二十八条 其他 … 17\n\n"
CLAUSES = (
    "第二十六条 通知\n26.1 通知应当采用书面形式。\n\n第二十七条 争议解决与法律适用\n"
    "27.1 本合同适用中华人民共和国法律，不包括冲突规范。\n\n第二十八条 其他\n"
    "28.1 本合同一式四份。\n"
)


def quotes_of(text: str, question: str) -> list[str]:
    document = Document(text, (DocumentPage(1, 0, len(text)),), "a.txt", "text/plain", "zh")
    clauses = outline(text)
    index = SearchIndex.build(text, split(document, clauses), clauses)
    return [text[one.start : one.end] for one in find_evidence(index, question).sentences]


@pytest.mark.parametrize("question", ["What is the governing law?", "本合同适用什么法律？"])
def test_a_line_of_the_contents_is_no_quote_where_clauses_speak(question: str) -> None:
    quotes = quotes_of(CONTENTS + CLAUSES, question)
    assert "适用中华人民共和国法律" in quotes[0]
    assert not any("…" in quote for quote in quotes)


def test_where_there_is_nothing_else_a_line_of_the_contents_is_offered() -> None:
    assert any("法律适用" in quote for quote in quotes_of(CONTENTS, "本合同适用什么法律？"))
