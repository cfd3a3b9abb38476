"""Sentence borders in English and Chinese contracts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.sentences import split


def sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in split(text)]


@pytest.mark.parametrize(
    "text",
    [
        "Acme Inc. shall pay USD 1.5 m to Dr. J. Smith by 5 p.m. on the day in Schedule No. 5.",
        "See Art. 12.3(b) of the U.S. Code, i.e. the rules of 29 C.F.R. 2501.3-101, for details.",
        "4. Payment is due in 30 days.",
        "本合同总价为人民币1,500,000.00元（大写：壹佰伍拾万元整），于2024.3.1前付清。",
        "The Supplier shall deliver the goods to the place that is named in\nthe order and pay.",
        "　　根据委托储存计划和仓储容量，经双方协商一致，由双方根据有关规定签订本合\n　　同。",
    ],
)
def test_one_sentence(text: str) -> None:
    assert sentences(text) == [text.strip()]


def test_sentences_of_a_paragraph() -> None:
    text = (
        'Fees are due. "Late" fees accrue at 5%. The cap is USD 1m! Is it? Yes, by Acme Inc. '
        "The end."
    )
    assert sentences(text) == [
        "Fees are due.", '"Late" fees accrue at 5%.', "The cap is USD 1m!", "Is it?",
        "Yes, by Acme Inc.", "The end.",
    ]  # fmt: skip
    zh = "甲方应付款。逾期的，每日按万分之三支付违约金！乙方“同意。”双方签字。"
    assert sentences(zh) == [
        "甲方应付款。", "逾期的，每日按万分之三支付违约金！", "乙方“同意。”", "双方签字。",
    ]  # fmt: skip


def test_list_items_are_sentences() -> None:
    text = "The Buyer may:\n(a) inspect the goods;\n(b) reject them; and\n(c) cancel the order."
    assert sentences(text) == [
        "The Buyer may:", "(a) inspect the goods;", "(b) reject them; and", "(c) cancel the order.",
    ]  # fmt: skip
    zh = "有下列情形的，可以解除：\n（一）逾期三十日的；\n（二）质量不合格的。"
    assert sentences(zh) == [
        "有下列情形的，可以解除：",
        "（一）逾期三十日的；",
        "（二）质量不合格的。",
    ]


def test_heading_line_is_its_own_sentence() -> None:
    assert sentences("Payment Terms\n\nThe Buyer shall pay.") == [
        "Payment Terms",
        "The Buyer shall pay.",
    ]


def test_very_long_sentence_is_cut_at_semicolons() -> None:
    part = "the Supplier shall keep every record that relates to the services for seven years"
    text = "; ".join([part] * 12) + "."
    found = sentences(text)
    assert len(found) > 3
    assert all(len(sentence) < 400 for sentence in found)


def test_forced_starts_begin_sentences() -> None:
    text = "1.1 No stop here 1.2 Next one"
    assert [text[a:b] for a, b in split(text, 0, None, (17,))] == [
        "1.1 No stop here",
        "1.2 Next one",
    ]


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet='ab1. ;:\n。；，甲A(）)?"', max_size=200))
def test_spans_are_ordered_and_lose_only_space(text: str) -> None:
    spans = split(text)
    assert "".join("".join(text[a:b].split()) for a, b in spans) == "".join(text.split())
    assert all(a < b and not text[a].isspace() and not text[b - 1].isspace() for a, b in spans)
    assert all(left[1] <= right[0] for left, right in zip(spans, spans[1:], strict=False))


def test_a_row_of_numbers_is_cut_and_a_clause_number_is_not() -> None:
    text = "1. " * 400
    assert max(end - start for start, end in split(text)) < 100
    said = 'Section 1 is replaced by the following: "1. The Buyer pays within 60 days."'
    assert sentences(said) == [said]


def test_a_wide_full_stop_ends_a_chinese_sentence() -> None:
    assert sentences("甲方应付款．逾期的，支付违约金．") == ["甲方应付款．", "逾期的，支付违约金．"]
    assert sentences("一．总则") == ["一．总则"]
    assert sentences("依照第３．５条办理．") == ["依照第３．５条办理．"]
