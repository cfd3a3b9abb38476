"""Key terms of short contracts: values, places, blanks, conflicts, and what is not stated."""

from __future__ import annotations

from typing import get_args

import pytest

from app.terms.extraction import find_terms
from app.terms.types import KeyTerm, TermName
from retrieval import chunk
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.language import detect
from retrieval.types import Document, DocumentPage

ENGLISH = """SUPPLY AGREEMENT

This Supply Agreement (the "Agreement") is made as of March 1, 2024 (the "Effective Date") by and
between Acme Tools, Inc., a Delaware corporation with its office at 12 Mill Road, Dover
("Supplier"), and Blue River Foods LLC, an Ohio limited liability company ("Buyer").

1. Term
1.1 This Agreement shall commence on the Effective Date and shall continue for two (2) years.
1.2 This Agreement shall automatically renew for successive one-year terms unless either party
gives notice of non-renewal at least ninety (90) days prior to the end of the term.

2. Price
The total price is EUR 1,250,000.00. Buyer shall pay each invoice within 30 days after receipt.

3. Termination
Either party may terminate this Agreement for convenience upon sixty (60) days' prior written
notice.

4. Liability
In no event shall the total liability of Supplier exceed USD 500,000.

5. Law
This Agreement shall be governed by the laws of the State of New York, without regard to its
conflict of laws rules. All disputes shall be finally settled by arbitration in Albany.
"""
CHINESE = """设备采购合同

甲方（买方）：青禾乳业股份有限公司
乙方（卖方）：苏州恒岳智能装备有限公司
签订日期：2025年5月16日

第一条 合同价款
本合同总价为人民币150万元。甲方应于收到发票后三十日内付款。

第二条 违约责任
乙方逾期交货的，每逾期一日支付合同总价千分之一的违约金，累计不超过合同总价的5%。

第三条 期限
本合同有效期为三年，自双方签字盖章之日起生效。甲方可以提前45日书面通知乙方解除合同。

第四条 争议
本合同适用中华人民共和国法律。因本合同产生的争议，提交上海仲裁委员会仲裁。
"""
FORM = """保管合同

存货方：＿＿＿＿＿＿
保管方：
签订日期：　　　年　　月　　日

第一条 本合同总价为　　　　元，存货方应于　　天内付款。
第二条 本合同有效期限为　　　年　　月　　日。
"""


def terms(text: str) -> dict[TermName, KeyTerm]:
    clauses, pages = outline(text), (DocumentPage(1, 0, len(text)),)
    document = Document(text, pages, "x", "text/plain", detect(text))
    index = SearchIndex.build(text, chunk.split(document, clauses), clauses)
    return {term.name: term for term in find_terms(index, clauses, pages)}


def values(found: dict[TermName, KeyTerm], name: TermName) -> list[str | None]:
    return [value.value for value in found[name].values]


@pytest.fixture(scope="module")
def english() -> dict[TermName, KeyTerm]:
    return terms(ENGLISH)


@pytest.fixture(scope="module")
def chinese() -> dict[TermName, KeyTerm]:
    return terms(CHINESE)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("parties", ["Acme Tools, Inc.", "Blue River Foods LLC"]),
        ("agreement_date", ["2024-03-01"]),
        ("effective_date", ["2024-03-01"]),
        ("term", ["24 month"]),
        ("renewal_notice", ["90 day"]),
        ("amounts", ["1250000 EUR"]),
        ("payment_period", ["30 day"]),
        ("termination_for_convenience", ["60 day"]),
        ("liability_cap", ["500000 USD"]),
        ("governing_law", ["New York"]),
    ],
)
def test_english_values(
    english: dict[TermName, KeyTerm], name: TermName, expected: list[str]
) -> None:
    assert values(english, name) == expected
    assert english[name].state == "stated" and not english[name].conflicting


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("parties", ["青禾乳业股份有限公司", "苏州恒岳智能装备有限公司"]),
        ("agreement_date", ["2025-05-16"]),
        ("amounts", ["1500000 CNY"]),
        ("payment_period", ["30 day"]),
        ("liability_cap", ["5 %"]),
        ("liquidated_damages", ["0.1 %", "5 %"]),
        ("term", ["36 month"]),
        ("termination_for_convenience", ["45 day"]),
        ("governing_law", ["中国"]),
    ],
)
def test_chinese_values(
    chinese: dict[TermName, KeyTerm], name: TermName, expected: list[str]
) -> None:
    assert values(chinese, name) == expected


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, FORM])
def test_every_place_is_the_text_at_its_offsets(text: str) -> None:
    found = terms(text)
    assert list(found) == list(get_args(TermName))
    for term in found.values():
        for value in term.values:
            for place in (value.words, value.passage, *value.names):
                assert text[place.start : place.end] == place.text
            assert value.passage.start <= value.words.start <= value.words.end
            assert value.words.end <= value.passage.end


