"""Words of asking are kept apart from what is asked about, on an invented joint venture."""

from __future__ import annotations

import pytest

from retrieval.asked import asked_kinds, holds
from retrieval.chunk import split
from retrieval.clauses import label_at, outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.types import Document, DocumentPage

VENTURE = """合资经营合同

第一条　合营公司
甲乙双方依法设立青石精密仪器有限公司（以下简称合营公司）．合营公司为有限责任公司．
第二条　资本
合营公司的注册资本为人民币二千万元．甲方认缴百分之六十，乙方认缴百分之四十．
第三条　董事会
３．１　董事会由五名董事组成，甲方委派三名，乙方委派两名．
３．２　董事长由甲方委派，副董事长由乙方委派，任期三年．
第四条　经营管理
４．１　董事会聘任总经理一名，负责日常经营；４．２　总经理每季度向董事会报告工作．
４．３　总会计师由董事会任命，任期两年．
第五条　保密
双方在合营期内及合营期满后两年内对技术资料保密．
第六条　合营期
合营期为十五年，自营业执照签发之日起计算．
"""


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    clauses = outline(VENTURE)
    page = DocumentPage(1, 0, len(VENTURE))
    document = Document(VENTURE, (page,), "venture", "text/plain", "zh")
    return SearchIndex.build(VENTURE, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("合营期是多少年？", {"合营"}),
        ("合营期有多长？", {"合营"}),
        ("双方的出资比例各是多少？", {"双方", "出资", "比例"}),
        ("董事会由几名董事组成？", {"董事会", "董事", "组成"}),
        ("乙方认为什么是重大违约？", {"乙方", "认为", "重大", "违约"}),
        ("总经理是否由董事会聘任？", {"总经理", "董事会", "聘任"}),
    ],
)
def test_words_of_asking_are_not_welded_to_the_matter(question: str, words: set[str]) -> None:
    telling = {unit.surface for unit in read_question(question).units if unit.weight >= 0.9}
    assert telling == words


@pytest.mark.parametrize(
    ("question", "clause", "words"),
    [
        ("合营期是多少年？", "第六条", "合营期为十五年"),
        ("合营期有多长？", "第六条", "合营期为十五年"),
        ("期限是多少年？", "第六条", "合营期为十五年"),
        ("What is the term of the joint venture?", "第六条", "合营期为十五年"),
        ("双方的出资比例各是多少？", "第二条", "甲方认缴百分之六十"),
        ("谁任命董事长？", "３．２", "董事长由甲方委派"),
        ("董事长由谁担任？", "３．２", "董事长由甲方委派"),
        ("Who appoints the chairman?", "３．２", "董事长由甲方委派"),
        ("总经理由谁任命？", "４．１", "董事会聘任总经理"),
        ("注册资本是多少？", "第二条", "注册资本为人民币二千万元"),
    ],
)
def test_a_plain_question_finds_its_clause(
    index: SearchIndex, question: str, clause: str, words: str
) -> None:
    evidence = find_evidence(index, question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert words in VENTURE[best.start : best.end]
    assert label_at(index.clauses, best.start) == clause


@pytest.mark.parametrize("question", ["违约金是多少？", "试用期多长？", "仓库有几个消防栓？"])
def test_what_the_contract_is_silent_on_stays_refused(index: SearchIndex, question: str) -> None:
    assert not find_evidence(index, question).answerable


def test_the_term_of_something_else_is_not_the_contracts_own() -> None:
    assert "term" in {concept.name for concept in read_question("期限是多少年？").concepts}
    assert "term" in {concept.name for concept in read_question("本合同期限多久？").concepts}
    assert "term" not in {concept.name for concept in read_question("付款期限是多久？").concepts}


def test_equal_parts_are_nearly_a_share() -> None:
    assert holds("双方的投资应当相等。", ("percent",)) == pytest.approx(0.6)
    assert holds("each party contributes one half", ("percent",)) == pytest.approx(0.6)
    assert holds("双方应当按时投资。", ("percent",)) == 0.0


def test_the_blank_of_a_form_stands_for_its_number() -> None:
    assert holds("租期为__年，自交付之日起。", ("duration",)) == 1.0
    assert holds("租期为(  )个月。", ("duration",)) == 1.0
    assert holds("租金每月××元。", ("amount",)) == 1.0
    assert holds("within ____ days after delivery", ("duration",)) == 1.0
    assert holds("租期由双方另行约定。", ("duration",)) == 0.0


def test_a_rate_of_royalty_is_a_share_and_an_hourly_rate_is_not() -> None:
    assert asked_kinds("what is the royalty rate?") == ("percent",)
    assert asked_kinds("at which rate of interest is it paid?") == ("percent",)
    assert "percent" not in asked_kinds("what is the hourly rate?")
