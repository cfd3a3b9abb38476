"""Answers that must be over by a time, with what is shown by then; threads that die; ends that are
not saved at once."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app import answers
from app.answers import AnswerRuns
from app.attempts import request_ids
from app.errors import DatabaseBusy, NoNewWork
from app.events import AnswerCompleted, AnswerCreated, AnswerDelta, AnswerEvent, AnswerFailed
from app.questions import Question
from app.types import Answer, AnswerUsage, Coverage, Timings

QUESTION = Question("How long?", ("doc_1",), None)
ANSWER = Answer(
    answer="Two years.",
    status="answered",
    language="en",
    citations=(),
    checks=(),
    coverage=Coverage(1, 1),
    timings=Timings(0, 0, 0, 0, 1, 1, 2),
    usage=AnswerUsage(0, 0, 0, 0),
    finish_reason="quote",
)


class Notebook:
    """How each answer's end was saved."""

    def __init__(self) -> None:
        self.ends: dict[str, list[str]] = {}
        self.count = 0

    def turns(self, _: str) -> tuple[Any, ...]:
        return ()

    def create(self, **_: Any) -> Any:
        return SimpleNamespace(id="conv_1")

    def start_answer(self, _: str, answer_id: str, *, question: str) -> Any:
        return SimpleNamespace(id=answer_id, created_at=datetime.now(UTC))

    def save_answer(self, _: str, message_id: str, answer: Answer) -> None:
        self.ends.setdefault(message_id, []).append(answer.finish_reason)

    def fail_answer(self, message_id: str, code: str, *_: str, **__: str) -> None:
        self.ends.setdefault(message_id, []).append(code)


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


@pytest.fixture
def told() -> list[str]:
    """Requests that the engine was told to cancel."""
    return []


Make = Callable[..., AnswerRuns]


@pytest.fixture
def make(notebook: Notebook, told: list[str]) -> Iterator[Make]:
    made: list[AnswerRuns] = []

    def build(ask: Any, load: Any = None, **options: Any) -> AnswerRuns:
        engine = cast(
            "Any",
            SimpleNamespace(progress=lambda _: "known", cancel=told.append, attends_pages=True),
        )
        document = cast("Any", SimpleNamespace(tokens=SimpleNamespace(key="k")))
        runs = AnswerRuns(
            engine, load or (lambda _: document), cast("Any", notebook), ask, **options
        )
        made.append(runs)
        return runs

    yield build
    for runs in made:
        runs.close()


def quoting(*_: Any, cancelled: threading.Event, **__: Any) -> Iterator[AnswerEvent]:
    """Shows a quote and phrases until it is stopped, as `ask` does."""
    yield AnswerCreated("", "", "en", ())
    yield AnswerDelta("Two years.", "quote")
    finish = "cancelled" if cancelled.wait(20) else "stop"
    yield AnswerCompleted(dataclasses.replace(ANSWER, finish_reason=finish))


def silent(*_: Any, cancelled: threading.Event, **__: Any) -> Iterator[AnswerEvent]:
    """Searches for long, deaf to everything."""
    yield AnswerCreated("", "", "en", ())
    time.sleep(4)
    yield AnswerDelta("Too late.", "quote")
    yield AnswerCompleted(ANSWER)


def test_quotes_that_are_shown_stand_at_the_deadline(
    make: Make, notebook: Notebook, told: list[str]
) -> None:
    started = time.monotonic()
    run = make(quoting).start(QUESTION, timeout_s=1.0)
    with run.followed(threading.Event().set):
        assert run.wait(19)
    assert 0.9 < time.monotonic() - started < 15
    assert isinstance(run.outcome, AnswerCompleted)
    answer = run.outcome.answer
    assert (answer.status, answer.finish_reason, run.state) == ("partial", "timeout", "completed")
    assert told == [*request_ids(run.id)], "the engine works on it no more"
    assert notebook.ends == {run.id: ["timeout"]}


def test_without_quotes_it_is_an_error_at_the_deadline_whatever_the_worker_does(
    make: Make, notebook: Notebook
) -> None:
    started = time.monotonic()
    runs = make(silent, workers=1)
    run = runs.start(QUESTION, timeout_s=1.0)
    with run.followed(threading.Event().set):
        assert run.wait(9)
    assert 0.9 < time.monotonic() - started < 3.9
    assert isinstance(run.outcome, AnswerFailed) and run.outcome.code == "timeout"
    assert "1 seconds" in run.outcome.message and run.state == "failed"
    after = len(run.events_after(0))
    again = runs.start(QUESTION)
    with again.followed(threading.Event().set):
        assert again.wait(20), "its worker goes on with the next"
    assert len(run.events_after(0)) == after, "nothing comes behind the end"
    eventually(lambda: notebook.ends.get(run.id) == ["timeout"])


