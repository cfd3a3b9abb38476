"""Plain questions of daily work are answered by the sentence that says it in a contract's words,
and by no sentence that says it of something else."""

from __future__ import annotations

from functools import lru_cache

import pytest

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.plain_facts import answering
from retrieval.plan import find_evidence
from retrieval.query import read_question
from retrieval.types import Document, DocumentPage, Language

BREWERY = """BREWING AGREEMENT

This Brewing Agreement is made on 11 February 2023 between Tarn Brewing Ltd (the "Brewer") and
Holm Inns plc (the "Customer").

1. Beer
1.1 The Brewer brews beer for the Customer and delivers it in barrels. The Customer appoints the
Brewer on a non-exclusive basis.
1.2 The Customer bears the carriage and the insurance of the barrels.

2. Money
2.1 The price of a barrel is GBP 95. From the second year on, the Brewer is entitled to raise the
price of a barrel once a year by up to four per cent.
2.2 A brewer's helper is paid GBP 21 per hour.

3. Rights
3.1 Recipes, labels and other intellectual property made for the Customer belong to the Customer.
3.2 Each party shall hold in confidence what the other calls confidential, and for five years after
the end of this Agreement.

4. Liability
The liability of the Brewer is limited to GBP 70,000 for each year.

5. End
5.1 The Customer may terminate this Agreement on ninety days' written notice.
5.2 A party may terminate this Agreement at once where the other is in breach of it.

6. General
6.1 No change of this Agreement binds a party unless it is in writing and signed by both.
6.2 Scots law applies to this Agreement.
"""
BARE = """BREWING AGREEMENT

This Brewing Agreement is made on 11 February 2023 between Tarn Brewing Ltd (the "Brewer") and
Holm Inns plc (the "Customer").

1. Beer
1.1 The Brewer brews beer for the Customer and delivers it in barrels.
1.2 The Brewer warrants that it owns the copyright in its labels and infringes no other.

2. Money
2.1 The price of a barrel is GBP 95. A late payment bears interest at a rate that rises by two per
cent each month.
2.2 The Brewer's liability insurance is limited to GBP 5,000 for each claim.

3. End
3.1 If the Customer fails to pay, the Brewer may terminate this Agreement on ten days' notice.
3.2 The Brewer shall comply with the laws on beer.
"""
SHOP = """店铺租赁合同

出租人：白桦置业有限公司
承租人：林小雨

一、店铺位于星湖路9号，用于经营花店。
二、租金每月五千元，第二年起租金每年递增4%。
三、出租人的赔偿责任以三个月租金为限。
四、出租人可以向承租人出借人民币二万元用于装修。
"""


@lru_cache
def index_of(text: str, language: Language) -> SearchIndex:
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "d", "text/plain", language)
    return SearchIndex.build(text, split(document, clauses), clauses)


@pytest.mark.parametrize(
    ("text", "language", "question", "words"),
    [
        (BREWERY, "en", "By how much can the prices go up?", "four per cent"),
        (BREWERY, "en", "Who owns the intellectual property?", "belong to the Customer"),
        (BREWERY, "en", "What law governs?", "Scots law"),
        (BREWERY, "en", "What is the cap on the Brewer's liability?", "70,000"),
        (BREWERY, "en", "Can the customer terminate early?", "ninety days"),
        (BREWERY, "en", "What happens if one side breaches?", "in breach"),
        (BREWERY, "en", "Can the contract be changed by email?", "in writing and signed"),
        (BREWERY, "en", "What must be kept confidential?", "in confidence"),
        (BREWERY, "en", "How long does confidentiality last?", "five years"),
        (BREWERY, "en", "Who pays for shipping and insurance?", "carriage"),
        (BREWERY, "en", "Is there an exclusivity clause?", "non-exclusive basis"),
        (BREWERY, "en", "When was the contract signed?", "11 February"),
        (SHOP, "zh", "租金会涨吗？", "递增4%"),
        (SHOP, "zh", "店铺在哪里？", "星湖路"),
        (SHOP, "zh", "店铺用来做什么？", "花店"),
        (SHOP, "zh", "出租人最多赔多少？", "三个月租金为限"),
    ],
)
def test_it_is_answered_by_the_sentence_that_says_it(
    text: str, language: Language, question: str, words: str
) -> None:
    evidence = find_evidence(index_of(text, language), question)
    assert evidence.answerable
    first = evidence.sentences[0]
    assert words in text[first.start : first.end]


