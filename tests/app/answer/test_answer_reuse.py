"""Sentences that reuse a span: what turns it around is told, what rewords it is not."""

from __future__ import annotations

import pytest

from app.answer.reuse import turned

SPAN = (
    "Unless earlier terminated under Section 9, this Agreement shall be valid for five (5) years "
    "from 1 February 2019, and the Supplier shall give at least thirty (30) days' notice."
)


@pytest.mark.parametrize(
    "sentence",
    [
        "The contract states that the Supplier must give not less than 30 days' notice.",
        "According to the contract, the Supplier shall give a minimum of thirty days' notice.",
        "This Agreement is valid for 60 months from February 1, 2019.",
        "It shall be valid for five years from 1 February 2019.",
        "The period is thirty days.",
        "See Section 9.",
    ],
)
def test_what_says_the_same_turns_nothing(sentence: str) -> None:
    assert turned(sentence, [SPAN]) == ()


@pytest.mark.parametrize(
    "sentence",
    [
        "The Supplier shall not give at least thirty (30) days' notice.",
        "The Supplier shall give at most thirty (30) days' notice.",
        "The Supplier may give at least thirty (30) days' notice.",
        "This Agreement shall be valid for thirty (30) years from 1 February 2019.",
        "This Agreement shall be valid for five (5) days from 1 February 2019.",
    ],
)
def test_what_is_turned_around_is_told(sentence: str) -> None:
    assert turned(sentence, [SPAN])


def test_a_leading_number_is_compared_across_its_full_stop() -> None:
    span = "4. Recipient shall not make copies of the Confidential Information."
    assert turned("8. Recipient shall not make copies of the Confidential Information.", [span])


def test_an_exception_right_behind_the_reused_words_belongs_to_them() -> None:
    span = "Either Party may assign this Agreement without consent, except to a competitor."
    assert turned("Either Party may assign this Agreement without consent.", [span])


def test_chance_meetings_of_short_words_are_no_reuse() -> None:
    span = "租赁期限为十八个月，月利率为2%，期满后不得续租，应当在二十八日内腾退房屋。"
    assert turned("金额为三百元。", [span]) == ()