def test_parties_have_their_defined_names_and_clauses_are_cited(
    english: dict[TermName, KeyTerm], chinese: dict[TermName, KeyTerm]
) -> None:
    assert [[name.text for name in one.names] for one in english["parties"].values] == [
        ["Supplier"],
        ["Buyer"],
    ]
    assert [name.text for name in chinese["parties"].values[0].names] == ["甲方", "买方"]
    assert english["term"].values[0].words.clause == "1.1"


def test_what_is_not_there_is_not_stated(english: dict[TermName, KeyTerm]) -> None:
    term = english["liquidated_damages"]
    assert term.state == "not_stated" and term.values == () and term.reason
    bare = terms(ENGLISH.split("5. Law")[0].replace("State of New York", "") + "\n")
    assert bare["governing_law"].state == "not_stated"
    assert bare["disputes"].state == "not_stated"


@pytest.mark.parametrize("name", ["parties", "agreement_date", "amounts", "payment_period", "term"])
def test_blanks_of_a_form_are_no_values(name: TermName) -> None:
    term = terms(FORM)[name]
    assert term.state == "left_blank"
    assert term.values and all(one.blank and one.value is None for one in term.values)


def test_two_laws_conflict() -> None:
    text = ENGLISH + (
        "\nSchedule A\nThis Agreement shall be governed by the laws of the State of Texas.\n"
    )
    term = terms(text)["governing_law"]
    assert term.conflicting and [one.value for one in term.values] == ["New York", "Texas"]
    same = ENGLISH + "\nSchedule A\nThis Agreement is governed by the laws of New York.\n"
    assert not terms(same)["governing_law"].conflicting


@pytest.mark.parametrize(
    "sentence",
    [
        "If any provision is held invalid, it shall be construed under applicable law.",
        "Expiration or termination of this Agreement for any reason shall not release either"
        " party from liability.",
        "Neither party is liable for failure to perform due to force majeure.",
    ],
)
def test_neighbouring_wordings_state_nothing(sentence: str) -> None:
    found = terms(f"1. General\n{sentence}\n")
    for name in ("governing_law", "termination_for_convenience", "liability_cap"):
        assert found[name].state == "not_stated"


def test_long_runs_of_blanks_take_no_long_time() -> None:
    text = "存货方：" + "＿" * 5000 + "\n" + "　" * 5000 + "\n签订日期：" + " _" * 3000 + "\n"
    assert terms(text)["agreement_date"].state in ("left_blank", "not_stated")


def test_empty_text() -> None:
    assert {term.state for term in terms("").values()} == {"not_stated"}


def test_signature_lines_and_definitions_are_no_parties() -> None:
    text = (
        "技术合同\n青禾技术进口总公司（以下简称受方）为一方，＿＿＿国＿＿＿公司（以下简称供方）为另一方。\n"
        "设计单位：指发包人委托的负责设计的单位。\n受方：\n供方：\n甲方（盖章）：　　乙方\n"
    )
    found = terms(text)["parties"]
    assert [(one.value, one.blank) for one in found.values] == [
        ("青禾技术进口总公司", False),
        (None, True),
    ]


def test_words_of_the_other_law_are_no_governing_law() -> None:
    found = terms("技术合同\n第一条 乙方在中国注册的商标受中国法律保护。\n")
    assert found["governing_law"].state == "not_stated"


def test_printed_century_is_no_duration() -> None:
    text = "劳动合同\n第一条 本合同期限自一九　　年　　月　　日起至一九　　年　　月　　日止。\n"
    found = terms(text)["term"]
    assert found.state == "left_blank"
    assert all(one.value is None for one in found.values)


