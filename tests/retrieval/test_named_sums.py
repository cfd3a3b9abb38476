"""A sum that is asked for by its name is answered by the sentence that states it, and by no figure
of another one."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.named_sums import states_before, states_sum
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.sum_names import asked_sum
from retrieval.types import Document, DocumentPage, Language

WORKSHOP = """WORKSHOP LEASE

Between Orrin Sands Ltd (the "Landlord") and Peregrine Looms CIC (the "Tenant").

1. Definitions
1.1 "Deposit" means the sum of GBP 2,750.
1.2 "Fit-out Contribution" means GBP 6,000.

2. Rent
2.1 The Tenant pays a yearly rent of GBP 11,000 in equal quarterly instalments of GBP 2,750.
2.2 A rent that is paid late costs the Tenant GBP 40 for each reminder.

3. Deposit
3.1 The Tenant shall pay the Deposit before it gets the keys. For a spare key it pays a further
deposit of GBP 30 for each key.
3.2 The Landlord returns the Deposit within twenty days after the end of the lease.

4. Charges
The Tenant pays a service charge of GBP 310 each month. If the yard must be cleared, the Tenant pays
a clearing fee of GBP 95.
"""
BERTH = """BERTH AGREEMENT

1. Berth. The club lets berth 12 to the member.
2. Money. The member pays an annual fee of CHF 900 and, on signing, a deposit of CHF 400.
3. Members. The membership lasts one year. The member pays CHF 60 a year for it.
4. Electricity. Electricity costs CHF 0.40 per unit.
"""
WAREHOUSE = """仓库租赁合同

出租人：江北仓储有限公司
承租人：白塔食品有限公司

