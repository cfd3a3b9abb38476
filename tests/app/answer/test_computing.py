"""Computed figures: only from operands that are quoted, and only where they are exact."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.answer.computing import Computation, compute
from app.answer.operands import Operand
from app.types import Citation, CitationRole
from retrieval.language import detect


def cited(quote: str, role: CitationRole = "answer") -> Citation:
    return Citation(quote, "doc", "a.txt", None, None, 0, len(quote), None, (), True, role)


TERM = cited("It takes effect on the Commencement Date and runs for a period of seven years.")
START = cited('"Commencement Date" means 1 June 2025.', "definition")


@pytest.mark.parametrize(
    ("question", "quotes", "operands", "result"),
    [
        ("When does the agreement end?", [TERM, START], ("1 June 2025", "seven years"),
         "1 June 2032"),
        ("When does it expire?",
         [cited("It is effective from 31 January 2024 for a term of one month.")],
         ("31 January 2024", "one month"), "29 February 2024"),
        ("The invoice came on 3 May 2026. By when must we pay?",
         [cited("The Buyer pays within 30 days after receipt.")],
         ("3 May 2026", "30 days"), "2 June 2026"),
        ("合同什么时候到期？", [cited("本合同自2024年3月1日起生效，有效期为三年。")],
         ("2024年3月1日", "三年"), "2027年3月1日"),
        ("How many days are there between start and end?",
         [cited("Work starts on 1 March 2024 and ends on 1 March 2025.")],
         ("1 March 2024", "1 March 2025"), "365 days"),
        ("开工和竣工之间相隔多少天？", [cited("2024年2月1日开工，2024年3月1日竣工。")],
         ("2024年2月1日", "2024年3月1日"), "29天"),
        ("How many days are there between signing and delivery?",
         [cited("Signed on 1 May 2025."), cited("Delivery is due on 31 May 2025.")],
         ("1 May 2025", "31 May 2025"), "30 days"),
        ("When does it end?", [cited("It runs for a period of two years from 1 June 2025.")],
         ("1 June 2025", "two years"), "1 June 2027"),
        ("What is the total of the deposit and the final payment?",
         [cited("The deposit is USD 40,000."), cited("The final payment is USD 1.6 million.")],
         ("USD 40,000", "USD 1.6 million"), "USD 1,640,000"),
        ("定金和尾款一共是多少？",
         [cited("定金为人民币20万元。"), cited("尾款为人民币800,000元。")],
         ("人民币20万元", "人民币800,000元"), "CNY 1,000,000"),
    ],
)  # fmt: skip
def test_what_is_computed(
    question: str, quotes: list[Citation], operands: tuple[str, ...], result: str
) -> None:
    language = detect(question)
    found = compute(question, quotes, language)
    assert found is not None
    assert tuple(operand.text for operand in found.operands) == operands
    assert found.result == result
    said = found.sentence(language)
    check = found.check(said, offset=7)
    assert check.ok and check.kind == "computed" and check.operands == operands
    assert said[check.start - 7 : check.end - 7] == check.text == result


@pytest.mark.parametrize(
    ("question", "quotes"),
    [
        # Holidays are not known.
        ("By when must we pay an invoice of 3 May 2026?", [cited("within 30 business days")]),
        # Two lengths, or two dates: which one counts is not known.
        ("When does it end?", [cited("from 1 June 2025 for seven years, or for two years")]),
        ("When does it end?", [cited("from 1 June 2025 or 1 July 2025 for seven years")]),
        # The end is stated.
        ("When does it end?", [cited("It runs until 31 December 2030, after 2 years of trial.")]),
        # Counted back from the date.
        ("By when must notice for 1 June 2025 be given?", [cited("at least 90 days before it")]),
        # Nothing is to be computed.
        ("How long is the term?", [TERM, START]),
        ("What is the deposit?", [cited("The deposit is USD 40,000.")]),
        # Two currencies; no amount for one item; one quote for two items.
        ("What is the total of the deposit and the fee?",
         [cited("The deposit is USD 4."), cited("The fee is EUR 5.")]),
        ("What is the total of the deposit and the fee?", [cited("The deposit is USD 4.")]),
        ("What is the total of the deposit and the fee?",
         [cited("The deposit is USD 4 and the fee is USD 5.")]),
        ("When does the agreement end?", []),
        # The date beside the length is the day of something else.
        ("When does the warranty end?",
         [cited("By the contract dated 5 May 2024 the warranty is 24 months from acceptance.")]),
        ("When must the buyer pay?",
         [cited("Invoice 7 of 1 January 2025 is paid within 30 days after receipt.")]),
        ("When does it end?", [cited("Changed on 3 March 2024, it runs for a term of 5 years.")]),
        ("质保期什么时候届满？", [cited("双方于2024年1月1日签订的合同项下设备质保期为24个月。")]),
        ("合同什么时候到期？", [cited("自2024年1月1日起生效，质保期自验收之日起三年内。")]),
        ("When does the term end?", [cited("It begins on 1 June 2025; repairs take up to 24 months "
                                           "from a claim.")]),
        # The length is that of a notice, not of the term.
        ("When does it expire?",
         [cited("It began on 1 June 2020 and may be ended with notice of 90 days following a "
                "breach.")]),
        # The term begins on a day that is only limited.
        ("When does the agreement end?",
         [TERM, cited('"Commencement Date" means a day no later than 1 June 2025.', "definition")]),
        ("When does the agreement of 5 May 2024 end?", [TERM]),
        # Dates of something that was not named.
        ("How many days are there between signing and delivery?",
         [cited("Delivery is due on 31 May 2025."), cited("The policy is dated 1 May 2025.")]),
        # A limit is no amount; rates of different things make no sum.
        ("What is the total of the deposit and the fee?",
         [cited("The deposit shall not exceed USD 4."), cited("The fee is USD 5.")]),
        ("What is the total of the deposit and the rent?",
         [cited("The deposit is USD 4."), cited("The rent is USD 5 per month.")]),
    ],
)  # fmt: skip
def test_what_is_not_computed(question: str, quotes: list[Citation]) -> None:
    assert compute(question, quotes, "en") is None


def test_what_was_replaced_is_no_operand() -> None:
    assert compute("When does the agreement end?", [TERM, replace(START, replaced=True)], "en") is (
        None
    )


@pytest.mark.parametrize(
    ("operands", "result"),
    [
        (("USD 4", "USD 6"), "USD 11"),
        (("USD 4", "USD 7"), "USD 11"),
    ],
)
def test_a_wrong_computation_is_marked(operands: tuple[str, ...], result: str) -> None:
    wrong = Computation(
        "sum", tuple(Operand(text, 1) for text in operands), result, ("USD 4 and USD 6",)
    )
    check = wrong.check(wrong.sentence("en"), offset=0)
    assert not check.ok and check.note
