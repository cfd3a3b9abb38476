"""Runs: queue, followers, grace, forgetting, closing."""

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
from app.errors import NoNewWork, NotFound, TooManyQuestions
from app.events import AnswerCompleted, AnswerCreated, AnswerEvent, AnswerFailed
from app.pace import check
from app.questions import Question
from app.types import Answer, AnswerUsage, Coverage, Timings

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
QUESTION = Question("How long?", ("doc_1",), None)


class Notebook:
    """Conversations kept in a list."""

    def __init__(self) -> None:
        self.ends: dict[str, str] = {}
        self.count = 0

    def create(self, *, owner: str, document_ids: tuple[str, ...]) -> Any:
        return SimpleNamespace(id="conv_1")

    def turns(self, conversation_id: str) -> tuple[Any, ...]:
        return ()

    def start_answer(self, conversation_id: str, answer_id: str, *, question: str) -> Any:
        self.count += 1
        return SimpleNamespace(id=answer_id, created_at=datetime.now(UTC))

    def save_answer(self, conversation_id: str, message_id: str, answer: Answer) -> None:
        self.ends[message_id] = "completed"

    def fail_answer(self, message_id: str, code: str, *_: str, status: str, content: str) -> None:
        self.ends[message_id] = code


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


Make = Callable[..., AnswerRuns]


@pytest.fixture
def told() -> list[str]:
    """Requests that the engine was told to cancel."""
    return []


@pytest.fixture
def make(notebook: Notebook, told: list[str]) -> Iterator[Make]:
    made: list[AnswerRuns] = []

    def build(
        ask: Any, *, attends_pages: bool = True, left_to_read: bool = False, **options: Any
    ) -> AnswerRuns:
        progress = SimpleNamespace(read_tokens=0 if left_to_read else 2, status="reading")
        engine = cast(
            "Any",
            SimpleNamespace(
                progress=lambda _: progress, cancel=told.append, attends_pages=attends_pages
            ),
        )
        document = cast(
            "Any",
            SimpleNamespace(
                tokens=SimpleNamespace(key="k", token_ids=(1, 2)),
                record=SimpleNamespace(ready_tokens=0, warnings=()),
            ),
        )
        runs = AnswerRuns(engine, lambda _: document, cast("Any", notebook), ask, **options)
        made.append(runs)
        return runs

    yield build
    for runs in made:
        runs.close()


def until_cancelled(*_: Any, cancelled: threading.Event, **__: Any) -> Iterator[AnswerEvent]:
    yield AnswerCreated("", "", "en", ())
    assert cancelled.wait(10)
    yield AnswerFailed("cancelled", "The answer was cancelled.")


