"""Questions that lean on earlier ones, and those that only look like it."""

from __future__ import annotations

import pytest

from app.followup import MAX_TURNS, standalone
from app.types import Turn

ANSWER = "“The cap is USD 5.” (Clause 5.2, page 3) [1]"


def asked(question: str, *before: str, answer: str = ANSWER) -> str | None:
    return standalone(question, [Turn(one, answer) for one in before], list_limit=50)


@pytest.mark.parametrize(
    ("before", "question", "whole"),
    [
        ("What is the fee for the first year?", "And for the second year?",
         "What is the fee for the second year?"),
        ("What is the fee in 2025?", "and in 2026?", "What is the fee in 2026?"),
        ("What is the liability cap of the buyer?", "What about the supplier?",
         "What is the liability cap of the supplier?"),
        ("What is the liability cap?", "what about the supplier?",
         "What is the liability cap for the supplier?"),
        ("Can the buyer terminate early?", "Why?", "Why can the buyer terminate early?"),
        ("What is the liability cap?", "Why?", "Why: what is the reason for the liability cap?"),
        ("What is the notice period for termination?", "and for renewal?",
         "What is the notice period for renewal?"),
        ("What is the penalty for late delivery?", "And late payment?",
         "What is the penalty for late payment?"),
        ("What is the price of a trip coil?", "and a relay?", "What is the price of a relay?"),
        ("How much is the deposit?", "And the final payment?", "How much is the final payment?"),
        ("What is the deposit?", "And the governing law?", "What is the governing law?"),
        ("How long is the initial term?", "When does it end?",
         "When does the initial term end?"),
        ("Who owns the drawings?", "Can they be copied?", "Can the drawings be copied?"),
        ("What is the limit of liability?", "Does that apply to the buyer?",
         "Does the limit of liability apply to the buyer?"),
        ("Can the buyer assign the contract?", "And can the supplier?",
         "Can the supplier assign the contract?"),
        ("What does Clause 5 say?", "and Clause 6?", "What does Clause 6 say?"),
        ("What is the cap?", "What does that clause say about affiliates?",
         "What does Clause 5.2 say about affiliates?"),
        ("第一年的租金是多少？", "那第二年呢？", "第二年的租金是多少？"),
        ("租金是多少？", "第二年呢？", "第二年的租金是多少？"),
        ("甲方逾期付款要付多少违约金？", "乙方呢？", "乙方逾期付款要付多少违约金？"),
        ("违约金是多少？", "乙方呢？", "对乙方来说，违约金是多少？"),
        ("迟延交货的违约金是多少？", "那迟延付款呢？", "迟延付款的违约金是多少？"),
        ("甲方可以解除合同吗？", "为什么？", "为什么甲方可以解除合同？"),
        ("违约金是多少？", "为什么？", "为什么这样约定违约金？"),
        ("质保期是多久？", "它从什么时候开始？", "质保期从什么时候开始？"),
        ("质保期是多久？", "这个期限可以延长吗？", "质保期可以延长吗？"),
        ("押金是多少？", "什么时候退还？", "押金什么时候退还？"),
        ("押金是多少？", "那笔钱什么时候退？", "押金什么时候退？"),
    ],
)  # fmt: skip
def test_missing_words_come_from_the_question_before(
    before: str, question: str, whole: str
) -> None:
    assert asked(question, before) == whole


@pytest.mark.parametrize(
    ("before", "question"),
    [
        ("What is the limit of liability?", "What is the governing law?"),
        ("What is the limit of liability?", "Is it possible to terminate early?"),
        ("What is the penalty for late delivery?", "What about governing law?"),
        ("How much is the deposit?", "And the governing law?"),
        ("What is the penalty?", "If the supplier is late, does it pay a penalty?"),
        ("What is the penalty?", "How long does it take to get a refund?"),
        ("What is the penalty?", "Which law applies to this agreement?"),
        ("违约金是多少？", "管辖法院呢？"),
        ("违约金是多少？", "合同适用什么法律？"),
        ("违约金是多少？", "甲方的付款期限是多久？"),
    ],
)
def test_a_question_that_stands_alone_is_left_alone(before: str, question: str) -> None:
    assert asked(question, before) is None


def test_without_earlier_questions_nothing_is_rewritten() -> None:
    assert asked("and for the second year?") is None
    assert asked("为什么？") is None


def test_a_chain_of_follow_ups_is_read_from_its_beginning() -> None:
    chain = ("What is the fee for the first year?", "and for the second year?")
    assert asked("and the third?", *chain) == "What is the fee for the third year?"
    assert asked("那第三年呢？", "第一年的租金是多少？", "第二年呢？") == "第三年的租金是多少？"


def test_a_new_question_ends_the_chain() -> None:
    chain = ("What is the fee for the first year?", "What is the liability cap of the buyer?")
    assert asked("and the supplier?", *chain) == "What is the liability cap of the supplier?"


def test_only_the_last_turns_count() -> None:
    long_ago = ("How long is the initial term?", *["Hello there"] * MAX_TURNS)
    assert asked("When does it end?", *long_ago) is None


def test_a_question_in_the_other_language_keeps_the_words_of_the_first() -> None:
    assert asked("Why?", "违约金是多少？") == "Why, as to “违约金是多少”?"


def test_the_rest_of_a_list_goes_on_behind_what_was_shown() -> None:
    first = "Which clauses mention insurance?"
    assert asked("The rest?", first) == "Which clauses mention insurance (from 51)"
    assert asked("more", first, "the rest") == "Which clauses mention insurance (from 101)"
    assert asked("其余的呢？", "哪些条款提到保险？") == "哪些条款提到保险（从第51处起）"
    assert asked("the rest?", "What is the liability cap?") is None
