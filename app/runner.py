"""The threads of one process that work on ingestion: a few that parse and index (some of them short
files only, see `app.preparing`), one that follows the engine while it reads, one for the heartbeat.

A failure of a job is written into its document; it never ends a thread. A database that is away is
no failure of a job: what is read goes on, what is prepared goes back to the line, and an end is
kept until it is written. Does not know the stages.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from sqlalchemy.exc import SQLAlchemyError

from app.documents import Waiting
from app.errors import AppError, DatabaseBusy, StorageFull
from app.ingest import Ingestor
from app.jobs import Job, JobQueue, LeaseLost
from app.pace import PROGRESS_S, Stopped, Throttle, since
from app.preparing import KEPT, PreparingPlaces
from app.reading_turns import ahead_of, due
from app.returns import MOST, Returns
from app.unwritten import Unwritten, may_pass
from app.workers import Worker
from backend.errors import BackendError, RequestTooLarge
from backend.types import DocumentTokens, ReadProgress
from retrieval.errors import ParseCancelled, ParseError

if TYPE_CHECKING:
    from app.engines import AnyEngine, Ticket

log = logging.getLogger(__name__)

IDLE_S = 1.0
"""How often the line is looked at when nobody called; also the delay of a cancel from another
process."""
FOLLOW_S = 0.1
"""How often the engine's progress is looked at."""
AWAY_S = 10.0
"""How often the log says that the database is away."""
STANDS_S = 2.0
"""A document of which nothing was read for so long is told to wait, though its reading began."""
_NOT_TAKEN = (
    f"The database did not take this document in {MOST + 1} attempts; the log has its reasons. "
    "Press retry once it is well again."
)


@dataclass(slots=True, eq=False)
class Reading:
    """A document that the engine has, or (`ticket` None) waits for its owner's others. The engine
    may let it wait as well, until it has `begun`, and between its turns: it was `moved` last when
    something of it was read. `read_tokens` were told, and never fewer."""

    job: Job
    tokens: DocumentTokens
    started: float = field(default_factory=time.monotonic)
    throttle: Throttle = field(default_factory=lambda: Throttle(PROGRESS_S))
    ticket: Ticket | None = None
    begun: bool = False
    read_tokens: int = 0
    moved: float = field(default_factory=time.monotonic)
    last: ReadProgress | None = None
    read_ms: float | None = None
    without_space: bool = False

    @property
    def owner(self) -> str:
        """Whose it is."""
        return self.tokens.owner

    @property
    def length(self) -> int:
        """Its tokens."""
        return len(self.tokens.token_ids)

    @property
    def given(self) -> bool:
        """The engine has it."""
        return self.ticket is not None

    @property
    def stands(self) -> bool:
        """The engine has not worked on it lately, nor begun to."""
        return not self.begun or time.monotonic() - self.moved > STANDS_S

    def look_at(self, progress: ReadProgress) -> None:
        """It has begun, and stands there now."""
        if not self.begun or progress.at_work or progress != self.last:
            self.moved = time.monotonic()
        self.begun, self.last = True, progress

    @property
    def arrival(self) -> tuple[float, str]:
        """When it came, in the order of the line of jobs: a long one takes longer to prepare than
        those that came after it, and is before them all the same."""
        return self.job.created_at, self.job.id


