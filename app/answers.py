"""Runs of questions: worker threads ask, followers read the buffered events.

A run outlives the connection that started it, so that a reader can come back (by event id) and
another client can cancel it. A run whose last follower has left is cancelled after `grace_seconds`,
one that never had any after `FIRST_FOLLOWER_S`. It does not know HTTP, and forgets a finished run
after `keep_seconds`: what must last is saved to the database as messages of the run's conversation
(the run's id is that of the answer's message).
"""

from __future__ import annotations

import dataclasses
import logging
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from app.answer_ends import as_stopped, internal, since, stopped, with_waiting
from app.answer_run import CANCELLED, TIMEOUT, AnswerRun, StopReason
from app.answer_saving import AnswerSaving
from app.attempts import request_ids
from app.conversations import Conversations
from app.documents import LoadedDocument
from app.errors import AppError, NoNewWork, NotFound, TooManyQuestions
from app.events import AnswerCompleted, AnswerEvent, AnswerFailed
from app.failures import as_app_error
from app.framework import will_be_read
from app.gate import STOPPING
from app.pace import Stopped
from app.questions import Question
from app.readiness import make_known
from app.request_id import serving
from app.types import Answer, Turn
from app.unwritten import AGAIN_S
from app.waiting import Places, WaitingLine
from backend.errors import BackendError
from retrieval.errors import RetrievalError
from retrieval.types import DocumentWarning

if TYPE_CHECKING:
    from app.engines import AnyEngine

logger = logging.getLogger(__name__)


STAYING_SHARE = 4
"""One in so many threads may wait for reading to end (`until_read`)."""
_NOT_WAITED = DocumentWarning(
    "not_waited",
    "Too many questions wait for their documents to be read, so this answer was not kept until "
    "then. Ask again when the document is read.",
)


FIRST_FOLLOWER_S = 5.0
"""On a busy machine the reply that follows a run comes some time after the run."""


class Asker(Protocol):
    """The shape of `app.ask.ask`."""

    def __call__(
        self,
        engine: AnyEngine,
        documents: Sequence[LoadedDocument],
        question: str,
        *,
        request_id: str,
        history: Sequence[Turn] = (),
        cancelled: threading.Event | None = None,
        until_read: bool = False,
        brief: threading.Event | None = None,
    ) -> Iterator[AnswerEvent]: ...


WORKERS = 16
"""Questions answered at once. A worker keeps its place until the model's words are decoded, mostly
waiting for the engine; the quote that leads an answer takes milliseconds. With four, quotes stood
in line for up to 9 s behind other answers' decoding (docs/benchmarks/mixed-cpu.md)."""


