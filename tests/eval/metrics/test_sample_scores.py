import math

import pytest

from eval.metrics import failure_scores, score
from eval.metrics.names import BY_NAME
from eval.metrics.retrieval import char_recall, holds_half, rank_of
from eval.types import CitedSpan, Question, Reply, ReplyTimings, Span
from retrieval.types import Language

TEXT = (
    "The Buyer shall pay within 42 days after 1 May 2025 (Section 4.2). Nothing else is said here."
)
GOLD = (0, 66)
ASKED = Question("q", "When?", (TEXT[slice(*GOLD)],), (GOLD,))
ABSENT = Question("q", "Who?", is_impossible=True)


def reply(
    prediction: str = "",
    *,
    status: str = "answered",
    cited: tuple[Span, ...] = (),
    hits: tuple[Span, ...] = (),
    choice: str | None = None,
    nll: float | None = None,
) -> Reply:
    citations = tuple(CitedSpan(a, b, TEXT[a:b], True) for a, b in cited)
    return Reply(
        status, prediction, prediction, ReplyTimings(1.0, 2.0), citations, hits=hits, choice=choice,
        nll=nll,
    )  # type: ignore[arg-type]  # fmt: skip


def test_every_metric_has_a_key() -> None:
    for question in (ASKED, ABSENT):
        scores = score(question, reply(), TEXT, "en")
        assert set(scores) == set(BY_NAME)
        assert all(value is None or math.isfinite(value) for value in scores.values())


def test_a_right_quote_scores_one_everywhere() -> None:
    scores = score(
        ASKED, reply(ASKED.answers[0], cited=(GOLD,), hits=((0, 80), (80, 94))), TEXT, "en"
    )
    for name in (
        "f1", "em", "rouge_l", "f1_answerable", "number_accuracy", "date_accuracy",
        "clause_accuracy", "citation_hit", "citation_first_hit", "citation_precision",
        "citation_verified", "recall_at_1", "recall_at_5", "recall_at_10", "mrr",
        "char_recall_at_1",
    ):  # fmt: skip
        assert scores[name] == 1.0, name
    assert scores["false_refusal"] == scores["unmarked_wrong_figures"] == 0.0
    assert scores["refusal_accuracy"] is scores["choice_accuracy"] is scores["answer_nll"] is None
    assert scores["f1_words"] is scores["rouge_l_words"] is None


def test_an_unanswerable_question() -> None:
    refused = score(ABSENT, reply(status="not_found"), TEXT, "en")
    assert refused["f1"] == refused["em"] == refused["refusal_accuracy"] == 1.0
    assert refused["rouge_l"] is refused["false_refusal"] is refused["citation_hit"] is None
    assert refused["f1_answerable"] is refused["number_accuracy"] is refused["recall_at_1"] is None
    answered = score(ABSENT, reply("in 42 days", cited=((20, 34),)), TEXT, "en")
    assert answered["f1"] == answered["em"] == answered["refusal_accuracy"] == 0.0
    assert answered["citation_verified"] == 1.0


def test_a_false_refusal_is_wrong_in_what_the_question_asks() -> None:
    scores = score(ASKED, reply(status="not_found"), TEXT, "en")
    assert scores["f1"] == scores["em"] == scores["rouge_l"] == scores["citation_hit"] == 0.0
    assert scores["false_refusal"] == 1.0
    assert scores["citation_precision"] is scores["citation_verified"] is None


def test_citations_are_counted_by_overlap() -> None:
    scores = score(ASKED, reply("x", cited=((70, 80), (60, 70), (0, 9))), TEXT, "en")
    assert scores["citation_hit"] == 1.0
    assert scores["citation_first_hit"] == 0.0
    assert scores["citation_precision"] == pytest.approx(2 / 3)
    touching = score(ASKED, reply("x", cited=((66, 80),)), TEXT, "en")
    assert touching["citation_hit"] == 0.0


@pytest.mark.parametrize(
    ("span", "quote"),
    [((0, 9), "The buyer"), ((0, 9), "The Buyer "), ((-9, 900), TEXT), ((5, 5), "")],
)
def test_verified_is_checked_and_not_believed(span: Span, quote: str) -> None:
    lying = Reply(
        "answered", quote, quote, ReplyTimings(1.0, 1.0), (CitedSpan(*span, quote, True),)
    )
    assert score(ASKED, lying, TEXT, "en")["citation_verified"] == 0.0
    honest = Reply(
        "answered", "", "", ReplyTimings(1.0, 1.0), (CitedSpan(0, 9, "The Buyer", False),)
    )
    assert score(ASKED, honest, TEXT, "en")["citation_verified"] == 1.0