def test_a_sentence_is_no_name() -> None:
    text = (
        "CLOUD TERMS\n\n1. Order\nConflicts between parts of the Agreement are governed by"
        ' Section 2. Customer may use the Service ("Permitted Use").\n'
    )
    assert terms(text)["parties"].state == "not_stated"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1. Fees\nIn consideration of the fee paid, the parties agree as follows:\n\n2. Law\nx",
         "amounts"),
        ("1. Fees\nLicense fees for the Products shall be allocated as follows:\n\nGross | Share\n",
         "amounts"),
        ("1. Fees\nThe Buyer shall pay the prices stated below:\nCoil | 5\n", "amounts"),
        ("1. Fees\nThe Buyer shall pay these charges:\n(a) freight; and\n(b) insurance.\n",
         "amounts"),
        ("1. Fees\nPurchase price:\nUSD 100 for each coil\n", "amounts"),
        ("一、价款\n合同价款及支付方式如下：\n（1）设备款；\n（2）服务费。", "amounts"),
        ("一、价款\n合同总价为：\n人民币壹佰元整。", "amounts"),
        ("一、价款\n合同金额为：\n伍万元整\n二、交货\n乙方交货。", "amounts"),
        ("第二条 期限\n本合同有效期为：\n两年\n第三条 交货\n乙方交货。", "term"),
        ("1. Fees\nPrice:\ntwelve thousand euros\n2. Law\nThe parties agree.", "amounts"),
        ("1. FEES\nPURCHASE PRICE:\nTWELVE THOUSAND EUROS\n2. LAW\nThe parties agree.", "amounts"),
        ("一、违约\n乙方逾期交货的违约金按下列标准：\n1．不足一周的，免付；\n",
         "liquidated_damages"),
    ],
)  # fmt: skip
def test_what_goes_on_in_a_list_is_not_blank(text: str, name: TermName) -> None:
    assert not any(value.blank for value in terms(text)[name].values)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("1. Fees\nPurchase price:\n\n2. Law\nThe parties agree.", "amounts"),
        ("1. Fees\nThe total price of the Goods is:\n\n2. Law\nThe parties agree.", "amounts"),
        ("1. Fees\nPurchase price:\nDelivery date: 1 May 2024\nThe parties agree.", "amounts"),
        ("1. Fees\nPurchase price:\n____\nThe parties agree.", "amounts"),
        ("1. FEES\nPurchase price:\nGOVERNING LAW\nThe parties agree.", "amounts"),
        ("1. Fees\nPurchase price:", "amounts"),
        ("第一条 价款\n合同总价为：\n第二条 交货\n乙方交货。", "amounts"),
        ("第一条 期限\n合同有效期限为：\n第二条 交货\n乙方交货。", "term"),
    ],
)
def test_a_label_without_a_value_is_blank(text: str, name: TermName) -> None:
    found = terms(text)[name]
    assert found.state == "left_blank" and [value.blank for value in found.values] == [True]


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("This Agreement shall have an initial term of one (1) year from the date above (the "
         '"Initial Term"), and shall thereafter automatically renew for successive two (2) year '
         "periods, unless notice is given at least ninety (90) days prior to the end of the term.",
         "renewal", ["24 month"]),
        ("This Agreement shall have an initial term of one (1) year from the date above (the "
         '"Initial Term"), and shall thereafter automatically renew for successive two (2) year '
         "periods, unless notice is given at least ninety (90) days prior to the end of the term.",
         "term", ["12 month"]),
        ("This Agreement may be extended for three years by notice given 60 days in advance.",
         "renewal", ["36 month"]),
        ("This Agreement shall automatically renew for additional terms of 6 months upon the end "
         "of the initial five year term.", "renewal", ["6 month"]),
        ("This Agreement shall continue for at least five years unless extended.",
         "term", ["60 month"]),
        ("The total liability of the Supplier shall not exceed the amount paid by the Buyer under "
         "this Agreement within the six (6) month period immediately preceding the claim.",
         "payment_period", []),
        ("Liability is limited to the fees paid within the last twelve (12) months.",
         "payment_period", []),
        ("The cap equals the fees payable within 12 months prior to the event.",
         "payment_period", []),
        ("The Buyer shall pay each invoice within 45 days after receipt.",
         "payment_period", ["45 day"]),
        ("The deposit shall be paid within 10 days prior to the commencement date.",
         "payment_period", ["10 day"]),
        ("第一条 本合同有效期为三年，期满前三个月双方可协商续签一年。", "renewal", ["12 month"]),
        ("第一条 本合同有效期为三年，期满前三个月双方可协商续签一年。", "term", ["36 month"]),
        ("第一条 期满后自动续展，每次一年，初始期限为三年。", "renewal", ["12 month"]),
        ("第一条 期满后自动续展，每次一年，首期租期三年。", "renewal", ["12 month"]),
        ("第一条 期满后自动续展，每次一年，原合同期限为三年。", "renewal", ["12 month"]),
        ("第一条 原合同期限届满后自动续展一年。", "renewal", ["12 month"]),
        ("第一条 责任以索赔前六个月内已支付的费用为限。", "payment_period", []),
        ("第一条 甲方应于收到发票后三十日内付款。", "payment_period", ["30 day"]),
    ],
)  # fmt: skip
def test_each_period_belongs_to_its_own_term(
    text: str, name: TermName, expected: list[str]
) -> None:
    found = values(terms(f"1. Terms\n{text}\n"), name)
    assert [value for value in found if value is not None] == expected
