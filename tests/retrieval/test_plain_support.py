"""A plain question about a learned matter is judged by the matter's wording too."""

from __future__ import annotations

from functools import lru_cache

import pytest

from retrieval import support
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.types import Document, DocumentPage

DEALERSHIP = """DEALER AGREEMENT

This Dealer Agreement is made as of 4 May 2021 by and between Harbour Mills Ltd. ("Mill") and
Fenwick Foods Inc. ("Dealer").

1. Appointment
1.1 Mill appoints Dealer to resell the Products in the Region and Dealer accepts.
1.2 Dealer shall keep a sales office in the Region at its own cost.

2. Prices and payment
2.1 The price of each Product is stated in the price list in force on the date of the order.
2.2 Dealer shall pay each invoice within thirty (30) days after its date.
2.3 Freight and customs fees are borne by Dealer.

3. Term and termination
3.1 This Agreement begins on the date first written above and ends on 31 December 2024.
3.2 Either party may terminate this Agreement on written notice if the other party is in material
breach and does not cure the breach within twenty (20) days after notice.
3.3 On termination Dealer shall return all price lists and samples to Mill.

4. Governing law
This Agreement is governed by the laws of the State of Oregon.

5. Licence and software
5.1 Mill grants Dealer a licence to use the ordering software during the term. Dealer shall not
copy the source code.
5.2 The licence fee is USD 200 per month and the training fee is USD 900 per employee trained.
5.3 Upon termination the licence ends and Dealer shall pay all fees that are due up to the date of
termination.

6. Employees
6.1 Each party pays its own employees. Dealer's employees shall attend the training that Mill
offers.
6.2 Mill may refuse a person as an employee of the sales office for good cause.

7. Sale of the business
7.1 Dealer shall notify Mill first of any offer to buy the business of Dealer, and Mill may refuse
the new owner as a dealer.
7.2 No party is liable for indirect damages. Liability for damages is limited to the fees paid in
the last year.

8. Warranty
8.1 Mill warrants that Products conform to the list at delivery. Dealer shall give notice of
defects without delay.
"""
WITH_FEE = DEALERSHIP.replace(
    "3.3 On termination",
    "3.3 If Dealer terminates this Agreement early, Dealer shall pay Mill, as liquidated damages "
    "and not as a penalty, a termination fee of USD 25,000.\n3.4 On termination",
)
WITH_PERIOD = DEALERSHIP.replace(
    "conform to the list at delivery.", "conform to the list for a warranty period of one (1) year."
)
WITH_RIGHTS = DEALERSHIP.replace(
    "4. Governing law",
    "4. Records\nDealer shall keep complete books and records, and Mill may audit and inspect them "
    "on reasonable notice once in each calendar year.\n\n5. Governing law",
)


