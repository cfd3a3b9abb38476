"""A word and its denial by a prefix are told apart."""

from __future__ import annotations

import pytest

from retrieval.opposites import asked_roots, denied, places, stated, turned_roots
from retrieval.query import read_question


@pytest.mark.parametrize(
    ("text", "roots"),
    [
        ("a nonexclusive licence", {"exclus"}),
        ("a non-exclusive, non-transferable licence", {"exclus", "transfer"}),
        ("a Non Exclusive licence", {"exclus"}),
        ("none of the parties, nonetheless, shall pay", set()),
        ("授予非独家的经销权", {"独家"}),
        ("非经甲方同意，非法占用的，并非乙方责任", set()),
    ],
)
def test_what_stands_behind_a_prefix(text: str, roots: set[str]) -> None:
    assert denied(text) == roots


def test_a_word_is_stated_only_without_prefix_and_denial() -> None:
    assert stated("The licence is exclusive.", "exclus")
    assert not stated("The licence is nonexclusive.", "exclus")
    assert not stated("The licence is non-exclusive.", "exclus")
    assert not stated("The licence is not an exclusive one.", "exclus")
    assert stated("乙方享有独家经销权。", "独家")
    assert not stated("乙方享有非独家经销权。", "独家")
    assert not stated("乙方不独家经销。", "独家")


@pytest.mark.parametrize(
    ("sentence", "source", "roots"),
    [
        ("The dealership is exclusive.", "a nonexclusive dealership", {"exclus"}),
        ("The dealership is nonexclusive.", "an exclusive dealership", {"exclus"}),
        ("The dealership is not exclusive.", "a nonexclusive dealership", set()),
        ("The dealership is non-exclusive.", "a nonexclusive dealership", set()),
        ("It is exclusive.", "nonexclusive here, exclusive in Peru", set()),
        ("经销权是独家的。", "授予非独家经销权", {"独家"}),
        ("经销权是非独家的。", "授予非独家经销权", set()),
    ],
)
def test_turning_a_prefix_is_noticed(sentence: str, source: str, roots: set[str]) -> None:
    assert turned_roots(sentence, source) == roots


def test_the_places_of_a_root_hold_its_prefix() -> None:
    text = "exclusive or nonexclusive"
    assert [text[start:end] for start, end in places(text, "exclus")] == [
        "exclusive", "nonexclusive",
    ]  # fmt: skip


def test_short_words_of_a_question_have_no_opposite() -> None:
    assert "exclus" in asked_roots(read_question("Is the licence exclusive?"))
    assert "the" not in asked_roots(read_question("Is the licence exclusive?"))
