"""Figures of more digits than a float holds, and amounts that are counted once."""

from __future__ import annotations

import time

import pytest

from retrieval.facts import find_facts
from retrieval.figures import find_figures
from retrieval.numerals import chinese_number, english_number


def test_account_numbers_are_told_apart_to_the_last_digit() -> None:
    values = {next(find_figures(f"6222021234567890{end:03}")).value for end in range(1000)}
    assert len(values) == 1000


@pytest.mark.parametrize(
    "text",
    ["1" * 4000, "9" * 400 + "%", "9" * 400 + " million", "1" * 400 + ".5", "一" * 4000,
     "hundred " * 500, "million " * 500, "人民币" + "9" * 400 + "元"],
)  # fmt: skip
def test_endless_digits_are_read_without_an_error(text: str) -> None:
    list(find_figures(text))


def test_endless_number_words_are_no_number() -> None:
    assert english_number("hundred " * 500) is None
    assert english_number("nine hundred million") == 900_000_000
    assert chinese_number("一" * 4000) is None


@pytest.mark.parametrize(
    ("text", "count"),
    [("每台人民币385,000元。", 1), ("人民币5万元", 1), ("rmb 385,000 and usd 5 million", 2),
     ("人民币4,620,000元（大写：人民币肆佰陆拾贰万元整）", 2), ("500元和600元", 2)],
)  # fmt: skip
def test_an_amount_with_sign_and_unit_is_one(text: str, count: int) -> None:
    assert len(list(find_facts(text, "amount"))) == count


@pytest.mark.parametrize("text", ["1.1" * 50_000, "1," * 50_000, "一" * 50_000])
def test_a_row_of_digits_costs_no_time(text: str) -> None:
    started = time.process_time()
    assert not list(find_facts(text, "amount"))
    assert time.process_time() - started < 10