def test_the_best_of_several_gold_answers_counts() -> None:
    question = Question("q", "?", ("forty days", "42 days", "no term"), ((27, 34),))
    scores = score(question, reply("42 days"), TEXT, "en")
    assert scores["f1"] == scores["em"] == scores["rouge_l"] == 1.0
    # One of the gold answers has no figure, so a right answer may have none.
    assert scores["number_accuracy"] is None


def test_figures_ask_for_all_of_the_best_gold_answer() -> None:
    question = Question("q", "?", ("42 days or USD 5", "7 weeks"), ((27, 34),))
    assert score(question, reply("42 days"), TEXT, "en")["number_accuracy"] == 0.5
    assert score(question, reply("49 days"), TEXT, "en")["number_accuracy"] == 1.0
    assert score(question, reply(""), TEXT, "en")["number_accuracy"] == 0.0


def test_chinese_words_beside_characters() -> None:
    question = Question("q", "?", ("违约金为合同总价的百分之五",), ((0, 9),))
    right = score(question, reply("违约金为合同总价的百分之五。"), TEXT, "zh")
    assert right["f1"] == right["rouge_l"] == right["f1_words"] == right["rouge_l_words"] == 1.0
    near = score(question, reply("违约金为合同总额的百分之五"), TEXT, "zh")
    assert 0.5 < (near["f1_words"] or 0) < (near["f1"] or 0) < 1.0
    assert score(ABSENT, reply(), TEXT, "zh")["f1_words"] == 1.0


@pytest.mark.parametrize(
    ("choice", "expected"), [("B", 1.0), (" b ", 1.0), ("A", 0.0), (None, 0.0)]
)
def test_choices(choice: str | None, expected: float) -> None:
    question = Question("q", "?", ("two",), choices=("one", "two"), answer="B")
    assert score(question, reply(choice=choice), TEXT, "en")["choice_accuracy"] == expected


@pytest.mark.parametrize("nll", [math.nan, math.inf])
def test_a_likelihood_that_is_no_number_is_counted(nll: float) -> None:
    scores = score(ASKED, reply(nll=nll), TEXT, "en")
    assert (scores["answer_nll"], scores["nll_not_finite"]) == (None, 1.0)
    scores = score(ASKED, reply(nll=0.7), TEXT, "en")
    assert (scores["answer_nll"], scores["nll_not_finite"]) == (0.7, 0.0)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("question", [ASKED, ABSENT])
def test_failures_score_in_what_a_wrong_reply_scores_in(question: Question, lang: Language) -> None:
    failed = failure_scores(
        question.answers,
        lang,
        answerable=not question.is_impossible,
        spans=bool(question.spans),
        choice=False,
    )
    wrong = reply("wrong words", cited=((90, 94),), hits=((90, 94),))
    expected = score(question, wrong, TEXT, lang)
    applying = {name for name, value in failed.items() if value is not None}
    left_out = {name for name, metric in BY_NAME.items() if metric.on_failure is None}
    scored = {name for name, value in expected.items() if value is not None} - left_out
    # A quote that was never shown is neither verbatim nor not, where none was due.
    scored -= {"citation_verified"} if question.is_impossible else set()
    assert applying == scored
    assert {failed[name] for name in applying} == {0.0}


def test_chunk_hits() -> None:
    golds = [(10, 20), (50, 90)]
    assert holds_half((15, 40), golds)
    assert not holds_half((16, 40), golds)
    assert not holds_half((60, 79), golds)
    assert not holds_half((0, 5), [(3, 3)])
    assert rank_of([(0, 9), (60, 80), (10, 20)], golds) == 2
    assert rank_of([(0, 9)], golds) == 0


def test_character_recall_counts_no_character_twice() -> None:
    assert char_recall([(0, 15), (5, 15)], [(10, 20), (12, 20)]) == 0.5
    assert char_recall([(0, 100)], [(10, 20), (50, 90)]) == 1.0
    assert char_recall([], [(10, 20)]) == 0.0
    assert char_recall([(0, 15)], []) == 0.0
