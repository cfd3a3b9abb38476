"""The checks: what stands in the cited text passes, everything else is marked."""

from __future__ import annotations

import random

import pytest

from app.answer.checks import check_text, foreign_words
from eval.corruption.altering import another, forms, negated
from eval.corruption.places import find_places
from retrieval.language import detect

# Written for this test. Each holds at least one thing that a lie can change.
SENTENCES = [
    "The Buyer shall pay USD 1,500,000.00 within thirty (30) days after receipt of the invoice.",
    "Either party may end this Agreement on three (3) months' notice under Section 14.2.",
    "The Supplier shall not assign any right under Clause 9 without consent of the Buyer.",
    "This Agreement takes effect on 1 March 2024 and continues for five years.",
    "Interest accrues at 0.05% per day on any amount overdue by more than 10 business days.",
    "The total liability of the Contractor will not exceed twenty percent of the Contract Price.",
    "Delivery must take place no later than December 31, 2025 at the port named in Exhibit B.",
    "The Tenant is liable for repairs of less than EUR 250 each, up to EUR 2,000 a year.",
    "Notices are deemed received two (2) days after dispatch, as stated in Article 21(c).",
    "The Licensee may not sublicense the Software except as permitted by Section 3.1(b).",
    "The warranty period is 24 months from acceptance, but not more than 30 months from delivery.",
    "If the delay exceeds 90 days, the Employer can end under Clause 44 and recover 5 percent.",
    "甲方应当在收到发票后三十日内向乙方支付人民币150万元。",
    "乙方逾期付款的，每逾期一日，应当按未付金额的万分之五支付违约金，但总额不超过合同价款的百分之十。",
    "未经甲方书面同意，乙方不得将本合同第十二条规定的义务转让给第三方。",
    "本合同自2024年3月1日起生效，有效期为5年，期满前三个月双方可以书面续签。",
    "承包人应当在10个工作日内返还预付款人民币伍佰万元整，并承担2%的利息。",
    "租赁面积为1,250平方米，月租金为每平方米85元，押金为三个月租金。",
    "任何一方可以提前60天通知对方解除合同，但依照第八条第二款应当赔偿损失的除外。",
    "保证期间为主债务履行期限届满之日起六个月，保证人承担连带责任。",
]  # fmt: skip


def marked(text: str, *spans: str, **options: object) -> list[str]:
    return [c.text for c in check_text(text, spans, **options) if not c.ok]  # type: ignore[arg-type]


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_true_sentence_is_not_marked(sentence: str) -> None:
    assert marked(sentence, sentence) == []


def lies(sentence: str, seed: int) -> list[str]:
    """The sentence with one value changed, for each value, and with one negation changed."""
    chance, language = random.Random(seed), detect(sentence)
    made = []
    for place in find_places(sentence, language):
        written = sentence[place.start : place.end]
        other = chance.choice(forms(another(place, language, chance), language, written))
        made.append(sentence[: place.start] + other + sentence[place.end :])
    turned = negated(sentence, language, chance)
    return [*made, turned[0]] if turned else made


@pytest.mark.parametrize("sentence", SENTENCES)
def test_every_seeded_lie_is_marked(sentence: str) -> None:
    made = [lie for seed in range(6) for lie in lies(sentence, seed)]
    assert made
    assert [lie for lie in made if not marked(lie, sentence)] == []


REWORDED = [
    (SENTENCES[0], "The price of $1.5 million is due 30 days after the invoice."),
    (SENTENCES[1], "A party can end it with 3 months' notice (Section 14.2)."),
    (SENTENCES[3], "It starts on March 1, 2024 and runs for 60 months."),
    (SENTENCES[3], "It starts in March 2024."),
    (SENTENCES[12], "乙方收到1,500,000元，期限为30天。"),
    (SENTENCES[12], "The price of RMB 1.5 million is due within thirty days."),
    (SENTENCES[13], "违约金为每日0.05%，上限为10%。"),
    (SENTENCES[15], "The contract takes effect on 2024-03-01 for five years."),
    (SENTENCES[16], "预付款为500万元。"),
]