@pytest.mark.parametrize(
    "question",
    [
        "By how much can the prices go up?",
        "Who owns the intellectual property?",
        "What law governs?",
        "What is the cap on the Brewer's liability?",
        "Can we terminate for convenience?",
        "Can the contract be changed by email?",
        "How long does confidentiality last?",
        "Who pays the taxes?",
        "What is the hourly rate?",
        "Is there an exclusivity clause?",
        "By how much can the rent go up?",
    ],
)
def test_what_is_said_of_something_else_answers_nothing(question: str) -> None:
    assert not find_evidence(index_of(BARE, "en"), question).answerable


@pytest.mark.parametrize(
    ("question", "sentence", "answers"),
    [
        ("By how much can the rent go up?", "The rent goes up by 2 per cent a year.", True),
        ("By how much can the rent go up?", "The price goes up by 2 per cent a year.", False),
        ("Who owns the software?", "All software belongs to the Client.", True),
        ("Which law applies?", "Norwegian law applies.", True),
        ("Which law applies?", "Norwegian law applies to the Goods.", False),
        ("When is completion?", '1.2 "Completion Date" means 15 January 2025.', True),
        ("When is completion?", '1.2 "Closing Date" means 15 January 2025.', False),
        ("When is completion?", "The Retention falls due a year after the Completion Date.", False),
        ("How long does the agreement last?", '1.2 "Term" means three (3) years.', True),
        ("How long does the agreement last?", '1.2 "Term Sheet" means that of 5 May 2023.', False),
        (
            "What is the cap on the Seller's liability?",
            "The total liability of the Seller for claims under the warranties shall not exceed "
            "GBP 9,000.",
            True,
        ),
        (
            "What is the cap on the Seller's liability?",
            "The total liability of the Seller for claims of carriers shall not exceed GBP 9,000.",
            False,
        ),
        (
            "What is the cap on the Seller's liability?",
            "The Seller's liability is limited to NOK 90,000.",
            True,
        ),
        ("Who owns the software?", "All designs belong to the Client.", False),
        (
            "What is the cap on the Buyer's liability?",
            "The liability of the Seller is limited to EUR 9,000.",
            False,
        ),
        (
            "What is the cap on the Buyer's liability?",
            "The liability of either party is limited to EUR 9,000.",
            True,
        ),
        (
            "What is the liability cap?",
            "Liability includes but is not limited to EUR 9,000 for costs.",
            False,
        ),
        (
            "Can the supplier terminate for convenience?",
            "The Purchaser may terminate this Agreement on 30 days' notice.",
            False,
        ),
        (
            "Can the buyer terminate for convenience?",
            "The Purchaser may terminate this Agreement on 30 days' notice.",
            True,
        ),
        (
            "Can the buyer terminate for convenience?",
            "The Purchaser may cancel an order on 30 days' notice.",
            False,
        ),
        (
            "Can the contract be changed by email?",
            "This Agreement may be amended only by a written instrument.",
            True,
        ),
        (
            "Can the contract be changed by email?",
            "Distributor shall give written notice of any change in the ownership of Distributor "
            "under this Agreement.",
            False,
        ),
        ("Who owns the drawings?", "All drawings stay the property of the Client.", True),
        ("Who owns the drawings?", "All data stays the property of the Client.", False),
        (
            "How long does the contract last?",
            "The contract starts on 1 May 2024 and lasts three years.",
            True,
        ),
        (
            "How long does the contract last?",
            "Secrecy lasts three years after the end of the contract.",
            False,
        ),
        (
            "Does the contract renew automatically?",
            "Unless one side gives notice two months before, the contract renews automatically.",
            True,
        ),
        ("Does the contract renew automatically?", "The insurance renews automatically.", False),
        ("一共多少钱？", "机器三台，合同总价21600元。", True),
        ("一共多少钱？", "运费每箱18元，共计21600元。", False),
        ("一共多少钱？", "违约金共计不超过21600元。", False),
        ("争议怎么解决？", "争议提交昆明仲裁委员会仲裁。", True),
        ("争议怎么解决？", "乙方对货物质量有争议的，应当通知甲方。", False),
        ("运到哪里？", "乙方将货物运至甲方仓库。", True),
        ("运到哪里？", "逾期运到的，支付违约金。", False),
        ("运到哪里？", "货到签收后七日内付清。", False),
        ("乙方的责任上限是多少？", "甲方的赔偿责任以合同总价为限。", False),
        ("乙方的责任上限是多少？", "乙方的赔偿责任以合同总价为限。", True),
        ("租金每年涨多少？", "逾期支付租金的，违约金每日提高1%。", False),
        ("租金每年涨多少？", "车位租金每年提高1%。", False),
        ("价格每年涨多少？", "钢材价格上涨超过5%的，双方另行协商。", False),
        ("店铺在哪里？", "店铺位于________。", False),
        ("Who owns the patents?", "The Tenant keeps its patents in good order.", False),
        ("Who owns the designs?", "Holm owns the copyright in the designs on its bags.", False),
        ("Who owns the software?", "The Client's booking software belongs to the Client.", False),
        ("Who owns the deliverables?", "The software belongs to the Client.", False),
        ("How much may the price go up?", "The service charge rises by 2 per cent.", False),
        ("How much may the price go up?", "The prices of drinks rise by 2 per cent.", False),
        ("How much can the fee go up?", "The fee for classes rises by 2 per cent.", False),
        ("How much can the fee go up?", "The arrangement fee is raised by 2 per cent.", False),
        ("By how much can the rent go up?", "The rent rises by 2 per cent if paid late.", False),
        ("How much may the price go up?", "The price is increased by VAT of 20 per cent.", False),
        ("How long does the contract last?", "The contract goes on with heirs for a year.", False),
        (
            "How long does the contract last?",
            "The contract remains in force for two years after the Seller leaves.",
            False,
        ),
        ("Who owns the inventions?", "All inventions made before belong to the Client.", False),
        ("Who pays for insurance?", "A Buyer who cancels pays the insurance.", False),
        ("What is the liability cap?", "The bank's liability is limited to EUR 9,000.", False),
        (
            "Can the tenant leave early?",
            "The Tenant may end this lease with three months' notice.",
            True,
        ),
        (
            "Can the tenant leave early?",
            "The guarantor of the Tenant may end this lease with three months' notice.",
            False,
        ),
        ("Can I leave early?", "The Landlord may end this lease on three months' notice.", False),
        ("Can I leave early?", "Either party may end this lease on three months' notice.", True),
        (
            "Can the contract be changed?",
            "Changes of the contract price are written down.",
            False,
        ),
        (
            "How long does confidentiality last?",
            "Confidential information shall be returned two years after the end.",
            False,
        ),
        ("Which law applies?", "This lease is governed by a board under the laws of chess.", False),
        ("Which law applies?", "Data laws of Norway apply to records.", False),
        ("Which law applies?", "The laws of Norway apply to this Agreement.", True),
        (
            "What is the cap on the Buyer's liability?",
            "The liability of the Seller to the Buyer is limited to EUR 9,000.",
            False,
        ),
        (
            "What is the liability cap?",
            "The Seller's liability under its building insurance is limited to EUR 9,000.",
            False,
        ),
        (
            "Can the contract be changed?",
            "The Borrower may not amend the lease contract of its cafe unless agreed in writing.",
            False,
        ),
        (
            "What happens if one party breaches?",
            "Where staff defaults on site rules, Party A may terminate their pass.",
            False,
        ),
        ("Who pays the taxes?", "The Tenant pays the tax on its furniture.", False),
        ("Who pays the taxes?", "The Tenant pays the taxes and the insurance.", True),
        ("乙方的责任上限是多少？", "乙方损坏设施的，赔偿金额不超过原价。", False),
    ],
)
def test_the_thing_and_the_party_asked_for_must_be_meant(
    question: str, sentence: str, answers: bool
) -> None:
    judged = answering(read_question(question))
    assert judged is not None
    assert judged(sentence) is answers