def at_once(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
    yield AnswerCreated("", "", "en", ())
    yield AnswerCompleted(ANSWER)


def test_a_quote_does_not_wait_behind_the_phrasing_of_twelve_others(make: Make) -> None:
    runs = make(until_cancelled)
    others = [runs.start(QUESTION) for _ in range(12)]
    late = runs.start(QUESTION)
    with late.followed(threading.Event().set):
        deadline = time.monotonic() + 5
        while not late.events_after(0) and time.monotonic() < deadline:
            time.sleep(0.01)
    assert late.events_after(0), "it has begun while the twelve go on"
    assert all(not run.finished for run in others)


def test_one_owners_questions_leave_a_thread_to_others(make: Make) -> None:
    runs = make(until_cancelled, workers=2, queue_limit=3, several_owners=True, grace_seconds=60.0)

    def taken_up(run: Any) -> None:
        deadline = time.monotonic() + 20
        while run.state == "queued" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert run.state == "in_progress"

    alices = [runs.start(dataclasses.replace(QUESTION, owner="Alice"))]
    taken_up(alices[0])
    alices += [runs.start(dataclasses.replace(QUESTION, owner="Alice")) for _ in range(3)]
    with pytest.raises(TooManyQuestions):
        runs.start(dataclasses.replace(QUESTION, owner="Alice"))
    taken_up(runs.start(dataclasses.replace(QUESTION, owner="Bob")))
    assert [run.state for run in alices] == ["in_progress"] + ["queued"] * 3
    runs.cancel(alices[0].id)
    taken_up(alices[1])


def test_an_answer_is_found_by_its_owner(make: Make) -> None:
    runs = make(at_once)
    run = runs.start(dataclasses.replace(QUESTION, owner="Alice"))
    assert runs.get(run.id, owner="Alice") is runs.get(run.id) is run
    for call in (runs.get, runs.cancel):
        with pytest.raises(NotFound):
            call(run.id, owner="Bob")


def test_events_have_ids_and_can_be_read_from_any(make: Make, notebook: Notebook) -> None:
    run = make(at_once).start(QUESTION)
    assert run.wait(5)
    assert [event_id for event_id, _ in run.events_after(0)] == [1, 2]
    assert [event_id for event_id, _ in run.events_after(1)] == [2]
    assert run.events_after(2) == run.events_after(99) == ()
    assert run.state == "completed" and notebook.ends == {run.id: "completed"}


def test_waiting_counts_into_the_timings(make: Make) -> None:
    def slow_first(*_: Any, cancelled: threading.Event, **__: Any) -> Iterator[AnswerEvent]:
        time.sleep(0.2)
        yield AnswerCompleted(ANSWER)

    runs = make(slow_first, workers=1)
    first, second = runs.start(QUESTION), runs.start(QUESTION)
    assert first.wait(5) and second.wait(5)
    assert isinstance(second.outcome, AnswerCompleted)
    timings = second.outcome.answer.timings
    assert 150 < timings.queue_ms < 5000
    assert timings.ttft_ms >= timings.queue_ms and timings.total_ms >= timings.ttft_ms


def test_an_idle_worker_takes_up_every_question(make: Make) -> None:
    # The janitor sleeps beside the worker and must not be the one that is woken.
    runs = make(at_once, workers=1)
    for _ in range(20):
        assert runs.start(QUESTION).wait(2)
        time.sleep(0.03)


def test_a_full_queue_refuses(make: Make, notebook: Notebook) -> None:
    runs = make(until_cancelled, workers=1, queue_limit=2)
    running = runs.start(QUESTION)
    wait_for(lambda: running.state == "in_progress")
    waiting = [runs.start(QUESTION), runs.start(QUESTION)]
    assert [runs.ahead(run) for run in (running, *waiting)] == [None, 0, 1]
    saved = notebook.count
    with pytest.raises(TooManyQuestions, match="2 questions") as refused:
        runs.start(QUESTION)
    assert refused.value.retry_s and f"in {refused.value.retry_s} s" in str(refused.value)
    assert notebook.count == saved, "a refused question must not be saved"
    assert (runs.waiting, runs.running) == (2, 1)
    runs.cancel(waiting[0].id)
    assert waiting[0].wait(1), "a waiting question is cancelled without a worker"
    assert [runs.ahead(run) for run in (*waiting, runs.start(QUESTION))] == [None, 0, 1]


def test_cancelled_runs_stop_and_say_so(make: Make, notebook: Notebook) -> None:
    runs = make(until_cancelled)
    run = runs.start(QUESTION)
    wait_for(lambda: run.state == "in_progress")
    runs.cancel(run.id)
    assert run.wait(1)
    runs.cancel(run.id)
    assert run.state == "cancelled"
    wait_for(lambda: notebook.ends == {run.id: "cancelled"}, 30.0)


@pytest.mark.parametrize("attempt", [0, 1], ids=["the first attempt", "asked again"])
def test_a_cancel_reaches_a_worker_that_waits_for_the_engine(
    make: Make, told: list[str], attempt: int
) -> None:
    def reading(*_: Any, request_id: str, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCreated("", "", "en", ())
        # As in `Engine.generate`: no event comes while blocks are read, but the end of a cancel.
        wait_for(lambda: request_ids(request_id)[attempt] in told)
        yield AnswerFailed("cancelled", "The answer was cancelled.")

    runs = make(reading)
    run = runs.start(QUESTION)
    wait_for(lambda: run.state == "in_progress")
    runs.cancel(run.id)
    assert run.wait(1) and run.state == "cancelled"
    runs.cancel(run.id)
    assert told == [*request_ids(run.id)], "one that is over needs no telling"


def test_a_run_without_followers_is_cancelled_after_the_grace(make: Make) -> None:
    run = make(until_cancelled, grace_seconds=0.3).start(QUESTION)
    woken = threading.Event()
    with run.followed(woken.set):
        time.sleep(0.7)
        assert not run.finished, "a follower keeps it alive"
    left = time.monotonic()
    with run.followed(woken.set):
        pass
    assert run.wait(5) and time.monotonic() - left > 0.25
    assert run.state == "cancelled" and woken.is_set()


def test_a_run_that_nobody_follows_yet_is_given_more_time(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "FIRST_FOLLOWER_S", 0.6)
    runs = make(until_cancelled, grace_seconds=0.05)
    started = time.monotonic()
    assert runs.start(QUESTION).wait(8) and time.monotonic() - started >= 0.6


def test_one_that_looks_up_from_its_search_is_cancelled(make: Make, notebook: Notebook) -> None:
    def searching(*_: Any, cancelled: threading.Event, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCreated("", "", "en", ())
        assert cancelled.wait(10)
        check(cancelled.is_set)

    runs = make(searching)
    run = runs.start(QUESTION)
    wait_for(lambda: run.state == "in_progress")
    runs.cancel(run.id)
    assert run.wait(5) and run.state == "cancelled"
    wait_for(lambda: notebook.ends == {run.id: "cancelled"}, 30.0)


def test_finished_runs_are_forgotten(make: Make) -> None:
    runs = make(at_once, keep_seconds=0.2)
    run = runs.start(QUESTION)
    assert run.wait(5) and runs.get(run.id) is run

    def gone() -> bool:
        try:
            runs.get(run.id)
        except NotFound:
            return True
        return False

    wait_for(gone)


def test_a_faulty_answer_does_not_end_its_worker(make: Make, notebook: Notebook) -> None:
    def faulty(*arguments: Any, **options: Any) -> Iterator[AnswerEvent]:
        if arguments[2] == "boom":
            raise RuntimeError("secret")
        yield from at_once()

    runs = make(faulty, workers=1)
    bad = runs.start(Question("boom", ("doc_1",), None))
    good = runs.start(QUESTION)
    assert bad.wait(5) and good.wait(5)
    assert isinstance(bad.outcome, AnswerFailed) and "secret" not in bad.outcome.message
    assert bad.state == "failed" and good.state == "completed"


def test_an_end_that_cannot_be_saved_is_told_all_the_same(
    make: Make, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no database")

    def faulty(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        raise ValueError("secret")

    runs = make(faulty, workers=1)
    monkeypatch.setattr(notebook, "fail_answer", broken)
    assert all(runs.start(QUESTION).wait(5) for _ in range(2)), "the worker is still there"
    monkeypatch.setattr(notebook, "save_answer", broken)
    completed = make(at_once).start(QUESTION)
    assert completed.wait(5) and isinstance(completed.outcome, AnswerCompleted)
    assert [warning.code for warning in completed.outcome.answer.warnings] == ["not_saved"]


def test_a_question_that_is_saved_while_the_server_stops_ends(
    make: Make, notebook: Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = make(at_once)
    save = notebook.start_answer

    def slowly(conversation_id: str, answer_id: str, *, question: str) -> Any:
        runs.close()
        return save(conversation_id, answer_id, question=question)

    monkeypatch.setattr(notebook, "start_answer", slowly)
    run = runs.start(QUESTION)
    assert run.wait(1) and notebook.ends == {run.id: "server_stopping"}


def test_an_answer_without_an_end_fails(make: Make) -> None:
    def endless(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCreated("", "", "en", ())

    run = make(endless).start(QUESTION)
    assert run.wait(5) and run.state == "failed"


def test_close_cancels_all_and_takes_no_more(make: Make) -> None:
    runs = make(until_cancelled, workers=1)
    running, waiting = runs.start(QUESTION), runs.start(QUESTION)
    wait_for(lambda: running.state == "in_progress")
    runs.close()
    for run in (running, waiting):
        assert isinstance(run.outcome, AnswerFailed)
        assert run.outcome.code == "server_stopping", "the last event says why"
    with pytest.raises(NoNewWork):
        runs.start(QUESTION)


def wait_for(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.01)


def test_a_document_deleted_while_it_was_loaded_does_not_come_back(notebook: Notebook) -> None:
    engine_told: list[str] = []
    engine = SimpleNamespace(
        attends_pages=True,
        progress=lambda _: None,
        read=lambda tokens, **_: engine_told.append(f"read {tokens.key}"),
        forget=lambda key: engine_told.append(f"forget {key}"),
    )
    record = SimpleNamespace(final=True)
    loads = iter([SimpleNamespace(tokens=SimpleNamespace(key="k"), record=record)])

    def load(document_id: str) -> Any:
        found = next(loads, None)
        if found is None:
            raise NotFound(f"There is no document {document_id}.")
        return found

    runs = AnswerRuns(cast("Any", engine), load, cast("Any", notebook), cast("Any", at_once))
    try:
        run = runs.start(QUESTION)
        assert run.wait(5)
    finally:
        runs.close()
    assert engine_told == ["read k", "forget k"]
    assert isinstance(run.outcome, AnswerFailed) and run.outcome.code == "not_found"


@pytest.mark.parametrize("until_read", [False, True])
@pytest.mark.parametrize(("attends_pages", "expected"), [(True, [0, 1, 0]), (False, [0, 0, 0])])
def test_no_answer_is_worded_while_as_many_wait_as_are_answered(
    make: Make, attends_pages: bool, expected: list[int], until_read: bool
) -> None:
    over, told = threading.Event(), []

    def worded(*_: Any, brief: threading.Event, **__: Any) -> Iterator[AnswerEvent]:
        told.append(int(brief.is_set()))
        yield AnswerCreated("", "", "en", ())
        assert over.wait(10)
        yield AnswerCompleted(ANSWER)

    runs = make(worded, workers=1, attends_pages=attends_pages, left_to_read=True)
    asked = [runs.start(dataclasses.replace(QUESTION, until_read=until_read))]
    deadline = time.monotonic() + 10
    while not told and time.monotonic() < deadline:
        time.sleep(0.01)
    asked += [runs.start(QUESTION) for _ in range(2)]
    # Its wording ends when the others come, unless it stays and would be said to have changed.
    assert asked[0].brief.is_set() is (attends_pages and not until_read)
    over.set()
    assert all(run.wait(10) for run in asked)
    assert told == expected


def test_wording_ends_when_others_come_unless_its_answer_is_really_kept(make: Make) -> None:
    over, begun = threading.Event(), threading.Semaphore(0)

    def worded(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCreated("", "", "en", ())
        begun.release()
        assert over.wait(30)
        yield AnswerCompleted(ANSWER)

    patient = dataclasses.replace(QUESTION, until_read=True)
    briefs = {}
    for left_to_read in (False, True):
        over.clear()
        runs = make(worded, workers=4, left_to_read=left_to_read)
        asked = [runs.start(patient) for _ in range(4)]
        for _ in asked:
            assert begun.acquire(timeout=30)
        others = [runs.start(QUESTION) for _ in range(5)]
        briefs[left_to_read] = sorted(run.brief.is_set() for run in asked)
        over.set()
        assert all(run.wait(30) for run in (*asked, *others))
        for _ in others:
            assert begun.acquire(timeout=30), "those of the next round are waited for"
    # One thread of the four is for those who stay.
    assert briefs == {False: [True] * 4, True: [False] + [True] * 3}


@pytest.mark.parametrize("waits", [0, 1])
def test_before_a_stop_no_wording_goes_on_for_which_another_waits(
    make: Make, told: list[str], waits: int
) -> None:
    runs = make(until_cancelled, workers=2, grace_seconds=60)
    asked = [runs.start(QUESTION) for _ in range(2)]
    wait_for(lambda: runs.running == 2)
    others = [runs.start(QUESTION) for _ in range(waits)]
    assert not any(run.brief.is_set() for run in asked) and not told
    runs.hurry()
    assert [run.brief.is_set() for run in (*asked, *others)] == [bool(waits)] * 2 + [False] * waits
    assert set(told) == {one for run in asked * waits for one in request_ids(run.id)}


def test_who_is_kept_out_by_others_is_told_so(make: Make) -> None:
    runs = make(until_cancelled, workers=1, queue_limit=1, several_owners=True)
    first = runs.start(QUESTION)
    wait_for(lambda: first.state == "in_progress")
    for owner in range(4):
        runs.start(dataclasses.replace(QUESTION, owner=f"o{owner}"))
    with pytest.raises(TooManyQuestions, match="^Questions of others take the places") as late:
        runs.start(dataclasses.replace(QUESTION, owner="late"))
    assert late.value.retry_s == 5
    with pytest.raises(TooManyQuestions, match="^1 questions are already waiting in 1 places"):
        runs.start(dataclasses.replace(QUESTION, owner="o0"))


def test_those_who_stay_until_all_is_read_leave_threads_for_the_others(make: Make) -> None:
    over = threading.Event()

    def staying(*_: Any, until_read: bool, **__: Any) -> Iterator[AnswerEvent]:
        yield AnswerCreated("", "", "en", ())
        if until_read:
            assert over.wait(10)
        yield AnswerCompleted(dataclasses.replace(ANSWER, status="partial"))

    runs = make(staying, workers=8, left_to_read=True)
    patient = dataclasses.replace(QUESTION, until_read=True)
    stayed = [runs.start(patient) for _ in range(8)]
    other = runs.start(QUESTION)
    assert other.wait(5), "six of the eight threads are free"
    deadline = time.monotonic() + 5
    while sum(run.finished for run in stayed) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    sent_off = [run for run in stayed if run.finished]
    assert len(sent_off) == 6
    for run in sent_off:
        assert isinstance(run.outcome, AnswerCompleted)
        assert [one.code for one in run.outcome.answer.warnings] == ["not_waited"]
    over.set()
    assert all(run.wait(5) for run in stayed)
    kept = [run for run in stayed if run not in sent_off]
    assert all(
        isinstance(run.outcome, AnswerCompleted) and not run.outcome.answer.warnings for run in kept
    )
    assert isinstance(other.outcome, AnswerCompleted) and not other.outcome.answer.warnings