@pytest.mark.parametrize(("span", "text"), REWORDED, ids=lambda pair: pair[:24])
def test_the_same_figures_in_another_form_pass(span: str, text: str) -> None:
    assert [c for c in check_text(text, [span]) if not c.ok] == []


WRONG = [
    (SENTENCES[0], "The price is EUR 1,500,000.", "EUR 1,500,000"),
    (SENTENCES[0], "It is due within 30 business days.", "30 business days"),
    (SENTENCES[1], "The notice period follows from Section 14.3.", "Section 14.3"),
    (SENTENCES[3], "It takes effect on 3 January 2024.", "3 January 2024"),
    (SENTENCES[4], "Interest is 0.05 a day.", "0.05"),
    (SENTENCES[12], "甲方支付150元。", "150元"),
    (SENTENCES[13], "违约金为每日千分之五。", "千分之五"),
    (SENTENCES[14], "依照第十三条。", "第十三条"),
    (SENTENCES[0], "Acme Holdings pays.", "Holdings"),
]


@pytest.mark.parametrize(("span", "text", "wrong"), WRONG, ids=lambda value: value[:24])
def test_what_does_not_stand_there_is_marked(span: str, text: str, wrong: str) -> None:
    assert wrong in marked(text, span)


def test_a_figure_in_the_wrong_place_is_marked_though_it_stands_in_the_text() -> None:
    span = "The Buyer shall pay within 30 days and the Seller shall deliver within 60 days."
    swapped = "The Buyer shall pay within 60 days and the Seller shall deliver within 30 days."
    assert marked(swapped, span)


def test_exchanged_parties_are_marked() -> None:
    assert marked("乙方应当向甲方支付货款。", "甲方应当向乙方支付货款。")


@pytest.mark.parametrize(
    ("span", "text"),
    [
        ("The Tenant may sublet the premises.", "The Tenant shall sublet the premises."),
        ("The fee is at least 5% of sales.", "The fee is at most 5% of sales."),
        ("乙方可以解除合同。", "乙方应当解除合同。"),
        ("违约金不超过总价的10%。", "违约金不低于总价的10%。"),
    ],
)
def test_duties_and_bounds_turned_around_are_marked(span: str, text: str) -> None:
    assert marked(text, span)


def test_the_clause_that_is_cited_may_be_named() -> None:
    assert marked("Clause 12.3 limits it.", "Liability is limited.", labels=["12.3(b)"]) == []
    assert marked("Clause 12.4 limits it.", "Liability is limited.", labels=["12.3(b)"])


def test_a_name_that_only_the_question_has_is_marked() -> None:
    assert marked("The fee is payable monthly by Acme.", "The fee is payable monthly.") == ["Acme"]


def test_checks_point_into_the_answer() -> None:
    lead = "“…” (Clause 2) [1]\n\n"
    text = "The price is EUR 7 on 2 May 2024."
    for check in check_text(text, ["nothing"], offset=len(lead)):
        assert (lead + text)[check.start : check.end] == check.text
        assert not check.ok
        assert check.note


def test_foreign_words_counts_what_is_not_in_the_text() -> None:
    span = "The governing law is the law of Hong Kong."
    assert foreign_words("Governing law: Hong Kong.", [span]) == 0
    assert foreign_words("Dinosaurs roamed ancient valleys.", [span]) == 1


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("The dealership is exclusive.", "The dealership granted hereby is nonexclusive."),
        ("It has exclusive rights.", "A non-exclusive right to resell the Goods is granted."),
        ("The permit is transferable.", "The permit is personal and nontransferable."),
        ("经销权是独家的。", "甲方授予乙方在本省非独家的经销权。"),
    ],
)
def test_a_word_is_not_supported_by_its_denial(text: str, span: str) -> None:
    failed = [check for check in check_text(text, [span]) if not check.ok]
    assert {check.kind for check in failed} == {"negation"}


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("The dealership is nonexclusive.", "The dealership is non-exclusive."),
        ("The dealership is not exclusive.", "The dealership is nonexclusive."),
    ],
)
def test_a_denial_in_another_spelling_is_supported(text: str, span: str) -> None:
    assert all(check.ok for check in check_text(text, [span]))
