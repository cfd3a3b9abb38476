"""Who stands in a role is told by the line of the parties, not by the clauses that name it."""

from __future__ import annotations

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.party_roles import absent_role, asked_role, introductions
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.types import Document, DocumentPage, Language, Sentence

STORAGE = """STORAGE AGREEMENT

This Storage Agreement is made on 7 May 2022 between Pinewharf Depots Ltd. (the "Warehouse") and
Jessop Tea Merchants LLP, as Depositor.

1. Storage
The Warehouse stores the Depositor's tea in a dry room. The Depositor shall label each chest.

2. Fees
The Depositor pays the Warehouse GBP 4 for each chest a month. The Warehouse sends an invoice.

3. Risk
The Warehouse is liable to the Depositor for loss by damp.
"""
LEASE = """LEASE

LANDLORD: Quill & Rowe Properties LLC
TENANT: Odile Marchetti

1. The Landlord lets to the Tenant the flat at 4 Mill Lane. The Tenant pays the Landlord USD 900 a
month.
2. The Landlord repairs the roof. The Tenant repairs the rest.

LANDLORD: ______ (signature)      TENANT: ______ (signature)
"""
LOAN = """借款合同

贷款人：云岭农村信用社
借款人（甲方）：周启明
担保方：和顺粮油有限公司，以下简称丙方。

第一条 贷款人向借款人发放贷款人民币三十万元。
第二条 借款人应当按月向贷款人付息，担保方承担连带责任。
第三条 争议由贷款人所在地人民法院管辖。

贷款人：（公章）          借款人：（签字）
"""
PURCHASE = """采购合同
江北仪表有限公司（甲方、买方）
西岭阀门股份有限公司（乙方、卖方）
一、乙方向甲方供应阀门二百只，甲方验收后付款。
二、乙方应当在甲方通知后七日内更换不合格的阀门。
"""
REPAIRS = """LEASE OF A HALL

This lease is made between Brook & Sons LLC and Ida Marsh.

1. The hall is let for USD 700 a month.
2. Upkeep is shared:
Landlord: Roof and outer walls.
Tenant: Windows and doors.
3. The party that causes damage (Tenant) pays for it.
4. Guarantor: Selby Trust Ltd.
"""
DIGGER = """设备租赁合同
一、出租人将挖掘机租给承租人。
二、维修分工如下：
出租人：发动机、液压系统
承租人：轮胎、油料
三、监护人（委托人）不参加签约。
"""
RESALE = """RESALE AGREEMENT

between Corvin Tools Ltd ("Seller") and Maple Hardware Inc. ("Buyer").

1. Seller buys the drills from a supplier in Asia.
2. Buyer sells them to customers in Ohio. The customer may return a drill.
"""
FORM = """房屋租赁合同
出租人（甲方）：________
承租人（乙方）：陈小满
一、租金每月____元。
"""
ADVICE = """ADVISORY AGREEMENT

This agreement is made between Norrland Energy AS and Pia Berg.

1. Ms Berg advises on wind farms. Any party agrees to keep this secret.
"""


def index_of(text: str, language: Language) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", language)
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("text", "language", "question", "name"),
    [
        (STORAGE, "en", "Who is the Warehouse?", "Pinewharf"),
        (STORAGE, "en", "Who is the depositor under this agreement?", "Jessop"),
        (LEASE, "en", "Who is the landlord?", "Quill"),
        (LEASE, "en", "What is the name of the lessee?", "Odile"),
        (LEASE, "en", "房东是谁？", "Quill"),
        (LOAN, "zh", "贷款人是谁？", "云岭"),
        (LOAN, "zh", "借款人叫什么名字？", "周启明"),
        (LOAN, "zh", "甲方是谁？", "周启明"),
        (LOAN, "zh", "保证人是谁", "和顺"),
        (LOAN, "zh", "谁是丙方？", "和顺"),
        (LOAN, "zh", "Who is the borrower?", "周启明"),
        (PURCHASE, "zh", "请问本合同的甲方是谁？", "江北"),
        (PURCHASE, "zh", "卖方是哪家公司？", "西岭"),
        (PURCHASE, "zh", "采购方的名称是什么？", "江北"),
    ],
)
def test_the_holder_of_a_role_is_quoted_first(
    text: str, language: Language, question: str, name: str
) -> None:
    evidence = find_evidence(index_of(text, language), question)
    assert evidence.answerable
    first = evidence.sentences[0]
    assert name in text[first.start : first.end]
    assert all(
        one.end <= other.start or other.end <= one.start
        for place, one in enumerate(evidence.sentences)
        for other in evidence.sentences[:place]
    )


