import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.metrics.normalisation import (
    rouge_tokens,
    rouge_word_tokens,
    tokens,
    word_tokens,
)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1,500.00", "1500"),
        ("15.00%", "15 percent"),
        ("15.00%", "15 per cent"),
        ("１５％", "15%"),
        ("－５", "-5"),
        ("−5", "-5"),
        ("1.500,00", "1,500.00"),
        ("0.50", ".5"),
        ("The Seller's non-exclusive right", "sellers nonexclusive right"),
        ("Ｂｕｙｅｒ", "buyer"),
        ("“Agreement”", "agreement"),
        ("thirty (30) days", "Thirty 30 days."),
    ],
)
def test_same_tokens(one: str, other: str) -> None:
    assert tokens(one, "en") == tokens(other, "en") != []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("15.00%", "1500%"),
        ("15.00%", "15"),
        ("15.00", "1500"),
        ("-5", "5"),
        ("-$5", "$5"),
        ("5‰", "5%"),
        ("€5", "$5"),
        ("2.5m", "25m"),
        ("10²", "102"),
        ("5½", "51"),
        ("Section 3.10", "Section 3.1"),
        ("第3.10条", "第3.1条"),
        ("5.1.2", "512"),
        ("Section 5(a)", "Section 5"),
        ("Section 5(a)", "Section 5(b)"),
    ],
)
def test_different_tokens(one: str, other: str) -> None:
    assert tokens(one, "en") != tokens(other, "en")
    assert tokens(one, "zh") != tokens(other, "zh")


def test_a_hyphen_between_numbers_is_no_sign() -> None:
    assert tokens("10-5, pages 3-4 (and -2)", "en") == ["10", "5", "pages", "3", "4", "and", "-2"]
    assert tokens("COVID-19", "en") == ["covid", "19"]


def test_articles_are_dropped_in_english_only() -> None:
    assert tokens("the Fee of a Party", "en") == ["fee", "of", "party"]
    assert tokens("the Fee", "zh") == ["the", "fee"]


def test_rouge_keeps_articles_and_divides_at_punctuation() -> None:
    text = "The Seller's non-exclusive, 1,500.00 (a) U.S."
    assert rouge_tokens(text) == ["the", "seller", "s", "non", "exclusive", "1500", "a", "u", "s"]
    assert tokens(text, "en") == ["sellers", "nonexclusive", "1500", "a", "us"]


def test_chinese_characters_numbers_and_latin_words() -> None:
    assert tokens("违约金为５％，共1,500.00元（RMB）。", "zh") == [
        *"违约金为",
        "5%",
        "共",
        "1500",
        "元",
        "rmb",
    ]


def test_chinese_words_keep_numbers_whole() -> None:
    assert word_tokens("违约金为合同总价的5.50%。", "zh") == [
        "违约金",
        "为",
        "合同",
        "总价",
        "的",
        "5.5%",
    ]


@given(st.text(alphabet="违约金为百分之五天a b12.,%-$()①½（）％５\n", max_size=40))
def test_tokens_hold_no_space_and_words_hold_the_same_characters(text: str) -> None:
    found = tokens(text, "zh")
    assert all(token and not any(c.isspace() for c in token) for token in found)
    assert "".join(word_tokens(text, "zh")) == "".join(found)
    assert "".join(rouge_word_tokens(text)) == "".join(rouge_tokens(text))


@given(st.lists(st.text(alphabet=string.ascii_lowercase, min_size=4, max_size=8), max_size=8))
def test_plain_words_are_their_own_tokens(words: list[str]) -> None:
    assert tokens(" ".join(words), "en") == words


@given(st.decimals(min_value=0, max_value=10**9, places=4, allow_nan=False))
def test_one_number_has_one_token(value: object) -> None:
    assert tokens(f"{value:,}", "en") == tokens(f"{value}", "en")
    assert len(tokens(f"{value}", "en")) == 1
    assert tokens(f"-{value}%", "en")[0].endswith("%")
