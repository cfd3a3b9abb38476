"""Which questions are taken, and how they are tidied."""

from __future__ import annotations

import pytest

from app.ask import MAX_QUESTION_CHARS, validate_question
from app.errors import BadQuestion


@pytest.mark.parametrize("question", ["", "  \n", "\u0000", "x" * (MAX_QUESTION_CHARS + 1)])
def test_bad_questions_are_refused(question: str) -> None:
    with pytest.raises(BadQuestion):
        validate_question(question)


def test_blanks_of_a_question_become_single_ones() -> None:
    assert validate_question("a" + " " * 3998 + "b") == "a b"
    # Pasted text has no-break and ideographic spaces; they part words like any other.
    assert (
        validate_question(" What\u00a0is\tthe\u3000rent?\r\n\n Why?") == "What is the rent?\nWhy?"
    )
