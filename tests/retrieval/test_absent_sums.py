"""A sum that a contract never names is not answered with another one, one that it names in other
words is."""

from __future__ import annotations

from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plan import find_evidence
from retrieval.sum_kin import sum_asked
from retrieval.types import Document, DocumentPage, Language, Sentence

SOFTWARE = """SUBSCRIPTION AGREEMENT

between Norwood Ltd (the "Provider") and Isla Brandt (the "Customer").

1. Service. The Provider makes the scheduling software available to the Customer.
2. Fees. The Customer pays a service fee of EUR 450 per month, in advance.
3. Help. The Provider answers requests within two working days.
4. Term. This Agreement runs for one year. Either party may terminate it on 60 days' notice.
"""
PHOTOS = """WEDDING PHOTOGRAPHY

between Norwood Ltd (the "Photographer") and Isla Brandt (the "Couple").

1. Day. The Photographer takes pictures on 2 August 2025.
2. Fee. The fee is EUR 1,900. A booking retainer of EUR 400 is paid on signing.
3. Travel. Travel beyond 50 km costs EUR 0.40 per km.
"""
PUMPS = """SUPPLY AGREEMENT

between Norwood Ltd (the "Supplier") and Isla Brandt (the "Buyer").

1. Goods. The Supplier delivers 400 pumps.
2. Price. The price is EUR 310 per pump. The Buyer pays within 45 days of invoice.
3. Delay. For each week of late delivery the Supplier pays liquidated damages of 0.5% of the price
of the delayed goods, at most 5%.
"""
CARRIED = PUMPS.replace("3. Delay.", "3. Carriage. Carriage costs EUR 1,150 per truck.\n4. Delay.")
HOTEL = """GROUP BOOKING TERMS

The Hotel ("Hotel") and Alder Tours Ltd ("Organiser") agree as follows.

1. Rooms: 30 double rooms for four nights at EUR 96 per room and night.
2. A first payment of EUR 2,000 is due by 1 March.
3. Sums paid after their due date carry interest of 5% a year.
4. Each guest pays a city tax of EUR 2 a night. Pets are charged EUR 15 a night.
"""
LOAN = """LOAN AGREEMENT

between Norwood Ltd (the "Lender") and Isla Brandt (the "Borrower").

1. Loan. The Lender lends the Borrower EUR 80,000.
2. Interest. The loan bears interest at 4.5% per annum.
3. Arrangement fee. The Borrower pays an arrangement fee of EUR 600 on drawdown.
"""
OVERDUE = (
    LOAN + "4. Overdue sums. On any amount not paid when due the Borrower owes 9.5% interest.\n"
)
STORE = """SELF-STORAGE AGREEMENT

between Norwood Ltd (the "Operator") and Isla Brandt (the "Customer").

1. Unit. The Customer may use unit 17.
2. Charges. The storage charge is GBP 85 every four weeks. An administration fee of GBP 20 is due.
3. Late. If a payment arrives more than five days after the due date, GBP 15 is added.
"""
PACKING = """设备买卖合同

甲方：东泰机械有限公司
乙方：宏光食品有限公司

第一条 甲方向乙方出售包装机三台。
第二条 总价为人民币135,000元，货到后三十日内付清。
第三条 每台设备的包装费为300元。
"""
FLAT = """房屋租赁合同

甲方：周敏
乙方：何立

第一条 甲方将房屋出租给乙方居住。
第二条 租金为每月3,200元，每月五日前支付。
第三条 乙方签约时向甲方支付押金6,400元。
第四条 物业费每月180元，由乙方承担。
"""


@lru_cache
def index_of(text: str) -> SearchIndex:
    clauses = outline(text)
    language: Language = "zh" if "甲方" in text else "en"
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", language)
    return SearchIndex.build(text, split(document, clauses), clauses)


def words_of(text: str, sentence: Sentence) -> str:
    return text[sentence.start : sentence.end]