@pytest.mark.parametrize(
    "question",
    [
        "Is intellectual property owned jointly?",
        "Who owns the intellectual property created under the contract?",
        "What is excluded from the liability cap?",
        "What is the hourly rate for the supervisor?",
        "How much can the membership fee go up?",
        "Is the licence exclusive?",
        "Who owns the software that the Contractor writes?",
        "What is the delivery date?",
        "质保期多长？",
        'Highlight the parts (if any) of this contract related to "Cap On Liability" that should '
        "be reviewed by a lawyer. Details: Does the contract include a cap on liability?",
    ],
)
def test_other_questions_are_left_as_they_are(question: str) -> None:
    assert answering(read_question(question)) is None


@pytest.mark.parametrize(
    "question", ["What is the liability cap?", "What is the maximum liability?"]
)
def test_a_question_for_an_amount_is_led_by_the_clause_that_states_one(question: str) -> None:
    text = """SERVICES AGREEMENT

This Agreement is made between Corrie Survey Ltd (the "Supplier") and Tay Water plc (the "Client").

1. Services
The Supplier surveys the Client's pipes every spring and reports what it finds within ten days.

2. Liability
2.1 Neither party is liable to the other for loss of profit or for any indirect or
consequential loss.
2.2 The total liability of the Supplier under this Agreement shall not exceed EUR 2 million in
each year.

3. Law
This Agreement is governed by the law of Scotland.
"""
    index = index_of(text, "en")
    evidence = find_evidence(index, question)
    assert evidence.answerable
    first = evidence.sentences[0]
    assert "EUR 2 million" in text[first.start : first.end]


