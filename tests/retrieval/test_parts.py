"""Questions that ask several things are taken apart, others are left alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.parts import MOST, count_of_list, parts_of


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (
            "What is the cap on liability, and within how many days is it paid?",
            ("What is the cap on liability?", "within how many days is it paid?"),
        ),
        (
            "Who are the parties and what is the governing law?",
            ("Who are the parties?", "what is the governing law?"),
        ),
        (
            "What is the price? When is it due?",
            ("What is the price?", "When is it due?"),
        ),
        ("合同总价是多少，质保期多久？", ("合同总价是多少？", "质保期多久？")),
        ("付款期限多久？逾期违约金怎么算？", ("付款期限多久？", "逾期违约金怎么算？")),
    ],
)
def test_several_questions_are_taken_apart(question: str, parts: tuple[str, ...]) -> None:
    assert parts_of(question) == parts


@pytest.mark.parametrize(
    "question",
    [
        "What happens if the Supplier is late, and the Buyer terminates?",
        "If the goods are late, what can the Buyer do?",
        "How long are the term and the renewal?",
        "Is there a clause on price, quantity, and delivery?",
        "What?",
        "Why? How? Who?",
        "甲方逾期付款的，应当承担什么责任？",
        "第三条和第五条分别规定了什么？",
        "",
        "？？",
    ],
)
def test_one_question_stays_whole(question: str) -> None:
    assert parts_of(question) == (question,)


@given(st.text(alphabet="what is the cap, and? 合同多少，？;", max_size=300))
def test_parts_are_few_and_nothing_is_made_up(question: str) -> None:
    parts = parts_of(question)
    assert 1 <= len(parts) <= MOST
    if len(parts) > 1:
        assert all(part[:-1] in question for part in parts)


@pytest.mark.parametrize(
    ("question", "count"),
    [
        ("What is the price? When is it due? " * 3, 6),
        ("合同总价是多少，质保期多久？" * 3, 6),
        ("What is the price? When is it due?", 0),
        ("What is the price?", 0),
        ("The price, the term, the cap, the law, the court.", 0),
    ],
)
def test_a_list_of_questions_is_counted_and_left_as_it_is(question: str, count: int) -> None:
    assert count_of_list(question) == count
    if count:
        assert parts_of(question) == (question,)