@pytest.mark.parametrize(
    ("text", "question"),
    [
        # The document has no word of the sum.
        (SOFTWARE, "How much is the setup fee?"),
        (SOFTWARE, "How much is the corkage fee?"),
        (SOFTWARE, "What is the cleaning fee?"),
        (PHOTOS, "What is the licence fee?"),
        (PUMPS, "What is the cancellation fee?"),
        (PACKING, "安装费多少钱？"),
        # The document has one, and its figures are others'.
        (SOFTWARE, "What is the cancellation fee?"),
        (SOFTWARE, "How much is the cancellation charge?"),
        (PUMPS, "How much is the delivery fee?"),
        (PUMPS, "How much are the shipping costs?"),
        (FLAT, "定金是多少？"),
    ],
)
def test_a_sum_that_the_contract_never_names_is_not_answered_with_another(
    text: str, question: str
) -> None:
    evidence = find_evidence(index_of(text), question)
    assert not evidence.answerable
    assert "another sum" in evidence.reason
    assert evidence.hits


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (SOFTWARE, "How much is the service fee?", "EUR 450"),
        (LOAN, "How much is the arrangement fee?", "EUR 600"),
        (LOAN, "What is the interest rate?", "4.5%"),
        (STORE, "What is the administration fee?", "GBP 20"),
        (PUMPS, "How much is the price?", "EUR 310"),
        (FLAT, "押金多少？", "6,400"),
        (FLAT, "物业费是多少？", "180"),
    ],
)
def test_a_sum_that_the_contract_names_is_answered(text: str, question: str, said: str) -> None:
    evidence = find_evidence(index_of(text), question)
    assert evidence.answerable
    assert said in words_of(text, evidence.sentences[0])


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (OVERDUE, "What is the late payment fee?", "9.5%"),
        (OVERDUE, "How much is the penalty for late payment?", "9.5%"),
        (HOTEL, "What is the fee for late payment?", "5% a year"),
        (HOTEL, "Is there a late payment fee?", "5% a year"),
        (STORE, "How much is the late fee?", "GBP 15"),
        (CARRIED, "How much is the delivery fee?", "EUR 1,150"),
        (CARRIED, "How much are the shipping costs?", "EUR 1,150"),
    ],
)
def test_a_sum_in_other_words_leads_before_another_sum(text: str, question: str, said: str) -> None:
    evidence = find_evidence(index_of(text), question)
    assert evidence.answerable
    assert said in words_of(text, evidence.sentences[0])


@pytest.mark.parametrize(
    "said",
    [
        "Past due cash payments (i.e., payments due more than 30 days after receipt of the invoice)"
        " shall bear interest at the rate of one (1%) percent per month.",
        "Any late payment will accrue a late payment fee of [***] per month.",
        "Failure by the Customer to meet the payment terms results in interest on any unpaid sum of"
        " 2% a month.",
    ],
)
def test_a_late_payment_fee_in_a_contracts_own_words_is_answered(said: str) -> None:
    text = SOFTWARE.replace("3. Help.", f"3. Invoices. {said}\n4. Help.")
    evidence = find_evidence(index_of(text), "What is the late payment fee?")
    assert evidence.answerable
    assert said[:20] in words_of(text, evidence.sentences[0])


def test_default_alone_speaks_of_no_late_payment() -> None:
    said = "On termination for default the Customer shall pay USD 900 to the Provider."
    text = SOFTWARE.replace("4. Term.", f"4. Default. {said}\n5. Term.")
    for question in ("What is the late payment fee?", "How much is the late fee?"):
        assert not find_evidence(index_of(text), question).answerable


def test_what_is_owed_for_late_delivery_is_no_late_payment_fee() -> None:
    for question in ("What is the late payment fee?", "How much is the penalty for late payment?"):
        assert not find_evidence(index_of(PUMPS), question).answerable


