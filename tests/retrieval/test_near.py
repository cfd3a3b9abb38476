"""Quotes so near to the question that a refusal would be wrong."""

from __future__ import annotations

import pytest

from retrieval.near import longest_run, near
from retrieval.query import read_question


@pytest.mark.parametrize(
    ("question", "quote", "is_near"),
    [
        ("How long does the Agreement remain in force?",
         "This Agreement shall remain in force for five years.", True),
        ("How long does the Agreement remain in force?",
         "This Agreement shall remain in force.", False),
        ("How long does the Agreement remain in force?",
         "The force of the wind shall remain below ten metres for two days.", False),
        ("籼稻的最低收购价是多少？", "今年籼稻的最低收购价为每斤1.2元。", True),
        ("籼稻的最低收购价是多少？", "今年小麦的收购价为每斤1.2元。", False),
        ("When will the Marlow pumps be shut off?", "S-04 Marlow 26 12 January 2026", True),
        ("When will the Marlow pumps be shut off?", "S-05 Harrow 26 12 January 2026", False),
        ("When will the Marlow pumps be shut off?", "Marlow is a site of the Buyer.", False),
    ],
)  # fmt: skip
def test_near(question: str, quote: str, is_near: bool) -> None:
    assert near(read_question(question), [quote]) is is_near


def test_longest_run() -> None:
    assert longest_run("abcdx", "zzbcdz") == (1, 3)
    assert longest_run([], ["a"]) == (0, 0)
