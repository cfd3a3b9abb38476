"""Free answers: which say that there is no answer, and which letter was meant."""

from __future__ import annotations

import pytest

from eval.runs.free_text import chosen_letter, is_refusal, unverified
from eval.runs.progress import Progress


@pytest.mark.parametrize(
    "answer",
    [
        "Not in the document.",
        "This is not stated in the contract.",
        "The text does not say who pays.",
        "No information about this.",
        "文件中没有说明。",
        "合同未约定违约金。",
        "“文件中没有说明”",
        "  ",
    ],
)
def test_refusals(answer: str) -> None:
    assert is_refusal(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "The Supplier shall not assign this Agreement.",
        "30 days, not in the document's annex but in clause 3.",
        "违约金为合同总价的百分之五，合同没有约定其他责任。",
        "未成年人不得签订本合同。",
        "Not in the document. " + "However, clause 4 says that the price is fixed. " * 5,
    ],
)
def test_answers(answer: str) -> None:
    assert not is_refusal(answer)


def test_the_letter_that_stands_alone() -> None:
    letters = "ABCDEFGH"
    assert chosen_letter("B", 4, letters) == "B"
    assert chosen_letter("The answer is (C).", 4, letters) == "C"
    assert chosen_letter("答案：D。", 4, letters) == "D"
    assert chosen_letter("Answer: E", 4, letters) is None
    assert chosen_letter("Because", 4, letters) is None


def test_figures_that_stand_nowhere_are_marked() -> None:
    assert unverified("It is 15 days.", ["within 30 days"]) == ("15 days",)
    assert unverified("It is 30 days.", ["within 30 days"]) == ()


def test_progress_without_a_terminal_says_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eval.runs.progress.LINE_EVERY_S", 0.0)
    with Progress(4, 1, bar=False) as progress:
        progress.ended("done")
        progress.ended("failed")
    told = capsys.readouterr()
    assert told.out == ""
    assert "3 of 4 questions, 1 failed, 0 unfit" in told.err


def test_a_bar_for_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(2, 0, bar=True) as progress:
        progress.ended("done")
        progress.ended("unfit")
    told = capsys.readouterr()
    assert told.out == "" and "2/2" in told.err