@pytest.mark.parametrize(
    "question",
    [
        "What is the fee?",
        "How much is the monthly charge?",
        "How much is the service fee?",
        "How much is the principal amount?",
        "How much is the landlord's fee?",
        "How much is the total price?",
        "What is the notice period?",
        "What is the price of the car?",
        "总金额是多少？",
    ],
)
def test_a_name_that_tells_no_sum_from_others_is_not_judged(question: str) -> None:
    assert sum_asked(question) is None


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("How much is the check-out fee?", "The checkout fee is GBP 90."),
        ("How much is the checkout fee?", "The check-out fee is GBP 90."),
        ("How much is the corkagge fee?", "The corkage fee is GBP 90."),
        ("How much is the enrolment fee?", "Enrolling costs GBP 90, a fee due once."),
    ],
)
def test_a_name_spelled_otherwise_is_the_same(question: str, said: str) -> None:
    text = (
        f"TERMS\n\n1. Use. The guest uses the hall.\n2. Money. {said}\n3. Law. Irish law applies.\n"
    )
    assert "another sum" not in find_evidence(index_of(text), question).reason


@given(st.text(max_size=100))
def test_any_question_is_read_for_its_sum(question: str) -> None:
    asked = sum_asked(question)
    assert asked is None or (asked.name and (asked.kin is not None or asked.telling))


@pytest.mark.parametrize(
    "told",
    [
        "Interest of 4.5% per annum is charged on the outstanding principal.",
        "If the Provider does not complete the works on time, it pays EUR 300 per day.",
        "If delivery is delayed, the Provider pays the Customer 0.5% of the price per week.",
        "If the Customer pays on time, a discount of 2% is granted.",
        "The Customer pays the rent of EUR 900 in time each month.",
        "For outstanding work the Provider pays a bonus of EUR 500.",
        "Late check-out costs a fee of EUR 20.",
        "Unpaid leave reduces the pay by EUR 90 a day.",
        "Where the goods arrive late, the Customer is owed 1% of the price.",
        "A vehicle overdue for service is charged EUR 120.",
        "The activation fee of EUR 40 is not payable by members.",
        "VAT of 19% is not paid by exempt Customers.",
        "The Provider charges EUR 80 for each visit if the parcel was not received.",
        "A fee of EUR 25 is charged for every item that is not received back.",
        "The Customer pays a fee of EUR 30 for a late check-out.",
        "The Provider charges EUR 60 for delayed appointments.",
    ],
)
def test_what_is_late_but_no_payment_is_no_late_payment(told: str) -> None:
    text = f"{SOFTWARE}5. Other. {told}\n6. Law. Irish law applies.\n"
    for question in ("What is the late payment fee?", "Is there a late payment fee?"):
        assert not find_evidence(index_of(text), question).answerable


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the late payment fee?", "If the Buyer defaults on payment, a fee of 9% is owed."),
        ("How much is the fee for late payment?",
         "For each day of delay in payment a fee of EUR 10 is charged."),
        ("What is the delivery fee?", "The cost of delivery is EUR 95."),
        ("What is the late cancellation fee?",
         "Cancellations within 48 hours of the appointment are charged at 50% of the fee."),
    ],
)  # fmt: skip
def test_a_sum_in_other_words_is_still_told(question: str, told: str) -> None:
    text = f"{SOFTWARE}5. Other. {told}\n6. Law. Irish law applies.\n"
    evidence = find_evidence(index_of(text), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert told in text[best.start : best.end + 1]


def test_paying_in_advance_is_no_deposit() -> None:
    assert not find_evidence(index_of(SOFTWARE), "What is the deposit?").answerable


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("What is the delivery fee?", "Delivery is at the Provider's expense."),
        ("What is the early termination fee?",
         "The termination fee equals the remaining fees of the term."),
    ],
)  # fmt: skip
def test_a_sum_told_beside_another_one_is_not_refused(question: str, told: str) -> None:
    text = SOFTWARE.replace("per month, in advance.", f"per month. {told}")
    evidence = find_evidence(index_of(text), question)
    best = evidence.sentences[0]
    assert evidence.answerable and told[:-1] in text[best.start : best.end + 1]


def test_interest_in_percentage_points_tells_a_late_payment_fee() -> None:
    told = (
        "If a party pays a sum late, it owes interest at four percentage points over the base rate."
    )
    text = PUMPS + f"4. Interest. {told}\n"
    best = find_evidence(index_of(text), "What is the late payment fee?").sentences[0]
    assert told[:-1] in text[best.start : best.end + 1]
