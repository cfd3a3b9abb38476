"""Support of Chinese documents: matters of the law that a contract never speaks of."""

from __future__ import annotations

import pytest

from retrieval.chinese_support import odds, unspoken
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.query import read_question
from retrieval.types import Document, DocumentPage, Language

LEASE = (
    "房屋租赁合同\n第一条 出租人将房屋出租给承租人使用，租期两年。\n"
    "第二条 租金每月五千元，承租人逾期支付的，支付违约金。\n第三条 出租人负责房屋的维修义务。\n"
)


def index_of(text: str, language: Language = "zh") -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "x", "text/plain", language)
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("房东要不要修房子？", False),
        ("租金多少？", False),
        ("酒驾会怎么处罚？", True),
        ("父亲留下的房子怎么继承？", True),
    ],
)
def test_matters_that_a_contract_never_speaks_of(question: str, missing: bool) -> None:
    index, query = index_of(LEASE), read_question(question)
    assert (unspoken(index, query) > 0) is missing
    assert (odds(index, query, {}, (), 1.0) < 1.0) is missing


def test_a_traditional_text_speaks_of_the_same_matters() -> None:
    traditional = LEASE.replace("租赁", "租賃").replace("维修义务", "維修義務")
    assert unspoken(index_of(traditional), read_question("房东要不要修房子？")) == 0.0


def test_english_documents_and_questions_keep_their_odds() -> None:
    lease = index_of("This Lease is made between A and B. Rent is USD 500 per month.", "en")
    assert odds(lease, read_question("酒驾会怎么处罚？"), {}, (), 0.7) == 0.7
    assert odds(index_of(LEASE), read_question("What is the rent?"), {}, (), 0.7) == 0.7
