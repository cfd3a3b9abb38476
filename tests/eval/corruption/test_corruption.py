"""Seeded lies and true rewordings of gold answers, and how they are counted."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from app.answer.checks import check_text
from eval.corruption import altering, ellipsis, measuring, rewording, statements
from eval.corruption.places import find_places
from eval.corruption.statements import Gold, Maker
from eval.corruption.types import KINDS, Place, Trial

# Written for this test.
GOLD_EN = (
    "The Buyer shall pay USD 1,500,000 within thirty (30) days of 1 March 2024 (Section 12.3(b)).",
    "The rent is $2,500 for 1,200 square feet and rises by 5% each year from June 30, 2025.",
    "The Licensee shall not sublicense the Software for 24 months except under Section 4.1.",
    "There are 7 pumps and 15 employees at the site, and 3 percent of the price is retained.",
)
GOLD_ZH = (
    "乙方应当在2024年3月1日起三十日内支付人民币150万元，逾期的每日按万分之五支付违约金。",
    "依照第十二条的规定，甲方不得转租面积为1,250平方米的房屋，期限为5年。",
    "保证金为合同价款的10%，共计3次支付，每次20000元，编号为 88 。",
)


def golds() -> list[Gold]:
    return [Gold("en", "en", text, find_places(text, "en")) for text in GOLD_EN] + [
        Gold("zh", "zh", text, find_places(text, "zh")) for text in GOLD_ZH
    ]


def test_places_have_kinds_and_values() -> None:
    found = {(p.kind, p.value, p.unit) for p in find_places(GOLD_EN[0], "en")}
    assert ("currency", Decimal(1_500_000), "USD") in found
    assert ("duration", Decimal(30), "day") in found
    assert ("clause", "12.3(b)", "") in found
    found = {(p.kind, p.value, p.unit) for p in find_places(GOLD_ZH[0], "zh")}
    assert ("currency", Decimal(1_500_000), "CNY") in found
    assert ("percentage", Decimal("0.05"), "%") in found


def test_lists_of_clauses_years_and_words_that_disagree_are_left_alone() -> None:
    assert find_places("SECTIONS 2.7, 8 and 10 of the Agreement", "en") == ()
    assert find_places("for one hundred (150) days", "en") == ()
    years = Place(0, 4, "figure", Decimal(2013))
    assert altering.forms(years, "en", "2013") == ["2013"]


@pytest.mark.parametrize("altered", [True, False])
def test_every_kind_is_made_in_both_languages_and_judged_rightly(altered: bool) -> None:
    trials = Maker(golds(), seed=5).trials(160, altered=altered)
    assert {trial.kind for trial in trials} == set(KINDS)
    assert {trial.language for trial in trials} == {"en", "zh"}
    assert {trial.form for trial in trials} == {"quote", "sentence", "short"}
    wrong = [outcome for outcome in map(measuring.check, trials) if not outcome.right]
    assert wrong == []


def test_exactly_one_thing_is_changed_in_a_quote() -> None:
    for trial in Maker(golds(), seed=1).trials(120, altered=True):
        if trial.form == "quote" and trial.kind != "negation":
            span = trial.spans[0]
            assert trial.answer != span
            head = trial.answer.partition(trial.after)[0]
            assert span.startswith(head) or trial.after in span


def test_the_same_seed_makes_the_same_answers() -> None:
    first, second, other = (
        Maker(golds(), seed=seed).trials(40, altered=True) for seed in (7, 7, 8)
    )
    assert first == second
    assert first != other


def test_an_unmarked_lie_and_a_marked_truth_are_counted_as_wrong() -> None:
    lie = Trial("figure", "en", "sentence", "The fee is due.", ("The fee is due.",), True, "", "")
    assert measuring.check(lie).right is False
    truth = Trial("figure", "en", "short", "It is 9.", ("The fee is 5.",), False, "", "")
    outcomes = [measuring.check(lie), measuring.check(truth)]
    assert [outcome.right for outcome in outcomes] == [False, False]
    assert measuring.total(outcomes) == (2, 1)
    assert measuring.table(outcomes) == {"en": {"figure": {"made": 2, "marked": 1}}}


def test_rewording_keeps_what_stands_in_quotation_marks_and_the_value() -> None:
    text = "The “Seller shall deliver” prior to 5 May 2024 and shall pay."
    for seed in range(20):
        said = rewording.reworded(text, "en", random.Random(seed), keep="5 May 2024")
        assert "“Seller shall deliver”" in said
        assert "5 May 2024" in said
        assert all(check.ok for check in check_text(said, [text])), said


def test_an_ellipsis_lie_leaves_out_a_negation_or_a_figure() -> None:
    cut = ellipsis.left_out(GOLD_EN[2], "en", random.Random(0), lie=True)
    assert cut is not None
    assert "not" in cut[1] or "except" in cut[1] or any(c.isdigit() for c in cut[1])


def test_texts_without_anything_to_change_are_told() -> None:
    assert statements.Maker([], seed=0).trials(0, altered=True) == []
    dull = [Gold("d", "en", "Hello there world", ())]
    with pytest.raises(ValueError, match="no answer about a negation"):
        Maker(dull, seed=0).trials(1, altered=True)
