"""One question on its way to an answer, as those see it who wait for it.

Buffers the events of a run under ascending ids, so that a reader who lost the connection can come
back. It does not know who works on it, HTTP or the database.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Final, Literal

from app.events import AnswerCompleted, AnswerDelta, AnswerEvent, AnswerFailed, AnswerRevised
from app.questions import Question
from app.timeline import Timeline
from app.types import Turn

CANCELLED: Final = "cancelled"
TIMEOUT: Final = "timeout"
StopReason = Literal["cancelled", "timeout", "server_stopping"]
RunState = Literal["queued", "in_progress", "completed", "failed", "cancelled"]


class AnswerRun:
    """One question on its way to an answer. Thread-safe; its event ids are 1, 2, 3, …

    `brief` is set when the model shall word it no more, because others wait for that.
    `deadline` (`time.perf_counter`) is when it shall be over, None for no such time. Whoever writes
    its last event claims the end before; what comes from others afterwards is dropped.
    `deleted`: its conversation was, so that nobody shall find it."""

    def __init__(
        self,
        run_id: str,
        question: Question,
        conversation_id: str,
        history: tuple[Turn, ...],
        created_at: datetime,
        *,
        timeout_s: float | None = None,
    ) -> None:
        self.id = run_id
        self.question = question.text
        self.owner = question.owner
        self.document_ids = question.document_ids
        self.until_read = question.until_read
        self.conversation_id = conversation_id
        self.history = history
        self.created_at = created_at
        self.cancelled = threading.Event()
        self.brief = threading.Event()
        self.arrived = time.perf_counter()
        self.timeout_s = timeout_s
        self.deadline = None if timeout_s is None else self.arrived + timeout_s
        self.stopped_for: StopReason | None = None
        self._claimed = False
        self._lock = threading.Lock()
        self._state: RunState = "queued"
        self._events: list[AnswerEvent] = []
        self._notify: set[Callable[[], None]] = set()
        self._lonely_since: float | None = time.monotonic()
        self.was_followed = False
        self.deleted = False
        self._finished_at: float | None = None
        self._done = threading.Event()
        self.timeline = Timeline()

    @property
    def state(self) -> RunState:
        """Where the run stands now."""
        return self._state

    @property
    def finished(self) -> bool:
        """Whether the last event is there."""
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
            self.was_followed = True
        try:
            yield
        finally:
            with self._lock:
                self._notify.discard(notify)
                if not self._notify:
                    self._lonely_since = time.monotonic()

    def expect_follower(self) -> None:
        """Whoever followed comes back at once, with a stream: the run waits as for its first."""
        with self._lock:
            self.was_followed = False

    def lonely_for(self) -> float:
        """Seconds since the last follower left, or since the run began; 0 while there is one."""
        since = self._lonely_since
        return 0.0 if since is None else time.monotonic() - since

    def finished_for(self) -> float:
        """Seconds since the run was over; 0 while it goes on."""
        at = self._finished_at
        return 0.0 if at is None else time.monotonic() - at

    def text(self) -> str:
        """What was said so far; a revision begins anew."""
        said: list[str] = []
        with self._lock:
            for event in self._events:
                if isinstance(event, AnswerRevised):
                    said = []
                elif isinstance(event, AnswerDelta):
                    said.append(event.text)
        return "".join(said)

    @property
    def time_is_up(self) -> bool:
        """Whether its deadline has passed and nobody has asked it to stop."""
        due = self.deadline is not None and time.perf_counter() >= self.deadline
        return due and self.stopped_for is None

    def stop(self, reason: StopReason) -> None:
        """Asks whoever works on it to stop. The first reason counts."""
        with self._lock:
            self.stopped_for = self.stopped_for or reason
        self.cancelled.set()

    def claim_end(self) -> bool:
        """True for the one who may write the last event."""
        with self._lock:
            first, self._claimed = not self._claimed, True
        return first

    def begin(self) -> None:
        """A worker took the run up."""
        self._state = "in_progress"
        self.timeline.note("taken_up")

    def publish(self, event: AnswerEvent) -> None:
        """Appends an event and wakes the followers. A completed or error event, from the one who
        claimed the end, ends the run; other events that come after the claim are dropped."""
        final = isinstance(event, AnswerCompleted | AnswerFailed)
        with self._lock:
            if self._done.is_set() or (self._claimed and not final):
                return
            self.timeline.note(_named(event))
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


def _named(event: AnswerEvent) -> str:
    """The mark of an event on the timeline; each counts the first time."""
    if isinstance(event, AnswerDelta):
        return f"first_{event.kind}"
    return event.type.removeprefix("answer.")
