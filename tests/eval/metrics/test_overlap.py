import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import Tokenizer

from eval.metrics.normalisation import (
    rouge_tokens,
    rouge_word_tokens,
    tokens,
    word_tokens,
)
from eval.metrics.overlap import exact_match, f1, rouge_l
from retrieval.types import Language

Pairs = dict[Language, list[tuple[str, str]]]
WORDS = st.lists(st.sampled_from("abcde"), max_size=12)


class Characters(Tokenizer):  # type: ignore[misc]
    """Chinese characters, numbers and Latin words, by other means than ours."""

    def tokenize(self, text: str) -> list[str]:
        wide = unicodedata.normalize("NFKC", text).lower()
        found = re.findall(
            r"(?:\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*)\s?[%‰]?|[a-z][a-z0-9]*|[^\W\da-z_]|[¥$]",
            wide,
        )
        return [_plain(token) for token in found]


def _plain(token: str) -> str:
    number = token.replace(",", "").replace(" ", "")
    if re.fullmatch(r"\d+\.\d+%?", number):
        share = "%" if number.endswith("%") else ""
        return number.rstrip("%").rstrip("0").rstrip(".") + share
    return number


def test_rouge_l_agrees_with_rouge_score_in_chinese(pairs: Pairs) -> None:
    scorer = RougeScorer(["rougeL"], tokenizer=Characters())
    for gold, prediction in pairs["zh"]:
        ours = rouge_l(rouge_tokens(prediction), rouge_tokens(gold))
        assert ours == pytest.approx(scorer.score(gold, prediction)["rougeL"].fmeasure), gold


def test_rouge_l_agrees_with_rouge_score_in_english(pairs: Pairs) -> None:
    """On whole texts where these hold no numbers; else with every number left out."""
    scorer, whole = RougeScorer(["rougeL"]), 0
    for gold, prediction in pairs["en"]:
        bare = [re.sub(r"\S*[\d$]\S*", " ", text) for text in (gold, prediction)]
        whole += bare == [gold, prediction]
        ours = rouge_l(rouge_tokens(bare[1]), rouge_tokens(bare[0]))
        assert ours == pytest.approx(scorer.score(*bare)["rougeL"].fmeasure), gold
    assert whole >= 25


def test_rouge_score_alone_confuses_figures() -> None:
    theirs = RougeScorer(["rougeL"]).score("a fee of 15.00%", "a fee of 15,00")["rougeL"]
    assert theirs.fmeasure == 1.0
    ours = rouge_l(rouge_tokens("a fee of 15.00%"), rouge_tokens("a fee of 15,00"))
    assert ours < 0.8


def test_identical_chinese_is_one_and_a_shared_digit_is_not() -> None:
    """The default tokenizer of rouge-score gives 0.0 and 1.0 here."""
    same = "违约金为合同总价的百分之五"
    one, other = "违约金为5%", "免费期为5天"
    theirs = RougeScorer(["rougeL"])
    assert theirs.score(same, same)["rougeL"].fmeasure == 0.0
    assert theirs.score(one, other)["rougeL"].fmeasure == 1.0
    for cut in (rouge_tokens, rouge_word_tokens):
        assert rouge_l(cut(same), cut(same)) == 1.0
        assert rouge_l(cut(one), cut(other)) < 0.5
    for squad_cut in (tokens, word_tokens):
        assert f1(squad_cut(same, "zh"), squad_cut(same, "zh")) == 1.0
        assert f1(squad_cut(one, "zh"), squad_cut(other, "zh")) < 0.5


@pytest.mark.parametrize(
    ("prediction", "gold", "expected_f1", "expected_em"),
    [
        ("The Buyer shall pay.", "Buyer shall pay", 1.0, 1.0),
        ("30 days", "thirty (30) days", 0.8, 0.0),
        ("1,500.00 dollars", "1500 dollars", 1.0, 1.0),
        ("15.00%", "1500%", 0.0, 0.0),
        ("15%", "15", 0.0, 0.0),
        ("-5", "5", 0.0, 0.0),
        ("", "", 1.0, 1.0),
        ("", "pay", 0.0, 0.0),
        ("the", "pay", 0.0, 0.0),
        ("pay pay", "pay", 2 / 3, 0.0),
        ("shall pay", "pay shall", 1.0, 0.0),
    ],
)
def test_by_hand(prediction: str, gold: str, expected_f1: float, expected_em: float) -> None:
    mine, theirs = tokens(prediction, "en"), tokens(gold, "en")
    assert f1(mine, theirs) == pytest.approx(expected_f1)
    assert exact_match(mine, theirs) == expected_em


def test_f1_agrees_with_the_squad_script(pairs: Pairs) -> None:
    """The counting of the SQuAD v2 script, written again from its text, over our tokens."""
    for language, found in pairs.items():
        for gold, prediction in found:
            mine, theirs = tokens(prediction, language), tokens(gold, language)
            common = sum((Counter(mine) & Counter(theirs)).values())
            precision, recall = common / len(mine), common / len(theirs)
            expected = 2 * precision * recall / (precision + recall) if common else 0.0
            assert f1(mine, theirs) == pytest.approx(expected)
            assert exact_match(mine, theirs) == float(mine == theirs)


@given(WORDS, WORDS)
def test_bounds_and_symmetry(one: list[str], other: list[str]) -> None:
    assert 0.0 <= rouge_l(one, other) <= f1(one, other) <= 1.0
    assert rouge_l(one, other) == rouge_l(other, one)
    assert f1(one, other) == f1(other, one)
    assert exact_match(one, other) <= f1(one, other)


@given(WORDS, WORDS)
def test_rouge_l_is_the_textbook_recurrence(one: list[str], other: list[str]) -> None:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i, a in enumerate(one, 1):
        for j, b in enumerate(other, 1):
            same = table[i - 1][j - 1] + 1
            table[i][j] = same if a == b else max(table[i - 1][j], table[i][j - 1])
    length = table[-1][-1]
    expected = 2 * length / (len(one) + len(other)) if one and other else 0.0
    assert rouge_l(one, other) == pytest.approx(expected)