@lru_cache
def index_of(text: str) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", "en")
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    "question",
    [
        "What is the termination fee?",
        "Is there a termination fee?",
        "Is there a right of first refusal?",
        "Is the source code held in escrow?",
        "May a party hire the other's employees?",
        "What is the warranty period?",
    ],
)
def test_a_plain_question_about_what_is_not_there_is_refused(question: str) -> None:
    assert not find_evidence(index_of(DEALERSHIP), question).answerable


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        (WITH_FEE, "What is the termination fee?", "termination fee of USD 25,000"),
        (WITH_FEE, "Are there liquidated damages?", "as liquidated damages"),
        (WITH_PERIOD, "What is the warranty period?", "warranty period of one (1) year"),
        (WITH_RIGHTS, "Does a party have audit rights?", "may audit and inspect"),
        (DEALERSHIP, "When does the agreement end?", "ends on 31 December 2024"),
        (DEALERSHIP, "Which law governs the agreement?", "State of Oregon"),
    ],
)
def test_a_plain_question_about_what_is_there_is_answered(
    text: str, question: str, words: str
) -> None:
    evidence = find_evidence(index_of(text), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert words in text[best.start : best.end]


def test_the_wording_of_the_matter_can_only_lower_support(monkeypatch: pytest.MonkeyPatch) -> None:
    index = index_of(DEALERSHIP)
    questions = ("Is there a right of first refusal?", "When does the agreement end?")
    both = [find_evidence(index, question).support for question in questions]
    monkeypatch.setattr(support, "_DOUBT", 0.0)
    own = [find_evidence(index, question).support for question in questions]
    assert all(one <= other for one, other in zip(both, own, strict=True))
    assert both[0] < 0.5 < own[0]


def test_a_question_is_widened_by_the_words_that_it_lacks() -> None:
    own = read_question("Who gets the royalty?")
    other = read_question("Is a party required to share revenue and pay a royalty?")
    wide = own.widened(other, 0.4)
    assert wide.terms["royalti"] == own.terms["royalti"]
    assert wide.terms["revenu"] == pytest.approx(0.4 * other.terms["revenu"])
    assert wide.own == own.terms
    added = {unit.surface for unit in wide.units} - {unit.surface for unit in own.units}
    assert {"share", "revenue"} <= added and "royalty" not in added


def test_the_wording_of_the_sets_stays_as_it_is() -> None:
    index = index_of(DEALERSHIP)
    asked = (
        'Highlight the parts (if any) of this contract related to "Audit Rights" that should be '
        "reviewed by a lawyer. Details: Does a party have the right to audit the books, records, "
        "or physical locations of the counterparty to ensure compliance with the contract?"
    )
    query = read_question(asked)
    wide = index.worded(query)
    assert wide.units == query.units
    assert wide.terms == query.terms


def test_a_question_about_no_learned_matter_stays_as_it_is() -> None:
    query = read_question("Who bears freight and customs fees?")
    assert index_of(DEALERSHIP).worded(query) is query


def test_the_words_of_a_matter_find_what_a_plain_question_does_not_name() -> None:
    text = DEALERSHIP.replace(
        "7.2 No party is liable for indirect damages.",
        "7.2 Dealer shall not contest the validity of the marks of Mill.",
    )
    asked = "May a party challenge the other's intellectual property?"
    evidence = find_evidence(index_of(text), asked)
    best = evidence.sentences[0]
    assert evidence.answerable
    assert "contest the validity" in text[best.start : best.end]


@pytest.mark.parametrize(
    "question", ["合同名称是什么？", "这份合同叫什么？", "What is this contract called?"]
)
def test_the_title_answers_who_asks_for_it(question: str) -> None:
    text = DEALERSHIP
    if question > "\u3400":
        text = (
            "水泵经销合同\n甲方：青石水泵厂\n乙方：白河商行\n第一条 商品\n商品名称以清单为准。\n"
            "第二条 价款\n价款按合同附件支付。\n"
        )
    evidence = find_evidence(index_of(text), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert text[best.start : best.end].startswith(
        ("水泵经销合同", "DEALER AGREEMENT", "This Dealer")
    )


def test_another_name_is_not_the_title() -> None:
    text = "水泵经销合同\n第一条 价款\n价款五千元，三十日内支付。\n第二条 运输\n乙方自提。\n"
    assert not find_evidence(index_of(text), "仓库管理员叫什么名字？").answerable


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "1. Price\nThe price is EUR 5.\n\n2. Delivery\nGoods are delivered at once.\n",
            "What is the price?",
        ),
        (
            "SERVICES AGREEMENT\n\nMADE on 1 May 2024 between Alpha Ltd and Beta Ltd\n\n"
            "1. Term\n\nThis Agreement remains in force for three years from the date above.\n\n"
            "2. Fees\n\nThe Customer shall pay GBP 500 a month within thirty days.\n",
            "How long is the agreement in force?",
        ),
    ],
)
def test_what_the_quote_says_word_for_word_is_not_doubted(text: str, question: str) -> None:
    assert find_evidence(index_of(text), question).answerable
