"""Evidence for questions on a small contract: the right quote, and honest refusals (B10, B23)."""

from __future__ import annotations

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage

NDA = """MUTUAL NON-DISCLOSURE AGREEMENT

This Agreement is made as of 5 May 2023 by and between Northwind Ltd. ("Discloser") and
Contoso Inc. ("Recipient").

1. Definitions
"Confidential Information" means all business and technical information that the Discloser
marks as confidential.

2. Obligations
2.1 Secrecy. The Recipient shall keep the Confidential Information secret and shall use it
solely for the purpose of evaluating the project.
2.2 Employees. The Recipient may disclose Confidential Information to employees who need to know it.
2.3 Return. The Recipient shall return or destroy all copies within ten (10) days after a
written request.

3. Term
This Agreement remains in effect for three years and may be terminated by either party on
thirty (30) days' written notice.

4. Liability
4.1 Cap. The aggregate liability of either party shall not exceed USD 250,000.
4.2 Exceptions. The cap does not apply to wilful misconduct.

5. Governing Law
This Agreement is governed by the laws of the State of Oregon.
"""

LEASE = """房屋租赁合同

出租方（甲方）：张三　　承租方（乙方）：李四

第一条 租赁物
甲方将位于青石路8号的房屋出租给乙方使用，建筑面积为九十平方米。
第二条 租赁期限
租赁期限为三年，自2024年3月1日起至2027年2月28日止。
第三条 租金
每月租金为人民币伍仟元整，乙方应于每月5日前支付。
第四条 押金
乙方于签订本合同之日向甲方支付押金人民币10000元。
第五条 违约责任
乙方逾期支付租金的，每逾期一日，应按拖欠金额的千分之三向甲方支付违约金。
第六条 合同解除
乙方拖欠租金超过三十日的，甲方有权解除合同。
第七条 争议解决
双方协商不成的，向房屋所在地人民法院起诉。
"""


def index(text: str) -> SearchIndex:
    document = Document(text, (DocumentPage(1, 0, len(text)),), "x", "text/plain", "en")
    clauses = outline(text)
    return SearchIndex.build(text, split(document, clauses, max_chars=200), clauses)


@pytest.fixture(scope="module")
def nda() -> SearchIndex:
    return index(NDA)


@pytest.fixture(scope="module")
def lease() -> SearchIndex:
    return index(LEASE)


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("What is the liability cap?", "USD 250,000"),
        ("Which law governs this agreement?", "State of Oregon"),
        ("How much notice is needed to terminate?", "thirty (30) days"),
        ("How long does the agreement last?", "three years"),
        ("When must copies be returned or destroyed?", "ten (10) days"),
        ("May the recipient share the information with its employees?", "need to know"),
        ("合同适用什么法律？", "State of Oregon"),
        ("责任上限是多少？", "USD 250,000"),
        ("What does clause 4.2 say?", "wilful misconduct"),
        ("Who are the parties?", "Northwind"),
    ],
)
def test_right_quote_english(nda: SearchIndex, question: str, quote: str) -> None:
    evidence = find_evidence(nda, question)
    best = evidence.sentences[0]
    assert quote in NDA[best.start : best.end]
    assert evidence.answerable, evidence
    assert evidence.reason == ""


@pytest.mark.parametrize(
    ("question", "quote"),
    [
        ("逾期支付租金要付多少违约金？", "千分之三"),
        ("每月租金是多少？", "伍仟元"),
        ("押金多少钱？", "10000元"),
        ("租期到什么时候？", "2027年2月28日"),
        ("拖欠租金多久可以解除合同？", "三十日"),
        ("第四条规定了什么？", "押金"),
        ("第6条的内容是什么？", "有权解除"),
        ("How much is the rent?", "伍仟元"),
        ("違約金是多少？", "千分之三"),
    ],
)
def test_right_quote_chinese(lease: SearchIndex, question: str, quote: str) -> None:
    evidence = find_evidence(lease, question)
    best = evidence.sentences[0]
    assert quote in LEASE[best.start : best.end]
    assert evidence.answerable, evidence


@pytest.mark.parametrize(
    "question",
    [
        "Does Mars have life?",
        "Which arbitration institution is named?",
        "Why does clause 99 exclude interest?",
        "What insurance must the Recipient carry?",
        "What is the royalty rate?",
        "火星上有生命吗？",
        "试用期多长？",
    ],
)
def test_refused_english_contract(nda: SearchIndex, question: str) -> None:
    evidence = find_evidence(nda, question)
    assert not evidence.answerable, evidence.sentences[:1]
    assert evidence.reason
    assert 0.0 <= evidence.support < 0.5


@pytest.mark.parametrize(
    "question",
    [
        "仲裁机构是哪一个？",
        "火星上有生命吗？",
        "第九十九条为什么排除利息？",
        "专利归谁所有？",
        "产假有多少天？",
    ],
)
def test_refused_chinese_contract(lease: SearchIndex, question: str) -> None:
    evidence = find_evidence(lease, question)
    assert not evidence.answerable, evidence.sentences[:1]
    assert evidence.reason


def test_missing_clause_is_named(nda: SearchIndex) -> None:
    assert "99" in find_evidence(nda, "Why does clause 99 exclude interest?").reason


def test_cited_clause_of_a_reference_at_line_start() -> None:
    text = "Article 4 Liability\nArticle 5 applies to providers.\nThe cap is USD 1m."
    evidence = find_evidence(index(text), "What is the cap?")
    assert evidence.sentences[0].chunk.clause == "Article 4"
    assert "USD 1m" in text[evidence.sentences[0].start : evidence.sentences[0].end]


@pytest.mark.parametrize("question", ["", "？？", "the of", "   "])
def test_question_without_content(nda: SearchIndex, question: str) -> None:
    evidence = find_evidence(nda, question)
    assert (evidence.hits, evidence.sentences, evidence.answerable) == ((), (), False)
    assert evidence.reason


@pytest.mark.parametrize("text", ["", " \f\n", "。。。---"])
def test_document_without_text(text: str) -> None:
    evidence = find_evidence(index(text), "What is the cap?")
    assert not evidence.answerable
    assert evidence.reason == "no searchable text"


def test_heading_is_not_quoted_as_an_answer(nda: SearchIndex) -> None:
    best = find_evidence(nda, "governing law").sentences[0]
    assert NDA[best.start : best.end].strip() != "5. Governing Law"


def test_missing_clause_of_a_text_without_outline() -> None:
    evidence = find_evidence(index("The fee excludes interest."), "Why does clause 99 exclude it?")
    assert not evidence.answerable
    assert "99" in evidence.reason