class AnswerRuns:
    """Starts, keeps, cancels and forgets runs. Close it to cancel what is left."""

    def __init__(
        self,
        engine: AnyEngine,
        load: Callable[[str], LoadedDocument],
        conversations: Conversations,
        ask: Asker,
        *,
        workers: int = WORKERS,
        queue_limit: int = 32,
        grace_seconds: float = 0.5,
        keep_seconds: float = 600.0,
        several_owners: bool = False,
        admit: Callable[[], None] = lambda: None,
        on_finished: Callable[[AnswerRun], None] | None = None,
    ) -> None:
        """`queue_limit`: questions of one owner that may wait. `several_owners`: one leaves some
        threads to the others. `admit` raises what keeps new questions out for now."""
        self._engine = engine
        self._admit = admit
        self._load = load
        self._conversations = conversations
        self._ask = ask
        self._queue_limit = queue_limit
        self._workers = workers
        self._grace_seconds = grace_seconds
        self._keep_seconds = keep_seconds
        self._on_finished = on_finished
        self._runs: dict[str, AnswerRun] = {}
        self._waiting: WaitingLine[AnswerRun] = WaitingLine(
            queue_limit, workers, several=several_owners
        )
        # Those that have a thread.
        self._served: set[AnswerRun] = set()
        # Those of them that are kept until their documents are read.
        self._staying: set[AnswerRun] = set()
        self._stayers = Places(max(1, workers // STAYING_SHARE), several=several_owners)
        self._saving = AnswerSaving(conversations)
        self._changed = threading.Condition()
        # Whether the writer is to look at once.
        self._unsaved = False
        self._hurried = False
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"answers-{number}", daemon=True)
            for number in range(workers)
        ]
        # A database that is away keeps its caller waiting, and the janitor has deadlines to keep.
        for name, target in (("janitor", self._keep_house), ("writer", self._write_again)):
            self._threads.append(
                threading.Thread(target=target, name=f"answers-{name}", daemon=True)
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

    @property
    def idle(self) -> bool:
        """Whether every question has its answer, or its error."""
        with self._changed:
            return not self._waiting.reserved and all(run.finished for run in self._runs.values())

    @property
    def problem(self) -> str:
        """Which threads have ended that should not have, with what to do; empty while all live."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        if not dead or self._closed:
            return ""
        return (
            f"{len(dead)} of {len(self._threads)} threads that answer have ended "
            f"({', '.join(dead[:3])}); the log says why. Restart the server."
        )

    def start(
        self, question: Question, *, history: Sequence[Turn] = (), timeout_s: float | None = None
    ) -> AnswerRun:
        """Saves and queues a question. `history`: earlier turns that only the client knows, behind
        those of the conversation. `timeout_s`: from now on; what is there by then is the answer.
        Raises TooManyQuestions when there is no place for it, NoNewWork, and what saving raises.
        The run is over already if the server was stopped meanwhile."""
        self._admit()
        with self._changed:
            if self._closed:
                raise NoNewWork("The server is stopping. Ask again when it is back.", code=STOPPING)
            if not self._waiting.reserve(question.owner):
                raise self._too_many(question.owner)
        try:
            run = self._saved_run(question, history, timeout_s)
        except BaseException:
            with self._changed:
                self._waiting.give_back(question.owner)
            raise
        if not self._enqueue(run):
            run.stop(STOPPING)
            self._fail(run, stopped(run))
        return run

    def _too_many(self, owner: str) -> TooManyQuestions:
        """For one of this owner's who found no place; the caller holds the lock."""
        if self._waiting.kept_out(owner):
            why = "Questions of others take the places in the line."
        else:
            why = (
                f"{self._waiting.of(owner)} questions are already waiting in {self._queue_limit} "
                "places."
            )
        seconds = self._waiting.retry_s(owner)
        return TooManyQuestions(f"{why} Ask again in {seconds} s.", retry_s=seconds)

    def _enqueue(self, run: AnswerRun) -> bool:
        """Takes its reserved place. False: the server stopped while the question was saved, and no
        worker is left."""
        with self._changed:
            if not self._closed:
                self._runs[run.id] = run
                self._waiting.add(run)
            # Not before: of an owner of whom nothing waits or is kept the line forgets all.
            self._waiting.give_back(run.owner)
            if self._closed:
                return False
            # All: the janitor waits here as well, and might be the one that is woken.
            self._changed.notify_all()
        self._make_room()
        return True

    def _make_room(self) -> None:
        """Shortens what is served while too many wait."""
        with self._changed:
            # Who stays is to be told what changed, which is not that others came.
            crowded = [one for one in self._served - self._staying if self._crowded(one.owner)]
        for one in crowded:
            self._shorten(one)

    def _saved_run(
        self, question: Question, told: Sequence[Turn], timeout_s: float | None
    ) -> AnswerRun:
        conversation_id = question.conversation_id
        if conversation_id is None:
            created = self._conversations.create(
                owner=question.owner, document_ids=question.document_ids
            )
            conversation_id = created.id
        history = (*self._conversations.turns(conversation_id), *told)
        answer_id = f"ans_{uuid.uuid4().hex}"
        message = self._conversations.start_answer(
            conversation_id, answer_id, question=question.text
        )
        return AnswerRun(
            message.id,
            question,
            conversation_id,
            history,
            message.created_at,
            timeout_s=timeout_s,
        )

    def get(self, run_id: str, *, owner: str | None = None) -> AnswerRun:
        """Raises NotFound for a run that never was, is forgotten or is another owner's (None: of
        any owner)."""
        with self._changed:
            run = self._runs.get(run_id)
        if run is None or owner not in (None, run.owner):
            raise NotFound(f"There is no answer {run_id} here; it may have been forgotten.")
        return run

    def ahead(self, run: AnswerRun) -> int | None:
        """How many questions of its owner are taken up before this one; None once it is."""
        with self._changed:
            return self._waiting.ahead(run)

    def cancel(self, run_id: str, *, owner: str | None = None) -> AnswerRun:
        """Asks a run to stop; one that is over stays as it is. Raises NotFound as `get` does."""
        run = self.get(run_id, owner=owner)
        self._stop(run, CANCELLED)
        return run

    def drop(self, conversation_id: str) -> None:
        """Ends the runs of a conversation that was deleted; none of them is found afterwards."""
        with self._changed:
            runs = [run for run in self._runs.values() if run.conversation_id == conversation_id]
        for run in runs:
            run.deleted = True
            if run.finished:
                self._forget(run)
            else:
                self._stop(run, CANCELLED)

    def _forget(self, run: AnswerRun) -> None:
        with self._changed:
            self._runs.pop(run.id, None)

    def hurry(self) -> None:
        """The server stops soon: from now on no wording goes on for which another question waits,
        which would get nothing."""
        with self._changed:
            self._hurried = True
        self._make_room()

    def stop_all(self, reason: StopReason) -> None:
        """Ends every run, with `reason` in its last event."""
        with self._changed:
            runs = tuple(self._runs.values())
        for run in runs:
            if not run.finished:
                self._stop(run, reason)

    def close(self, timeout: float = 10.0) -> None:
        """Cancels every run and waits for the workers; no run can be started afterwards."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.stop_all(STOPPING)
        deadline = time.monotonic() + timeout
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _stop(self, run: AnswerRun, reason: StopReason) -> None:
        """What is shown stands and its worker closes the answer; where nothing is shown yet nobody
        waits for the worker, which may be loading a document, nor for the database: others are to
        be stopped as well."""
        run.stop(reason)
        with self._changed:
            queued = self._waiting.remove(run)
        if not queued and not run.finished:
            # The worker may be waiting for the engine, which may be reading for minutes.
            for request_id in request_ids(run.id):
                self._engine.cancel(request_id)
        if not run.text() and run.claim_end():
            self._finish(run, self._saving.failed_later(run, stopped(run)))
            with self._changed:
                self._unsaved = True
                self._changed.notify_all()

    def _shorten(self, run: AnswerRun) -> None:
        """Have it end with its quotes: a wording takes seconds, for which all who wait would wait
        too, and many times as long while they are all being answered."""
        if run.brief.is_set():
            return
        run.brief.set()
        for request_id in request_ids(run.id):
            self._engine.cancel(request_id)

    def _work(self) -> None:
        while True:
            with self._changed:
                while (run := self._waiting.take()) is None and not self._closed:
                    self._changed.wait()
                if run is None:
                    return
                self._served.add(run)
                if self._crowded(run.owner):
                    run.brief.set()
                run.begin()
            try:
                with serving(run.timeline.request_id):
                    self._answer(run)
            finally:
                if run in self._staying:
                    self._stayers.leave(run.owner)
                with self._changed:
                    self._staying.discard(run)
                    self._served.discard(run)
                    self._waiting.done(run)
                    # For a thread that leaves what waits to another owner's.
                    self._changed.notify_all()

    def _stay(self, run: AnswerRun) -> bool:
        """Whether there is a place for one that stays until its documents are read: such must not
        take every thread from the others. It keeps the place until its thread is free."""
        if not self._stayers.take(run.owner):
            return False
        with self._changed:
            self._staying.add(run)
        return True

    def _answer(self, run: AnswerRun) -> None:
        waited_ms = since(run.arrived)
        try:
            documents = [self._load(document_id) for document_id in run.document_ids]
            if run.cancelled.is_set():
                self._fail(run, stopped(run))
                return
            known = dict(zip(run.document_ids, documents, strict=True))
            make_known(self._engine, known, self._load)
            would_stay = run.until_read and will_be_read(self._engine, documents)
            stays = would_stay and self._stay(run)
            before_ms = since(run.arrived)
            for event in self._ask(
                self._engine,
                documents,
                run.question,
                request_id=run.id,
                history=run.history,
                cancelled=run.cancelled,
                until_read=stays,
                brief=run.brief,
            ):
                if isinstance(event, AnswerCompleted):
                    answer = as_stopped(event.answer, run)
                    if would_stay and not stays and answer.status == "partial":
                        answer = dataclasses.replace(
                            answer, warnings=(*answer.warnings, _NOT_WAITED)
                        )
                    self._complete(run, with_waiting(answer, waited_ms, before_ms))
                elif isinstance(event, AnswerFailed):
                    self._fail(run, stopped(run) if event.code == CANCELLED else event)
                else:
                    run.publish(event)
                if run.finished:
                    break
        except Stopped:
            self._fail(run, stopped(run))
        except (AppError, RetrievalError, BackendError) as error:
            self._fail(run, AnswerFailed.of(as_app_error(error)))
        except Exception as error:
            # A worker must outlive any fault; the reader gets the id under which it is logged.
            logger.error("answer %s failed unexpectedly", run.id, exc_info=error)
            self._fail(run, internal(run))
        if not run.finished:
            self._fail(run, stopped(run) if run.cancelled.is_set() else internal(run))

    def _crowded(self, owner: str) -> bool:
        """Whether as many wait for this owner's thread as there are threads (in a hurry: whether
        one does); the caller holds the lock. The bundled engine then words no answer: a quote takes
        milliseconds and its wording seconds, which all who wait would wait for. Servers elsewhere
        have their own limits."""
        most = 1 if self._hurried else self._workers
        return self._engine.attends_pages and self._waiting.rivals(owner) >= most

    def _complete(self, run: AnswerRun, answer: Answer) -> None:
        if run.claim_end():
            self._finish(run, self._saving.completed(run, answer))

    def _fail(self, run: AnswerRun, event: AnswerFailed) -> None:
        if run.claim_end():
            self._finish(run, self._saving.failed(run, event))

    def _write_again(self) -> None:
        """Saves the ends that the database did not take, those of runs that were stopped, and at
        last those of the last workers."""
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._unsaved, timeout=AGAIN_S)
                self._unsaved = False
            self._saving.unwritten.write()
        for thread in self._threads:
            while thread is not threading.current_thread() and thread.is_alive():
                self._saving.unwritten.write()
                thread.join(AGAIN_S)
        self._saving.unwritten.write()

    def _finish(self, run: AnswerRun, event: AnswerCompleted | AnswerFailed) -> None:
        run.publish(event)
        if run.deleted:
            self._forget(run)
        if self._on_finished is None:
            return
        try:
            self._on_finished(run)
        except Exception as error:
            # Whoever counts answers must not end the worker that gave one.
            logger.error("answer %s could not be counted", run.id, exc_info=error)

    def _keep_house(self) -> None:
        pause = max(0.05, min(self._grace_seconds, self._keep_seconds, 2.0) / 4)
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed, timeout=self._until_due(pause))
                if self._closed:
                    return
                runs = tuple(self._runs.values())
            for run in runs:
                if not run.finished and run.time_is_up:
                    self._give_up(run, TIMEOUT)
                if run.finished_for() > self._keep_seconds and run.id not in self._saving.unwritten:
                    self._forget(run)
                elif not run.finished and run.lonely_for() > self._grace_of(run):
                    self._give_up(run, CANCELLED)

    def _give_up(self, run: AnswerRun, reason: StopReason) -> None:
        with serving(run.timeline.request_id):
            self._stop(run, reason)

    def _grace_of(self, run: AnswerRun) -> float:
        first = 0.0 if run.was_followed else FIRST_FOLLOWER_S
        return max(self._grace_seconds, first)

    def _until_due(self, longest: float) -> float:
        """Seconds until the next deadline, `longest` at most."""
        now = time.perf_counter()
        due = [
            run.deadline - now
            for run in self._runs.values()
            if run.deadline is not None and run.stopped_for is None and not run.finished
        ]
        return max(0.0, min([longest, *due]))
