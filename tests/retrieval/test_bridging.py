"""Questions in another language than the document."""

from __future__ import annotations

import pytest

from retrieval.bridging import bridged
from retrieval.query import read_question


def concepts(question: str, document: str) -> set[str]:
    return {c.name for c in read_question(bridged(question, document)).concepts}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "concept"),
    [
        ("合同适用哪个国家或者哪个州的法律？", "governing_law"),
        ("合同是哪一天签订的？", "agreement_date"),
    ],
)
def test_an_idea_that_stands_in_pieces_is_found_for_an_english_document(
    question: str, concept: str
) -> None:
    assert concept not in concepts(question, "zh")
    assert concept in concepts(question, "en")


def test_a_question_in_the_documents_language_stays_as_it_is() -> None:
    for question, language in (("合同是哪一天签订的？", "zh"), ("When was it signed?", "en")):
        assert bridged(question, language) == question  # type: ignore[arg-type]


def test_an_idea_that_is_found_already_is_not_added_again() -> None:
    assert bridged("违约金是多少？", "en") == "违约金是多少？"


def test_which_one_is_no_figure() -> None:
    assert "#1" not in read_question(bridged("合同是哪一天签订的？", "en")).terms
