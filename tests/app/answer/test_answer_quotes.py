"""Quoted words: found up to white space and width; an ellipsis hides no negation."""

from __future__ import annotations

import pytest

from app.answer.checks import check_text
from app.answer.quotes import find_quotes, stands_in

SOURCE = (
    "The cap shall not\nexceed USD 2,000,000, except in case of fraud, and survives termination."
)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("The cap shall not exceed USD 2,000,000", True),
        ("the cap shall not  exceed", True),
        ("The cap shall exceed", False),
        ("The cap … USD 2,000,000", False),
        ("The cap ... survives termination", False),
        ("fraud, and … termination", True),
        ("exceed USD 2,000,000, … and survives", False),
        ("survives termination … The cap", False),
        ("…", False),
        ("cap … exceed", False),
        ("in case … and survives", True),
        ("not exceed USD 2", False),
        ("exceed USD 2,000", False),
        ("The cap shall no", False),
    ],
)
def test_quotes_against_a_source(words: str, found: bool) -> None:
    assert stands_in(words, SOURCE) is found


def test_width_and_line_breaks_do_not_matter_in_chinese() -> None:
    source = "违约金为合同总价\n的百分之５，但不超过１００万元。"
    assert stands_in("违约金为合同总价的百分之5", source)
    assert not stands_in("违约金……超过100万元", source)
    assert not stands_in("违约金为……不超过100万元", source)
    assert not stands_in("期限为三十", "期限为三十五日")


def test_an_ellipsis_may_not_swallow_a_figure() -> None:
    assert not stands_in(
        "paid within … after receipt", "paid within thirty (30) days after receipt"
    )
    assert stands_in("paid … after receipt", "paid in full and promptly after receipt")


def test_white_space_between_words_is_kept() -> None:
    assert not stands_in("The Buyer is notable to pay", "The Buyer is not able to pay.")


def test_words_of_no_document_are_marked() -> None:
    # A question about "cost overruns and raw material prices" invites the model to invent.
    span = "Supplier takes the risk of cost overruns."
    text = "“Supplier bears cost overruns and raw material price increases.”"
    quotes = [check for check in check_text(text, [span]) if check.kind == "quote"]
    assert [check.ok for check in quotes] == [False]


def test_of_a_quote_within_a_quote_the_outer_one_is_checked() -> None:
    span = "The “Seller” shall deliver the “Goods” within ten days."
    (quote,) = find_quotes("It says “The ‘Seller’ shall deliver the ‘Goods’ within ten days.”")
    assert stands_in(quote.words, span)
    text = "It says “The “Seller” shall not deliver”."
    assert [quote.words for quote in find_quotes(text)] == ["The “Seller” shall not deliver"]
    assert not stands_in("The ‘Seller’ shall not deliver", span)
    assert [quote.words for quote in find_quotes("alone ” and “ then “this”")] == ["this"]


def test_marks_without_words_are_no_quotes() -> None:
    assert [quote.words for quote in find_quotes('"hereof\', "herein", "x" and "..."')] == [
        "herein",
        "x",
    ]
