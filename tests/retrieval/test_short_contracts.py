"""In a contract of a few clauses most words stand in every chunk: one that it lacks must still
refuse a question, and a figure of the asked kind is not enough to answer it."""

from __future__ import annotations

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage, Language

BOAT_HIRE = """BOAT HIRE CONTRACT

Lindqvist Boats AB hires out the sailing boat Tern to Mr Paul Adeyemi.

1. Hire. The hire is SEK 9,000 a week, due each Monday morning. The boat lies at Marina Sund and
must be handed back there.

2. Care. The hirer keeps the boat clean and is responsible for damage to sails. The owner is
responsible for repairs to the engine.

3. Deposit. The hirer leaves a deposit of SEK 20,000, which comes back within seven days after the
boat is handed over undamaged.
"""
GARDEN = """园林养护合同

甲方：青溪小区业主委员会
乙方：绿野园艺服务部

一、乙方养护小区绿地，面积共八千平方米，每周修剪草坪一次。
二、养护费每月六千元，甲方每月十日前转账支付。
三、苗木枯死的，乙方应当在三日内补种，费用由乙方负担。
四、本合同自二〇二四年三月一日起履行，至二〇二五年二月底结束。
"""


def index_of(text: str, language: Language) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", language)
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("text", "language", "question"),
    [
        (BOAT_HIRE, "en", "Who is responsible for repairs?"),
        (BOAT_HIRE, "en", "When is the hire due?"),
        (GARDEN, "zh", "养护费多少？"),
        (GARDEN, "zh", "枯死了谁补种？"),
    ],
)
def test_a_short_contract_answers(text: str, language: Language, question: str) -> None:
    assert find_evidence(index_of(text, language), question).answerable


@pytest.mark.parametrize(
    ("text", "language", "question"),
    [
        (BOAT_HIRE, "en", "What insurance is required?"),
        (BOAT_HIRE, "en", "What is the liability cap?"),
        (BOAT_HIRE, "en", "Is there a non-compete?"),
        (BOAT_HIRE, "en", "What is the interest rate?"),
        (BOAT_HIRE, "en", "What is the late fee?"),
        (BOAT_HIRE, "en", "What is the annual fee?"),
        (GARDEN, "zh", "押金多少？"),
        (GARDEN, "zh", "小区多大？"),
        (GARDEN, "zh", "草坪多高？"),
        (GARDEN, "zh", "苗木多重？"),
        (GARDEN, "zh", "公司离小区多远？"),
        (GARDEN, "zh", "有没有竞业限制？"),
        (GARDEN, "zh", "可以转租吗？"),
    ],
)
def test_a_short_contract_refuses_what_it_lacks(
    text: str, language: Language, question: str
) -> None:
    assert not find_evidence(index_of(text, language), question).answerable