def test_a_question_still_in_the_queue_ends_too(make: Make) -> None:
    runs = make(quoting, workers=1)
    first = runs.start(QUESTION)
    queued = runs.start(QUESTION, timeout_s=1.0)
    with first.followed(threading.Event().set), queued.followed(threading.Event().set):
        assert queued.wait(3) and not first.finished
    assert isinstance(queued.outcome, AnswerFailed) and queued.outcome.code == "timeout"


def test_a_document_that_loads_for_long_is_not_waited_for(make: Make) -> None:
    asked = threading.Event()
    loading = threading.Event()

    def load(_: str) -> Any:
        loading.wait(10)
        return SimpleNamespace(tokens=SimpleNamespace(key="k"))

    def ask(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        asked.set()
        yield AnswerCompleted(ANSWER)

    run = make(ask, load).start(QUESTION, timeout_s=1.0)
    with run.followed(threading.Event().set):
        assert run.wait(2)
    loading.set()
    assert not asked.wait(0.3), "nobody wants it any more"


@pytest.mark.parametrize("how", ["cancelled", "left", "stopping"])
def test_one_that_is_given_up_while_a_document_loads_is_over_at_once(
    make: Make, notebook: Notebook, how: str
) -> None:
    loading, go = threading.Event(), threading.Event()

    def load(_: str) -> Any:
        loading.set()
        assert go.wait(60)
        return SimpleNamespace(tokens=SimpleNamespace(key="k"))

    runs = make(quoting, load, workers=1, grace_seconds=0.05)
    run = runs.start(QUESTION)
    with run.followed(lambda: None):
        assert loading.wait(60)
        if how == "cancelled":
            runs.cancel(run.id)
        elif how == "stopping":
            runs.stop_all("server_stopping")
    try:
        assert run.wait(30), "its worker still loads"
        code = "server_stopping" if how == "stopping" else "cancelled"
        assert isinstance(run.outcome, AnswerFailed) and run.outcome.code == code
        eventually(lambda: notebook.ends == {run.id: [code]})
        assert run.events_after(0)[-1][1] is run.outcome
    finally:
        go.set()


def test_an_answer_in_time_is_left_alone(make: Make, told: list[str]) -> None:
    def ask(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCompleted(ANSWER)

    run = make(ask).start(QUESTION, timeout_s=1.0)
    assert run.wait(5)
    time.sleep(1.2)
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.2, "nothing waits for a deadline that is past"
    assert isinstance(run.outcome, AnswerCompleted) and run.outcome.answer == dataclasses.replace(
        ANSWER, timings=run.outcome.answer.timings
    )
    assert told == []


def test_what_a_user_cancels_stays_cancelled(make: Make) -> None:
    runs = make(quoting)
    run = runs.start(QUESTION, timeout_s=60)
    runs.cancel(run.id)
    runs.stop_all("server_stopping")
    assert run.wait(5) and run.state == "cancelled"


def test_stopping_ends_all_with_the_reason(make: Make) -> None:
    runs = make(quoting, workers=1)
    shown, queued = runs.start(QUESTION), runs.start(QUESTION)
    end = time.monotonic() + 5
    while not shown.text():
        assert time.monotonic() < end
        time.sleep(0.01)
    assert not runs.idle
    runs.stop_all("server_stopping")
    assert shown.wait(5) and queued.wait(5)
    assert isinstance(shown.outcome, AnswerCompleted)
    assert shown.outcome.answer.finish_reason == "server_stopping"
    assert isinstance(queued.outcome, AnswerFailed) and queued.outcome.code == "server_stopping"
    assert runs.idle


def test_what_keeps_new_questions_out_is_asked_before_anything_is_saved(
    make: Make, notebook: Notebook
) -> None:
    def closed() -> None:
        raise NoNewWork("too hot", code="gpu_hot")

    with pytest.raises(NoNewWork):
        make(quoting, admit=closed).start(QUESTION)
    assert notebook.ends == {}


def test_a_dead_worker_is_named(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)

    class Mortal(AnswerRuns):
        def _answer(self, run: Any) -> None:
            raise SystemError("a defect outside of every answer")

    alive = make(quoting, workers=2)
    assert alive.problem == ""
    engine = cast("Any", SimpleNamespace(cancel=lambda _: None, attends_pages=True))
    runs = Mortal(
        engine, cast("Any", None), cast("Any", Notebook()), cast("Any", quoting), workers=2
    )
    runs.start(QUESTION)
    end = time.monotonic() + 5
    while not runs.problem:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert "1 of 4 threads" in runs.problem and "answers-" in runs.problem
    runs.close()
    assert runs.problem == "", "a server that stops needs none"


def test_who_counts_answers_cannot_end_the_worker(make: Make) -> None:
    def broken(_: Any) -> None:
        raise KeyError("a metric")

    def ask(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCompleted(ANSWER)

    runs = make(ask, workers=1, on_finished=broken)
    assert runs.start(QUESTION).wait(5) and runs.start(QUESTION).wait(5)
    assert runs.problem == ""


@pytest.mark.parametrize("end", ["completed", "internal_error"])
def test_an_end_that_the_database_does_not_take_is_saved_when_it_does(
    make: Make, notebook: Notebook, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.setattr(answers, "AGAIN_S", 0.01)
    away, tried = threading.Event(), threading.Semaphore(0)
    away.set()

    def guarded(save: Callable[..., None]) -> Callable[..., None]:
        def saving(*arguments: Any, **more: Any) -> None:
            tried.release()
            if away.is_set():
                raise DatabaseBusy("away")
            save(*arguments, **more)

        return saving

    for name in ("save_answer", "fail_answer"):
        monkeypatch.setattr(notebook, name, guarded(getattr(notebook, name)))

    def ask(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCreated("", "", "en", ())
        if end != "completed":
            raise ValueError("secret")
        yield AnswerCompleted(ANSWER)

    runs = make(ask, keep_seconds=0.0)
    run = runs.start(QUESTION)
    assert run.wait(30)
    for _ in range(20):
        assert tried.acquire(timeout=30), "it is tried again"
    assert notebook.ends == {} and runs.get(run.id) is run, "not forgotten before it is saved"
    if isinstance(run.outcome, AnswerCompleted):
        [warning] = run.outcome.answer.warnings
        assert warning.code == "not_saved" and "as soon as" in warning.message
    away.clear()
    saved = ["quote" if end == "completed" else end]
    eventually(lambda: notebook.ends == {run.id: saved})


@pytest.mark.parametrize("how", ["timeout", "cancelled", "server_stopping"])
def test_those_that_are_stopped_are_over_while_the_database_keeps_its_caller_waiting(
    make: Make, notebook: Notebook, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    loading, back = threading.Event(), threading.Event()
    fail = notebook.fail_answer

    def slowly(*arguments: Any, **more: Any) -> None:
        assert back.wait(60)
        fail(*arguments, **more)

    def load(_: str) -> Any:
        assert loading.wait(60)
        return SimpleNamespace(tokens=SimpleNamespace(key="k"))

    monkeypatch.setattr(notebook, "fail_answer", slowly)
    runs = make(quoting, load, workers=2, grace_seconds=600.0)
    timeout_s = 0.05 if how == "timeout" else None
    stopped = [runs.start(QUESTION, timeout_s=timeout_s) for _ in range(4)]
    if how == "cancelled":
        for run in stopped:
            runs.cancel(run.id)
    elif how == "server_stopping":
        runs.stop_all("server_stopping")
    try:
        for run in stopped:
            assert run.wait(30), "it waits for the database"
            assert isinstance(run.outcome, AnswerFailed) and run.outcome.code == how
        assert notebook.ends == {}
    finally:
        back.set()
        loading.set()
    eventually(lambda: notebook.ends == {run.id: [how] for run in stopped})


def test_closing_saves_the_ends_of_those_it_stops_though_a_worker_loads_on(
    make: Make, notebook: Notebook
) -> None:
    loading, go = threading.Event(), threading.Event()

    def load(_: str) -> Any:
        loading.set()
        assert go.wait(60)
        return SimpleNamespace(tokens=SimpleNamespace(key="k"))

    runs = make(quoting, load, workers=1)
    run = runs.start(QUESTION)
    assert loading.wait(30)
    closing = threading.Thread(target=runs.close, args=(60.0,))
    closing.start()
    try:
        eventually(lambda: notebook.ends == {run.id: ["server_stopping"]})
    finally:
        go.set()
        closing.join()


def eventually(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)
