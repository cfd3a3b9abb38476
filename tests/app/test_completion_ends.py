"""What a generation with several choices is told as when its time is up."""

from __future__ import annotations

import pytest

from app.completion_run import CompletionRun
from app.generation_prompt import GenerationPrompt
from backend.types import TokenEvent

CUT = "cancelled"


@pytest.fixture
def run() -> CompletionRun:
    prompts = (GenerationPrompt.of((5,)),) * 2
    return CompletionRun("r", prompts, arrived=0.0, on_cancel=lambda _: None, timeout_s=1)


def publish(run: CompletionRun, choice: int, text: str = "", end: str | None = None) -> None:
    token = None if end == CUT else 7
    run.publish(choice, TokenEvent(f"r-{choice}", 0, token, text, end))  # type: ignore[arg-type]


@pytest.mark.parametrize("before", [False, True])
def test_a_choice_that_ended_by_itself_is_a_reply_even_without_a_word(
    run: CompletionRun, before: bool
) -> None:
    """Also where its end came before the time was up."""
    if not before:
        run.end_in_time()
    publish(run, 0, end="stop")
    run.end_in_time()
    publish(run, 1, end=CUT)
    assert (run.finished, run.failure, run.outcome) == (True, None, "completed")
    assert [one.choice for one in run.events_after(0)] == [0, 1]


@pytest.mark.parametrize("first", [CUT, None])
def test_without_a_word_nothing_is_decided_and_nothing_is_told(
    run: CompletionRun, first: str | None
) -> None:
    run.end_in_time()
    publish(run, 0, end=first)
    publish(run, 1)
    assert run.events_after(0) == ()
    publish(run, 1, end=CUT)
    if first is None:
        assert run.events_after(0) == ()
        publish(run, 0, end=CUT)
    assert run.failure is not None and run.failure.code == "timeout"
    assert run.outcome == "failed"
    ends = [one.event.finish_reason for one in run.events_after(0)]
    assert ends.count(CUT) == 2 and ends[-1] == CUT


@pytest.mark.parametrize(("text", "end"), [("Ten", None), ("", "stop")])
def test_a_word_or_an_end_of_its_own_decides(
    run: CompletionRun, text: str, end: str | None
) -> None:
    run.end_in_time()
    publish(run, 0, end=CUT)
    publish(run, 1)
    publish(run, 1, text, end)
    assert len(run.events_after(0)) == 3
    if end is None:
        publish(run, 1, end=CUT)
    assert (run.finished, run.failure, run.outcome) == (True, None, "completed")