第一条 租金
每月租金为人民币9,000元，按季支付。
第二条 押金
承租人应于签约时支付押金人民币18,000元，合同期满后退还。
第三条 费用
水费、电费由承租人承担，管理费每月600元。
第四条 违约
承租人逾期支付租金的，每日按欠款的千分之一支付违约金。
"""


@lru_cache
def index_of(text: str, language: Language = "en") -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", language)
    return SearchIndex.build(text, split(document, clauses), clauses)


def language_of(text: str) -> Language:
    return "zh" if text == WAREHOUSE else "en"


@pytest.mark.parametrize(
    ("text", "question", "words"),
    [
        (WORKSHOP, "How much is the deposit?", "means the sum of GBP 2,750"),
        (WORKSHOP, "How much is the security deposit?", "means the sum of GBP 2,750"),
        (WORKSHOP, "What is the deposit?", "means the sum of GBP 2,750"),
        (WORKSHOP, "How much is the fit-out contribution?", "means GBP 6,000"),
        (WORKSHOP, "How much is the rent?", "yearly rent of GBP 11,000"),
        (WORKSHOP, "How much is each instalment?", "instalments of GBP 2,750"),
        (WORKSHOP, "How much is the clearing fee?", "clearing fee of GBP 95"),
        (BERTH, "How much is the deposit?", "deposit of CHF 400"),
        (BERTH, "How much is the annual fee?", "annual fee of CHF 900"),
        (WAREHOUSE, "押金是多少？", "押金人民币18,000元"),
        (WAREHOUSE, "租金多少钱？", "租金为人民币9,000元"),
        (WAREHOUSE, "管理费多少？", "管理费每月600元"),
    ],
)
def test_the_sentence_that_states_the_sum_leads(text: str, question: str, words: str) -> None:
    evidence = find_evidence(index_of(text, language_of(text)), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert words in text[best.start : best.end]


@pytest.mark.parametrize(
    ("money", "words"),
    [
        # What names the sum with a figure in other words stays before another sum of the name.
        (
            "2. Money. The keeper pays EUR 70 a month. By way of deposit it leaves EUR 300."
            "\n3. More dogs. The keeper leaves a deposit of EUR 150 if it brings a second dog.",
            "EUR 300",
        ),
        (
            "2. Money. As deposit the keeper hands over EUR 300.\n"
            "3. Before. The former keeper paid a deposit of EUR 150.",
            "EUR 300",
        ),
        (
            "2. Money. The deposit, which is paid on signing, comes to EUR 300.\n"
            "3. Keys. For keys a deposit of EUR 150 is paid.",
            "EUR 300",
        ),
    ],
)
def test_another_sum_of_the_name_does_not_lead(money: str, words: str) -> None:
    text = f"DOG KENNEL HIRE\n\n1. Hire. The kennel is let from 2 May 2024.\n{money}\n"
    evidence = find_evidence(index_of(text), "How much is the deposit?")
    assert evidence.answerable
    best = evidence.sentences[0]
    assert words in text[best.start : best.end]


@pytest.mark.parametrize(
    ("first", "question", "sentence", "leads"),
    [
        ("The Tenant pays the Deposit.", "How much is the deposit?", "A deposit of GBP 9.", True),
        ("The Tenant pays GBP 700.", "How much is the deposit?", "A deposit of GBP 9.", False),
        ("The Tenant pays GBP 700.", "How much is the deposit?", '"Deposit" means GBP 9.', True),
        ("It is three months' rent.", "How much is the deposit?", "A deposit of GBP 9.", False),
        ("押金为三个月租金。", "押金多少？", "承租人支付押金900元。", False),
        ("GBP 7 is the deposit.", "How much is the deposit?", '"Deposit" means GBP 9.', False),
        ("承租人应支付押金。", "押金多少？", "承租人支付押金900元。", True),
        ("承租人将700元交作押金。", "押金多少？", "承租人支付押金900元。", False),
    ],
)
def test_a_first_sentence_with_a_figure_gives_way_to_a_definition_alone(
    first: str, question: str, sentence: str, leads: bool
) -> None:
    states = states_before(read_question(question), first)
    assert (states is not None and states(sentence)) is leads


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How much is the deposit?", "For a spare key it pays a deposit of GBP 30 for each key."),
        ("How much is the deposit?", "If a dog is kept, the Tenant pays a deposit of GBP 30."),
        ("How much is the deposit?", "The key deposit is GBP 30."),
        ("How much is the deposit?", "The deposit is paid with a fee of GBP 30."),
        ("How much is the fee?", "The Tenant pays a fee of GBP 30."),
        ("How much is the fee?", "The late fee is GBP 30."),
        ("How much is the price?", "The price of repairs is GBP 30."),
        ("What is the monthly rent?", "The Tenant pays a yearly rent of GBP 11,000."),
        ("How much is the rent per month?", "The rent is GBP 11,000 a year."),
        ("How much is the salary?", "The salary review in 2024 costs GBP 30."),
        ("How much is the deposit?", "The Tenant pays a deposit of GBP 30 if a dog is kept."),
        ("How much is the deposit?", "The former tenant paid a deposit of GBP 30."),
        (
            "How much is the security deposit?",
            "The former tenant paid a security deposit of GBP 3.",
        ),
        ("How much is the down payment?", "An advance payment of GBP 30 is due."),
        ("押金多少？", "钥匙押金为30元。"),
        ("押金多少？", "原承租人的押金为30元。"),
        ("押金多少？", "押金为30元，如承租人养狗。"),
        ("首付款多少？", "签约时支付定金30元。"),
        ("首付多少？", "签约时先付定金30元，首次交付前付清。"),
        ("押金多少？", "乙方逾期的，应支付押金30元。"),
        ("月租金多少？", "租金为每年9,000元。"),
    ],
)
def test_a_figure_of_something_else_states_nothing(question: str, sentence: str) -> None:
    states = states_sum(read_question(question))
    assert states is None or not states(sentence)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        ("How much is the deposit?", "A deposit of two thousand pounds is due on signing."),
        ("How much is the deposit?", 'On signing the Buyer pays USD 5,000 (the "Deposit").'),
        ("How much is the deposit?", "Deposit: EUR 500"),
        ("How much is the deposit?", "The Tenant pays SEK 900 (nine hundred kronor) as a deposit."),
        ("How much is the fee?", "The fee is GBP 30 a day."),
        ("How much is the late fee?", "If it comes late, a late fee of GBP 30 is payable."),
        ("How high is the commission?", "The Agent earns a commission of 4% of the price."),
        ("定金多少？", "买方支付合同总价的20%作为定金。"),
        ("押金是多少钱？", "押金：贰仟元整"),
    ],
)
def test_a_figure_put_to_the_name_states_the_sum(question: str, sentence: str) -> None:
    states = states_sum(read_question(question))
    assert states is not None
    assert states(sentence)


@pytest.mark.parametrize(
    "question",
    [
        "How much is due if we leave early?",
        "How much is it?",
        "How much is the fine for a late return?",
        "How long is the term?",
        "Who pays the deposit?",
        "What is the notice period?",
        "多少钱？",
        "费用是多少？",
        "押金什么时候退？",
        "钥匙的押金多少？",
        "How much is the rent per month?",
        "How much is the rent of the shed?",
        "How much does insurance cost?",
    ],
)
def test_a_question_for_more_or_less_than_a_name_asks_for_no_sum(question: str) -> None:
    assert asked_sum(question) is None


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("中介费多少？", "中介费"),
        ("交通费是多少？", "交通费"),
        ("付款手续费多少钱？", "付款手续费"),
        ("给养费多少？", "给养费"),
        ("里程费多少？", "里程费"),
        ("本金是多少？", "本金"),
        ("应付租金多少？", "应付租金"),
        ("这份合同里的押金是多少？", "押金"),
        ("合同中的押金多少？", "押金"),
        ("要交的押金是多少？", "押金"),
        ("付了的定金多少？", "定金"),
        ("押金要交多少？", "押金"),
        ("本合同的总价是多少？", "总价"),
        ("合同价款是多少？", "合同价款"),
        ("我的工资多少？", "工资"),
    ],
)
def test_a_chinese_name_is_read_whole(question: str, name: str) -> None:
    asked = asked_sum(question)
    assert asked is not None
    assert asked.names[0] == name


@given(
    st.text(max_size=80),
    st.sampled_from(["How much is the deposit?", "How much is the late fee?", "押金多少？"]),
)
def test_any_sentence_is_judged(sentence: str, question: str) -> None:
    states = states_sum(read_question(question))
    assert states is not None
    assert isinstance(states(sentence), bool)


@given(st.text(max_size=100))
def test_any_question_is_read(question: str) -> None:
    asked = asked_sum(question)
    assert asked is None or asked.names[0]
