"""Runs of questions: worker threads ask, followers read the buffered events.

A run outlives the connection that started it, so that a reader can come back (by event id) and
another client can cancel it. A run that nobody follows is cancelled after `grace_seconds`. It does
not know HTTP, and forgets a finished run after `keep_seconds`: what must last is saved to the
database as messages of the run's conversation (the run's id is that of the answer's message).
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Literal, Protocol

from app.conversations import Conversations
from app.documents import LoadedDocument
from app.errors import AppError, NotFound, TooManyQuestions
from app.events import AnswerCompleted, AnswerDelta, AnswerEvent, AnswerFailed
from app.questions import Question
from app.readiness import start_reading
from app.types import Answer, Turn
from backend.errors import BackendError, EngineBusy, EngineClosed, RequestTooLarge
from retrieval.errors import ParseError, RetrievalError
from retrieval.types import DocumentWarning

if TYPE_CHECKING:
    from backend.engine import Engine

logger = logging.getLogger(__name__)

CANCELLED = "cancelled"
RunState = Literal["queued", "in_progress", "completed", "failed", "cancelled"]
_ENGINE_CODES: dict[type[BackendError], str] = {
    EngineBusy: "engine_busy",
    EngineClosed: "engine_closed",
    RequestTooLarge: "request_too_large",
}


class Asker(Protocol):
    """The shape of `app.ask.ask`."""

    def __call__(
        self,
        engine: Engine,
        documents: Sequence[LoadedDocument],
        question: str,
        *,
        request_id: str,
        history: Sequence[Turn] = (),
        cancelled: threading.Event | None = None,
    ) -> Iterator[AnswerEvent]: ...


class AnswerRun:
    """One question on its way to an answer. Thread-safe; its event ids are 1, 2, 3, …"""

    def __init__(
        self,
        run_id: str,
        question: Question,
        conversation_id: str,
        history: tuple[Turn, ...],
        created_at: datetime,
    ) -> None:
        self.id = run_id
        self.question = question.text
        self.document_ids = question.document_ids
        self.conversation_id = conversation_id
        self.history = history
        self.created_at = created_at
        self.cancelled = threading.Event()
        self.arrived = time.perf_counter()
        self._lock = threading.Lock()
        self._state: RunState = "queued"
        self._events: list[AnswerEvent] = []
        self._notify: set[Callable[[], None]] = set()
        self._lonely_since: float | None = time.monotonic()
        self._finished_at: float | None = None
        self._done = threading.Event()

    @property
    def state(self) -> RunState:
        return self._state

    @property
    def finished(self) -> bool:
        return self._done.is_set()

    @property
    def outcome(self) -> AnswerCompleted | AnswerFailed | None:
        """The last event, None while the run goes on."""
        with self._lock:
            last = self._events[-1] if self._events else None
        return last if isinstance(last, AnswerCompleted | AnswerFailed) else None

    def events_after(self, event_id: int) -> tuple[tuple[int, AnswerEvent], ...]:
        """Events with a larger id, in order, each with its id."""
        with self._lock:
            start = max(event_id, 0)
            return tuple(enumerate(self._events[start:], start=start + 1))

    def wait(self, timeout: float | None = None) -> bool:
        """Blocks until the run is over; False when the time ran out first."""
        return self._done.wait(timeout)

    @contextlib.contextmanager
    def followed(self, notify: Callable[[], None]) -> Iterator[None]:
        """Calls `notify` (from another thread, it must not block) after every new event, and keeps
        the run alive meanwhile."""
        with self._lock:
            self._notify.add(notify)
            self._lonely_since = None
        try:
            yield
        finally:
            with self._lock:
                self._notify.discard(notify)
                if not self._notify:
                    self._lonely_since = time.monotonic()

    def lonely_for(self) -> float:
        """Seconds since the last follower left; 0 while there is one."""
        since = self._lonely_since
        return 0.0 if since is None else time.monotonic() - since

    def finished_for(self) -> float:
        """Seconds since the run was over; 0 while it goes on."""
        at = self._finished_at
        return 0.0 if at is None else time.monotonic() - at

    def text(self) -> str:
        """What was said so far."""
        with self._lock:
            return "".join(event.text for event in self._events if isinstance(event, AnswerDelta))

    def begin(self) -> None:
        """A worker took the run up."""
        self._state = "in_progress"

    def publish(self, event: AnswerEvent) -> None:
        """Appends an event and wakes the followers. A completed or error event ends the run."""
        with self._lock:
            self._events.append(event)
            if isinstance(event, AnswerCompleted | AnswerFailed):
                self._state = self._final_state(event)
                self._finished_at = time.monotonic()
                self._done.set()
            followers = tuple(self._notify)
        for notify in followers:
            notify()

    def _final_state(self, event: AnswerCompleted | AnswerFailed) -> RunState:
        if isinstance(event, AnswerFailed):
            return "cancelled" if event.code == CANCELLED else "failed"
        return "cancelled" if event.answer.finish_reason == CANCELLED else "completed"


class AnswerRuns:
    """Starts, keeps, cancels and forgets runs. Close it to cancel what is left."""

    def __init__(
        self,
        engine: Engine,
        load: Callable[[str], LoadedDocument],
        conversations: Conversations,
        ask: Asker,
        *,
        workers: int = 4,
        queue_limit: int = 32,
        grace_seconds: float = 5.0,
        keep_seconds: float = 600.0,
        on_finished: Callable[[AnswerRun], None] | None = None,
    ) -> None:
        self._engine = engine
        self._load = load
        self._conversations = conversations
        self._ask = ask
        self._queue_limit = queue_limit
        self._grace_seconds = grace_seconds
        self._keep_seconds = keep_seconds
        self._on_finished = on_finished
        self._runs: dict[str, AnswerRun] = {}
        self._waiting: deque[AnswerRun] = deque()
        self._reserved = 0
        self._changed = threading.Condition()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"answers-{number}", daemon=True)
            for number in range(workers)
        ]
        self._threads.append(
            threading.Thread(target=self._keep_house, name="answers-janitor", daemon=True)
        )
        for thread in self._threads:
            thread.start()

    @property
    def waiting(self) -> int:
        """Questions in the queue."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Questions being answered."""
        with self._changed:
            return sum(run.state == "in_progress" for run in self._runs.values())

    def start(self, question: Question) -> AnswerRun:
        """Saves and queues a question. Raises TooManyQuestions when the queue is full, and what
        saving raises."""
        with self._changed:
            if self._closed:
                raise TooManyQuestions("The server is stopping. Ask again in a moment.")
            if len(self._waiting) + self._reserved >= self._queue_limit:
                raise TooManyQuestions(
                    f"{self._queue_limit} questions are already waiting. Ask again in a moment."
                )
            self._reserved += 1
        try:
            run = self._saved_run(question)
        finally:
            with self._changed:
                self._reserved -= 1
        with self._changed:
            self._runs[run.id] = run
            self._waiting.append(run)
            self._changed.notify()
        return run

    def _saved_run(self, question: Question) -> AnswerRun:
        conversation_id = question.conversation_id
        if conversation_id is None:
            created = self._conversations.create(document_ids=question.document_ids)
            conversation_id = created.id
        history = self._conversations.turns(conversation_id)
        self._conversations.add_message(conversation_id, question.text)
        answer_id = f"ans_{uuid.uuid4().hex}"
        message = self._conversations.start_answer(conversation_id, answer_id)
        return AnswerRun(message.id, question, conversation_id, history, message.created_at)

    def get(self, run_id: str) -> AnswerRun:
        """Raises NotFound for a run that never was or is forgotten."""
        with self._changed:
            run = self._runs.get(run_id)
        if run is None:
            raise NotFound(f"There is no answer {run_id} here; it may have been forgotten.")
        return run

    def cancel(self, run_id: str) -> AnswerRun:
        """Asks a run to stop; one that is over stays as it is."""
        run = self.get(run_id)
        self._cancel(run)
        return run

    def close(self, timeout: float = 10.0) -> None:
        """Cancels every run and waits for the workers; no run can be started afterwards."""
        with self._changed:
            self._closed = True
            runs = tuple(self._runs.values())
            self._changed.notify_all()
        for run in runs:
            self._cancel(run)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _cancel(self, run: AnswerRun) -> None:
        run.cancelled.set()
        with self._changed:
            queued = run in self._waiting
            if queued:
                self._waiting.remove(run)
        if queued:
            self._fail(run, _stopped())

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                run = self._waiting.popleft()
                run.begin()
            self._run(run)

    def _run(self, run: AnswerRun) -> None:
        waited_ms = _since(run.arrived)
        try:
            documents = [self._load(document_id) for document_id in run.document_ids]
            start_reading(self._engine, documents)
            before_ms = _since(run.arrived)
            for event in self._ask(
                self._engine,
                documents,
                run.question,
                request_id=run.id,
                history=run.history,
                cancelled=run.cancelled,
            ):
                if isinstance(event, AnswerCompleted):
                    self._complete(run, _with_waiting(event.answer, waited_ms, before_ms))
                elif isinstance(event, AnswerFailed):
                    self._fail(run, event)
                else:
                    run.publish(event)
        except (AppError, RetrievalError, BackendError) as error:
            self._fail(run, AnswerFailed(_code(error), str(error)))
        except Exception as error:
            # A worker must outlive any fault; the reader gets the id under which it is logged.
            logger.error("answer %s failed unexpectedly", run.id, exc_info=error)
            self._fail(run, _internal(run))
        if not run.finished:
            self._fail(run, _stopped() if run.cancelled.is_set() else _internal(run))

    def _complete(self, run: AnswerRun, answer: Answer) -> None:
        try:
            self._conversations.save_answer(run.conversation_id, run.id, answer)
        except AppError as error:
            # The reader still gets the answer, and is told that it will not be found again.
            logger.error("answer %s could not be saved", run.id, exc_info=error)
            unsaved = DocumentWarning("not_saved", f"This answer could not be saved: {error}")
            answer = dataclasses.replace(answer, warnings=(*answer.warnings, unsaved))
        self._finish(run, AnswerCompleted(answer))

    def _fail(self, run: AnswerRun, event: AnswerFailed) -> None:
        if run.finished:
            return
        try:
            self._conversations.fail_answer(
                run.id,
                event.code,
                event.message,
                status="cancelled" if event.code == CANCELLED else "failed",
                content=run.text(),
            )
        except AppError as error:
            logger.error("the end of answer %s could not be saved", run.id, exc_info=error)
        self._finish(run, event)

    def _finish(self, run: AnswerRun, event: AnswerCompleted | AnswerFailed) -> None:
        run.publish(event)
        if self._on_finished is not None:
            self._on_finished(run)

    def _keep_house(self) -> None:
        pause = max(0.05, min(self._grace_seconds, self._keep_seconds, 2.0) / 4)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=pause)
                if self._closed:
                    return
                runs = tuple(self._runs.values())
            for run in runs:
                if run.finished_for() > self._keep_seconds:
                    with self._changed:
                        del self._runs[run.id]
                elif not run.finished and run.lonely_for() > self._grace_seconds:
                    self._cancel(run)


def _stopped() -> AnswerFailed:
    return AnswerFailed(CANCELLED, "The answer was cancelled.")


def _internal(run: AnswerRun) -> AnswerFailed:
    return AnswerFailed(
        "internal_error",
        f"Something went wrong on the server. The log has the details of {run.id}.",
    )


def _code(error: AppError | RetrievalError | BackendError) -> str:
    if isinstance(error, AppError | ParseError):
        return error.code
    if isinstance(error, BackendError):
        return _ENGINE_CODES.get(type(error), "engine_error")
    return "retrieval_error"


def _since(start: float) -> float:
    return (time.perf_counter() - start) * 1000


def _with_waiting(answer: Answer, waited_ms: float, before_ms: float) -> Answer:
    """Counts the time before the question was taken up: readers time from its arrival."""
    timings = dataclasses.replace(
        answer.timings,
        queue_ms=answer.timings.queue_ms + waited_ms,
        ttft_ms=answer.timings.ttft_ms + before_ms,
        total_ms=answer.timings.total_ms + before_ms,
    )
    return dataclasses.replace(answer, timings=timings)
