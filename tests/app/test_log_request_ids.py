"""What threads log on behalf of a request has the request's id."""

from __future__ import annotations

import contextvars
import logging
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.answers import AnswerRuns
from app.completions import Completions
from app.errors import DatabaseBusy
from app.generation_prompt import GenerationPrompt
from app.questions import Question
from app.request_id import begin, current_request_id
from backend.types import SamplingParams

QUESTION = Question("How long?", ("doc_1",), None)


class Lines(logging.Handler):
    """Id and text of every line of `app`, as a formatter sees them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append((current_request_id(), record.getMessage()))


@pytest.fixture
def lines() -> Iterator[Lines]:
    handler = Lines()
    logging.getLogger("app").addHandler(handler)
    yield handler
    logging.getLogger("app").removeHandler(handler)


def asked_as(request_id: str, start: Callable[[], Any]) -> Any:
    """What `start` gives in a request of that id."""

    def served() -> Any:
        begin(request_id)
        return start()

    return contextvars.copy_context().run(served)


def answering(ask: Any, **changes: Any) -> AnswerRuns:
    engine = SimpleNamespace(progress=lambda _: "known", cancel=print, attends_pages=True)
    notebook = {
        "create": lambda **_: SimpleNamespace(id="conv_1"),
        "turns": lambda _: (),
        "start_answer": lambda _, name, question: SimpleNamespace(
            id=name, created_at=datetime.now(UTC)
        ),
        "fail_answer": lambda *_, **__: None,
    } | changes
    document = SimpleNamespace(tokens=SimpleNamespace(key="k"))
    return AnswerRuns(
        cast("Any", engine), lambda _: cast("Any", document),
        cast("Any", SimpleNamespace(**notebook)), ask, workers=1,
    )  # fmt: skip


def test_an_answer_that_fails_is_logged_under_its_request(lines: Lines) -> None:
    def fail(*_: Any, **__: Any) -> Iterator[Any]:
        raise ValueError("secret")

    runs = answering(fail)
    asked = [asked_as(name, lambda: runs.start(QUESTION)) for name in ("trace-1", "trace-2")]
    assert all(run.wait(30) for run in asked)
    runs.close()
    expected = [
        (f"trace-{number}", f"answer {run.id} failed unexpectedly")
        for number, run in enumerate(asked, start=1)
    ]
    assert lines.found == expected


def test_the_end_of_one_that_is_out_of_time_is_logged_under_its_request(lines: Lines) -> None:
    go = threading.Event()

    def silent(*_: Any, **__: Any) -> Iterator[Any]:
        assert go.wait(60)
        yield from ()

    def away(*_: Any, **__: Any) -> None:
        raise DatabaseBusy("away")

    runs = answering(silent, fail_answer=away)
    run = asked_as("trace-3", lambda: runs.start(QUESTION, timeout_s=0.05))
    assert run.wait(30)
    end = time.monotonic() + 30
    while not lines.found:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert lines.found == [("trace-3", f"the end of answer {run.id} could not be saved")]
    go.set()
    runs.close()


def test_a_generation_that_fails_is_logged_under_its_request(lines: Lines) -> None:
    def broken() -> Iterator[Any]:
        raise ValueError("secret")
        yield

    over = threading.Event()
    config = SimpleNamespace(max_positions=100)
    engine = SimpleNamespace(generate=lambda _: broken(), config=config, cancel=print)
    completions = Completions(cast("Any", engine), on_finished=lambda _: over.set())
    prompt, sampling = GenerationPrompt.of((1, 2)), SamplingParams(max_tokens=2)
    run = asked_as("trace-4", lambda: completions.start([prompt], sampling, owner="A"))
    assert over.wait(30)
    assert lines.found == [("trace-4", f"generation {run.id} failed unexpectedly")]
    completions.close()