def test_both_parties_are_quoted_where_both_are_asked_for() -> None:
    evidence = find_evidence(index_of(PURCHASE, "zh"), "合同双方是谁？")
    first = "".join(PURCHASE[one.start : one.end] for one in evidence.sentences[:2])
    assert evidence.answerable
    assert "江北" in first and "西岭" in first


@pytest.mark.parametrize(
    ("text", "language", "question"),
    [
        (STORAGE, "en", "Who is the landlord?"),
        (STORAGE, "en", "Who is the guarantor?"),
        (LOAN, "zh", "出租人是谁？"),
        (PURCHASE, "zh", "保证人是谁？"),
    ],
)
def test_a_role_that_nobody_has_is_refused(text: str, language: Language, question: str) -> None:
    assert not find_evidence(index_of(text, language), question).answerable


@pytest.mark.parametrize(
    ("question", "absent"),
    [("Who is the landlord?", ("landlord",)), ("Who is the customer?", ("customer",))],
)
def test_a_usual_role_that_stands_nowhere_is_said_to_be_absent(
    question: str, absent: tuple[str, ...]
) -> None:
    text = STORAGE.replace("in a dry room", "on its premises")
    evidence = find_evidence(index_of(text, "en"), question)
    assert not evidence.answerable
    assert evidence.absent == absent


@pytest.mark.parametrize(
    ("text", "language", "question"),
    [
        (REPAIRS, "en", "Who is the landlord?"),
        (REPAIRS, "en", "Who is the lessee?"),
        (DIGGER, "zh", "出租人是谁？"),
        (DIGGER, "zh", "Who is the tenant?"),
        (DIGGER, "zh", "委托方是谁？"),
    ],
)
def test_who_has_a_duty_is_not_introduced(text: str, language: Language, question: str) -> None:
    assert introductions(index_of(text, language), read_question(question)) == ()


def test_a_firm_is_introduced_in_a_clause_too() -> None:
    (found,) = introductions(index_of(REPAIRS, "en"), read_question("Who is the guarantor?"))
    assert "Selby" in REPAIRS[found.start : found.end]


@pytest.mark.parametrize(
    "question", ["Who is the supplier?", "Who is the customer?", "供应商是谁？"]
)
def test_a_name_that_the_contract_uses_for_others_has_no_synonyms(question: str) -> None:
    assert introductions(index_of(RESALE, "en"), read_question(question)) == ()


def test_a_line_that_is_not_filled_in_is_said_to_be_so() -> None:
    index = index_of(FORM, "zh")
    for question in ("出租人是谁？", "甲方是谁？", "Who is the landlord?"):
        evidence = find_evidence(index, question)
        assert not evidence.answerable
        assert "not filled in" in evidence.reason
    assert find_evidence(index, "承租人是谁？").answerable


def test_a_role_without_a_name_is_not_absent_where_the_line_of_the_parties_is_quoted() -> None:
    index = index_of(ADVICE, "en")
    for question in ("Who is the consultant?", "Who is Party A?"):
        query = read_question(question)
        start = ADVICE.index("This agreement")
        line = Sentence(start, ADVICE.index("\n", start), index.chunks[0], 1.0)
        assert absent_role(index, query, [line]) == ""
    assert absent_role(index, read_question("Who is the consultant?"), []) == "consultant"


def test_a_line_to_sign_on_introduces_nobody() -> None:
    lines = LEASE.splitlines(keepends=True)
    unnamed = "".join(line for line in lines if not line.startswith(("LANDLORD: Q", "TENANT: O")))
    index, query = index_of(unnamed, "en"), read_question("Who is the landlord?")
    assert introductions(index, query) == ()
    assert introductions(index_of(LEASE, "en"), query)


@pytest.mark.parametrize(
    ("question", "role"),
    [
        ("Who is our supplier?", "supplier"),
        ("Who is Party A?", "party a"),
        ("乙方是谁？", "乙方"),
        ("Who are the parties?", ""),
        ("Who is the other party?", ""),
        ("Who is responsible for repairs?", ""),
        ("谁承担运费？", ""),
        ("乙方的责任上限是多少？", ""),
    ],
)
def test_only_a_question_for_a_role_is_one(question: str, role: str) -> None:
    assert asked_role(question) == role


def test_a_role_that_is_no_usual_one_is_absent_where_no_word_begins_alike() -> None:
    text = (
        'SHED LEASE\n\nBetween Dale Sheds Ltd (the "Landlord") and Ann Roe (the "Tenant").\n\n'
        "1. Access. The Landlord may enter the shed to inspect it on two days' notice.\n"
        "2. Rent. The rent is EUR 90 a month.\n"
    )
    audited = text + "3. Accounts. The accounts are audited by Wray & Co each year.\n"
    query = read_question("Who is the auditor?")
    assert absent_role(index_of(text, "en"), query, []) == "auditor"
    assert absent_role(index_of(audited, "en"), query, []) == ""