class JobRunner:
    """Works on the jobs of this process; with `resume` also on those that others left behind."""

    def __init__(
        self,
        ingestor: Ingestor,
        queue: JobQueue,
        worker: Worker,
        engine: AnyEngine,
        *,
        resume: bool,
        may_begin: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_begin`: while it says no, jobs that wait go on waiting; those that run go on."""
        self.ingestor = ingestor
        self.queue = queue
        self.worker = worker
        self.engine = engine
        self.resume = resume
        self.on_read: Callable[[float, int], None] | None = None
        """Told of every document that was read: seconds, and tokens that went through the model."""
        self._may_begin = may_begin
        self._places = PreparingPlaces(ingestor.settings.ingest_workers)
        self._wanted: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._stop = threading.Event()
        self._cancelled: set[str] = set()
        self._lost: frozenset[Job] = frozenset()
        self._handed: list[Reading] = []
        self._readings: list[Reading] = []
        self.unwritten = Unwritten()
        """Ends of jobs that the database did not take."""
        self.returns = Returns()
        """Jobs that went back to the line because of it."""
        self._away = Throttle(AWAY_S)
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Register, free what dead processes left, and begin to work."""
        self.worker.register()
        reaped = self.worker.reap()
        if reaped.workers:
            log.warning(
                "found %d stopped process(es): %d job(s) go on, %d answer(s) failed",
                reaped.workers,
                reaped.jobs,
                reaped.messages,
            )
        count = self.ingestor.settings.ingest_workers
        for number in range(count):
            self._spawn(f"ingest-{number}", lambda: self._ingest(kept=False))
        for number in range(KEPT):
            self._spawn(f"ingest-short-{number}", lambda: self._ingest(kept=True))
        self._spawn("read-follower", self._follow)
        self._spawn("heartbeat", self._beat)

    @property
    def problem(self) -> str:
        """Which threads have ended that should not have, with what to do; empty while all live."""
        dead = [thread.name for thread in self._threads if not thread.is_alive()]
        if not dead or self._stop.is_set():
            return ""
        return f"threads have ended: {', '.join(dead)}; the log says why. Restart the server."

    def want(self, document_id: str) -> None:
        """Take this document's job when it is free, even without `resume`."""
        with self._wake:
            if not self.resume:  # with it, every free job is taken anyway
                self._wanted.add(document_id)
            self._wake.notify_all()

    def look(self) -> None:
        """Look for new jobs, and for those that are cancelled or deleted, now."""
        try:
            self._look_at_jobs()
        except (AppError, SQLAlchemyError) as error:
            # What the caller did stands, and the heartbeat looks again within `IDLE_S`.
            log.info("can't look at the jobs now: %s", error)
        with self._wake:
            self._wake.notify_all()

    def waiting(self, document_id: str) -> Waiting | None:
        """What a document that is prepared waits for; None for one that is being read or is not in
        the hands of this process. Of others' documents nothing is told."""
        readings = self._readings
        one = next((one for one in readings if one.job.document_id == document_id), None)
        if one is not None and one.without_space:
            return Waiting("storage", 0)
        if one is None or not one.stands:
            return None
        if one.ticket is None:
            ahead = len(ahead_of(one, readings))
            if self.paused:
                return Waiting("paused", ahead)
            if ahead:
                return Waiting("documents", ahead)
        beside = [other for other in readings if other.owner == one.owner and other is not one]
        return Waiting("engine", sum(other.begun for other in beside))

    def ahead(self, document_ids: Collection[str]) -> dict[str, int]:
        """By document, behind how many of its owner's its job is taken up here, as far as it is."""
        with self._lock:
            wanted = tuple(self._wanted)
        return self.queue.ahead(document_ids, resume=self.resume, wanted=wanted)

    @property
    def paused(self) -> bool:
        """Whether no job is taken up, and no reading begun, for now."""
        return not self._may_begin()

    def close(self) -> None:
        """Stop orderly: running jobs go back to the line, uncounted."""
        self._stop.set()
        with self._wake:
            self._wake.notify_all()
        for thread in self._threads:
            thread.join()
        for reading in self._readings + self._handed:
            with self._guard(reading.job):
                self._drop(reading)
                raise Stopped
        self.unwritten.write()
        self.worker.leave()

    def _spawn(self, name: str, target: object) -> None:
        thread = threading.Thread(target=target, name=name, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _ingest(self, *, kept: bool) -> None:
        while not self._stop.is_set():
            place = self._places.take(self._claim, kept=kept)
            if place is None:
                with self._wake:
                    if not self._stop.is_set():
                        self._wake.wait(IDLE_S)
                continue
            if not kept:
                # Short ones that wait may have a kept place from now on.
                with self._wake:
                    self._wake.notify_all()
            try:
                self._run(place.job)
            finally:
                self._places.leave(place)

    def _claim(self, largest: int | None) -> Job | None:
        if not self._may_begin():
            return None
        with self._lock:
            wanted = tuple(self._wanted)
        try:
            return self.queue.claim(
                resume=self.resume, wanted=wanted, largest=largest, pausing=self.returns.pausing
            )
        except Exception as error:
            # A thread that ended would leave the line standing until the next start.
            known = isinstance(error, DatabaseBusy)
            log.warning("can't look for jobs: %s", error, exc_info=None if known else error)
            return None

    def _run(self, job: Job) -> None:
        def stopping() -> bool:
            return self._stop.is_set() or job.id in self._cancelled

        with self._guard(job):
            tokens = self.ingestor.prepare(job, stopping)
            self.returns.forget(job.id)
            with self._lock:
                self._handed.append(Reading(job, tokens))
            return
        self.forget(job)

    def _follow(self) -> None:
        while not self._stop.wait(FOLLOW_S):
            with self._lock:
                # Replaced as a whole, here and below: others look at it.
                self._readings = sorted(self._readings + self._handed, key=lambda one: one.arrival)
                self._handed.clear()
            turn = set(due(self._readings))
            self._readings = [one for one in self._readings if self._step(one, first=one in turn)]

    def _step(self, reading: Reading, *, first: bool) -> bool:
        """Look at one document. `first`: the engine is to have it. False: it needs no more
        following."""
        following = False
        with self._guard(reading.job):
            if reading.job.id in self._cancelled:
                self._drop(reading)
                raise Stopped
            if reading.job in self._lost:
                raise LeaseLost(reading.job.id)
            try:
                following = not first or self._progress(reading)
                reading.without_space = False
            except Exception as error:
                if not may_pass(error):
                    raise
                # The engine goes on, and is looked at again: also one that is done is done then.
                following = True
                reading.without_space = isinstance(error, StorageFull)
                if self._away.due():
                    log.warning("can't write how reading goes: %s", error)
        if not following:
            self._drop(reading)
            self.forget(reading.job)
        return following

    def _progress(self, reading: Reading) -> bool:
        job = reading.job
        if reading.ticket is None:
            if not self._may_begin():
                return True
            # One that was deleted while it waited must not come to memory and disk again.
            self.ingestor.require_ours(job)
            reading.started = time.monotonic()
            try:
                reading.ticket = self.engine.read(reading.tokens)
            except RequestTooLarge as error:
                self.ingestor.complete_unread(job, str(error))
                return False
        progress = reading.ticket.progress()
        if progress.status == "queued":
            # What questions have read of it may be gone when its turn comes: that is no progress.
            reading.started = time.monotonic()
            return True
        reading.look_at(progress)
        if progress.status == "done":
            # Once: while the database is away this is looked at again and again.
            read_ms = reading.read_ms = reading.read_ms or since(reading.started)
            self.ingestor.complete(job, progress.total_tokens, progress.computed_tokens, read_ms)
            if self.on_read is not None:
                self.on_read(read_ms / 1000, progress.computed_tokens)
            return False
        if progress.status == "failed":
            self.ingestor.fail(
                job, "read_failed", progress.error or "The engine could not read it."
            )
            return False
        if progress.status == "cancelled":
            self.ingestor.cancel(job)
            return False
        if reading.throttle.due():
            reading.read_tokens = max(reading.read_tokens, progress.read_tokens)
            self.ingestor.report(
                job,
                stage="reading",
                done=reading.read_tokens,
                total=progress.total_tokens,
                unit="tokens",
            )
        return True

    def _drop(self, reading: Reading) -> None:
        if reading.ticket is not None and reading.ticket.progress().status in ("queued", "reading"):
            reading.ticket.cancel()

    def _guard(self, job: Job) -> _Guard:
        return _Guard(self, job)

    def end_of_stopped(self, job: Job) -> Callable[[], None]:
        """Ends a job that stopped because it was told to: cancelled, or back to the line."""
        end = self.ingestor.cancel if job.id in self._cancelled else self.queue.release
        return partial(end, job)

    def forget(self, job: Job) -> None:
        """The job is not ours any more."""
        self._cancelled.discard(job.id)

    def _beat(self) -> None:
        every = Throttle(self.worker.heartbeat_s)
        every.due()
        while not self._stop.wait(IDLE_S):
            self.unwritten.write()
            try:
                self._look_at_jobs()
                if every.due():
                    if not self.worker.beat():
                        log.warning("this process was taken for dead; its jobs went to others")
                    self.worker.reap()
            except Exception as error:
                # Without a heartbeat this process is taken for dead: try again.
                known = isinstance(error, AppError)
                log.warning("heartbeat failed: %s", error, exc_info=None if known else error)

    def _look_at_jobs(self) -> None:
        self._cancelled |= self.queue.cancel_requests()
        # In this order: a job that is claimed meanwhile is none that was lost.
        jobs = [reading.job for reading in self._readings]
        held = self.queue.held() if jobs else set()
        self._lost = frozenset(job for job in jobs if (job.id, job.attempts) not in held)


class _Guard:
    """Turns whatever ends a job early into its final state, in one place."""

    def __init__(self, runner: JobRunner, job: Job) -> None:
        self.runner = runner
        self.job = job

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if error is None:
            return False
        if not isinstance(error, Exception):
            return False
        end = partial(self._write, self._end_for(error))
        try:
            end()
        except Exception as problem:
            kept = may_pass(problem)
            if kept:
                self.runner.unwritten.keep(self.job.id, end)
            # One that is not kept stays open in our name; it is freed when this process ends.
            log.error(
                "can't write the end of job %s%s",
                self.job.id,
                "; it is tried again" if kept else "",
                exc_info=problem,
            )
        return True

    def _write(self, end: Callable[[], None]) -> None:
        try:
            end()
        except LeaseLost:
            log.info("job %s is no longer ours", self.job.id)
            self._tidy()

    def _tidy(self) -> None:
        try:
            self.runner.ingestor.remove_if_deleted(self.job)
        except (AppError, SQLAlchemyError) as error:
            log.warning("files of job %s may be left: %s", self.job.id, error)

    def _end_for(self, error: Exception) -> Callable[[], None]:
        """What writes the end that an error makes."""
        if isinstance(error, LeaseLost):
            return partial(_raise, error)
        if isinstance(error, Stopped | ParseCancelled):
            return self.runner.end_of_stopped(self.job)
        fail = partial(self.runner.ingestor.fail, self.job)
        if may_pass(error) and not isinstance(error, StorageFull):
            if self.runner.returns.admits(self.job.id):
                log.warning("job %s goes back to the line: %s", self.job.id, error)
                return partial(self.runner.queue.release, self.job)
            log.error("job %s was not taken by the database", self.job.id, exc_info=error)
            return partial(fail, DatabaseBusy.code, _NOT_TAKEN)
        self.runner.returns.forget(self.job.id)
        if isinstance(error, ParseError | AppError):
            return partial(fail, error.code, str(error))
        if isinstance(error, BackendError):
            return partial(fail, "engine_failed", str(error))
        log.error("job %s failed", self.job.id, exc_info=error)
        return partial(
            fail,
            "internal",
            f"Something went wrong inside the program ({type(error).__name__}). Press retry; "
            "the log has the details.",
        )


def _raise(error: Exception) -> None:
    raise error