def test_a_share_is_an_amount_too() -> None:
    text = """SERVICES AGREEMENT

This Agreement is made between Corrie Survey Ltd (the "Supplier") and Tay Water plc (the "Client").

1. Liability
1.1 The liability of the Supplier under this Agreement is limited to 100% of the fees paid in the
preceding twelve months.
1.2 The Supplier shall maintain liability insurance of at least USD 5 million for each claim.

2. Law
This Agreement is governed by the law of Scotland.
"""
    index = index_of(text, "en")
    first = find_evidence(index, "What is the liability cap?").sentences[0]
    assert "100%" in text[first.start : first.end]


@pytest.mark.parametrize(
    "question", ["How long does the agreement last?", "When does the contract end?"]
)
def test_the_definition_of_the_beginning_does_not_lead_for_the_end(question: str) -> None:
    text = """STALL LEASE

Made on 3 May 2024 between Ardley Markets Limited (the "Landlord") and Joan Pell (the "Tenant").

1. Definitions
1.1 "Stall" means stall 14.
1.2 "Term" means a period of four (4) years beginning on the Commencement Date.
1.3 "Commencement Date" means 1 June 2024.

2. Letting
The Landlord lets the Stall to the Tenant for the Term.

3. Break
Either party may end this Lease after the first anniversary of the Commencement Date by giving not
less than three (3) months' written notice.
"""
    evidence = find_evidence(index_of(text, "en"), question)
    assert evidence.answerable
    best = evidence.sentences[0]
    assert "four (4) years" in text[best.start : best.end]
