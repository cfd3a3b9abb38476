"""Accounts of cases: invented parties and facts."""

from __future__ import annotations

import re

import pytest

from retrieval import cases
from retrieval.case_matters import MATTERS, matters_asked
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.types import Document, DocumentPage

ACCOUNT = (
    "经审理查明:2016年3月8日,原告林9与被告云岭公司签订《仓储合同》,约定原告将一百吨大米存入被告位于"
    "云岭市北站路的仓库,保管费为每月3000元,期限为六个月2016年9月10日,原告提货时发现二十吨大米受潮,"
    "经鉴定损失为86000元被告以仓库漏水系暴雨所致为由,拒绝赔偿,原告遂诉至本院上述事实,有仓储合同、"
    "鉴定报告以及当事人的陈述在卷佐证"
)
CONTRACT = (
    "仓储合同\n甲方：林九\n乙方：云岭公司\n第一条 甲方将大米存入乙方仓库。\n"
    "第二条 保管费每月三千元。\n"
)


def index_of(text: str) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "x", "text/plain", "zh")
    return SearchIndex.build(text, split(document, clauses), clauses)


def test_accounts_are_told_from_contracts() -> None:
    assert cases.is_case(ACCOUNT)
    assert cases.is_case(ACCOUNT.replace("经审理查明:", ""))
    assert not cases.is_case(CONTRACT)
    assert not cases.is_case("")
    # A whole judgment also holds the claims and the verdict.
    assert not cases.is_case(ACCOUNT * 20)


@pytest.mark.parametrize(
    ("question", "answerable"),
    [
        ("原告什么时候发现大米受潮？", True),
        ("保管费是每月多少元？", True),
        ("大米损失是多少元？", True),
        ("期限是多久？", True),
        ("本案的判决结果是什么？", False),
        ("法院审理结果如何？", False),
        ("本案诉讼费由谁负担？", False),
        ("肇事司机的去向？", False),
    ],
)
def test_account_answers(question: str, answerable: bool) -> None:
    assert find_evidence(index_of(ACCOUNT), question).answerable is answerable


def test_a_stated_verdict_answers_more_than_none() -> None:
    question = "本案的判决结果是什么？"
    decided = ACCOUNT + "本院判决如下:被告赔偿原告86000元"
    assert cases.features(question, ACCOUNT)["matter_absent"] == 1.0
    assert cases.features(question, decided)["matter_absent"] == 0.0
    assert cases.odds(question, decided) > cases.odds(question, ACCOUNT)


def test_questions_of_yes_or_no_have_a_threshold_of_their_own() -> None:
    assert cases.kind("被告是否到庭？") == cases.kind("原告有无子女？") == "yes_no"
    assert cases.kind("被告是否到庭？".replace("是否", "何时")) == "other"
    assert cases.kind("损失是多少？") == cases.kind("") == "other"
    # Without a word of content the threshold is what differs.
    assert cases.odds("吗", ACCOUNT) < cases.odds("", ACCOUNT)


def test_features_tell_absent_words_names_and_the_place_of_the_fact() -> None:
    near = cases.features("保管费是每月多少元？", ACCOUNT)
    assert near["absent"] == 0.0 and near["beside"] > 0.9
    assert cases.features("原告购买了多少元的保险？", ACCOUNT)["absent"] > 0.5
    assert cases.features("郭7是谁？", ACCOUNT)["name_absent"] == 1.0
    assert cases.features("林9是谁？", ACCOUNT)["name_absent"] == 0.0
    assert set(near) == set(cases.FEATURES)


def test_wordings_leave_names_and_figures_out() -> None:
    found = cases.wordings("郭10在2016年向王x1借款的目的？")
    assert {"目的", "借款的"} <= found
    assert not any(re.search(r"[\dx郭王]", wording) for wording in found)
    assert max(map(len, found)) <= 3
    assert cases.wordings("？？") == set()


def test_matters() -> None:
    names = {matter.name for matter in matters_asked("被告为什么不还钱，法院何时判决")}
    assert {"reason", "date", "verdict"} <= names
    assert len({matter.name for matter in MATTERS}) == len(MATTERS)
