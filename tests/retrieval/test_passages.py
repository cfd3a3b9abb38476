"""What is quoted around a sentence: short clauses whole, list items, rows of tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.passages import is_row, whole_clause
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage

CONTRACT = """4. Site rules
4.1 Smoking is forbidden in the workshop. The Client may fine the Contractor USD 200 for each case.
4.2 The Contractor may leave the site:
(a) on Sundays without notice;
(b) on other days after two hours' notice; and
(c) in an emergency at once.
5. Machines
5.1 The Contractor shall oil each machine. The Contractor shall use the oil that the maker names. \
The Contractor shall keep a book of all work, with the hours of each person, the parts used, the \
faults found and the time that each machine stood still, and shall show that book to the Client \
whenever the Client asks to see it during office hours. Old oil is taken away by the Client.
6. Values
Item Unit Value
6.1 The values are guaranteed.
"""


def index_of(text: str, lang: str = "en") -> SearchIndex:
    clauses = outline(text)
    page = DocumentPage(1, 0, len(text))
    document = Document(text, (page,), "c.txt", "text/plain", "zh" if lang == "zh" else "en")
    return SearchIndex.build(text, split(document, clauses), clauses)


def first_quote(text: str, question: str) -> str:
    best = find_evidence(index_of(text), question).sentences[0]
    return text[best.start : best.end]


def test_a_short_clause_is_quoted_whole() -> None:
    quote = first_quote(CONTRACT, "What is the fine for smoking in the workshop?")
    assert quote.startswith("4.1 Smoking is forbidden")
    assert quote.endswith("for each case.")


def test_a_list_is_quoted_with_its_lead_in() -> None:
    quote = first_quote(CONTRACT, "When may the Contractor leave the site on other days?")
    assert quote.startswith("4.2 The Contractor may leave the site:")
    assert "two hours' notice" in quote


def test_a_long_clause_is_quoted_by_the_sentence() -> None:
    quote = first_quote(CONTRACT, "Who takes away the old oil?")
    assert quote == "Old oil is taken away by the Client."


def test_a_heading_with_its_own_line_is_left_out() -> None:
    body = "甲方应于三十日内付款。逾期的，每日按万分之三支付违约金。"
    text = f"第一条 付款\n{body}\n第二条 交货\n乙方送货。"
    clause = outline(text)[0]
    at = text.index("逾期")
    span = whole_clause(text, [clause], (at, at + 4), (0, len(text)))
    assert span is not None
    assert text[slice(*span)] == body


@pytest.mark.parametrize(
    "line",
    ["7 噪声 分贝 82", "7 | 噪声 | 分贝 | 82", "Trip coil 104.20", "Filter 12 400", "Loss 0.5%"],
)
def test_rows_of_tables(line: str) -> None:
    assert is_row(line)


@pytest.mark.parametrize(
    "line",
    ["第三条 合同价格 5", "附件三 考核方法", "Definitions 3", "12.3", "", "The price is 5.",
     "Section 4 Fees 104.20", "甲方应付款。"],
)  # fmt: skip
def test_other_lines_are_no_rows(line: str) -> None:
    assert not is_row(line)


def test_a_row_can_be_the_quote() -> None:
    text = (
        "附件一 保证值\n性能保证值\n序号 指标 单位 保证值\n1 产能 包每小时 24,000\n"
        "2 车间噪声 分贝 82\n3 吨产品耗水 吨 1.6\n"
    )
    best = find_evidence(index_of(text, "zh"), "车间噪声最多是多少分贝？").sentences[0]
    assert text[best.start : best.end] == "2 车间噪声 分贝 82"


@given(st.text(alphabet="ab 1.,|\n附第条章%$", max_size=40))
def test_any_line_can_be_looked_at(line: str) -> None:
    assert is_row(line) in (True, False)
