"""One plain generation on its way, with one or several choices, as those see it who wait for it.

Buffers the engine's events, so that whoever follows takes them at their own pace. It does not know
HTTP, text templates or documents.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.answer_ends import no_answer_within
from app.errors import AppError, Unavailable
from app.timeline import Timeline
from backend.types import EngineTimings, TokenEvent, Usage

if TYPE_CHECKING:
    from app.generation_prompt import GenerationPrompt

Outcome = Literal["completed", "cancelled", "failed"]


@dataclass(frozen=True, slots=True)
class ChoiceEvent:
    """An event of one of the choices; `choice` counts from 0."""

    choice: int
    event: TokenEvent


class CompletionRun:
    """Choices that are generated side by side. Thread-safe.

    `arrived` is the moment (`time.perf_counter`) at which the request came in. A choice that fails
    ends the others and is `failure`. `on_cancel` is called with the id of a choice that shall end.
    """

    def __init__(
        self,
        run_id: str,
        prompts: tuple[GenerationPrompt, ...],
        *,
        arrived: float,
        on_cancel: Callable[[str], None],
        timeout_s: float | None = None,
    ) -> None:
        """`prompts` holds the prompt of each choice; `timeout_s` is what `end_in_time` tells."""
        self.id = run_id
        self.created = int(time.time())
        self.prompts = prompts
        self.failure: AppError | None = None
        self.timed_out = False
        self.timeout_s = timeout_s
        self.first_token_s: float | None = None
        self.arrived = arrived
        self._on_cancel = on_cancel
        self._lock = threading.Lock()
        self._events: list[ChoiceEvent] = []
        # Ends that nobody has heard of yet: choices cut without a word, while another of them may
        # have ended well at the same moment.
        self._untold: list[ChoiceEvent] = []
        self._open = set(range(len(prompts)))
        self.timeline = Timeline()
        self._cancelled = False
        self._notify: set[Callable[[], None]] = set()

    @property
    def finished(self) -> bool:
        """Whether every choice has its last event."""
        with self._lock:
            return not self._open

    @property
    def outcome(self) -> Outcome:
        """How a finished run ended."""
        if self.failure is not None:
            return "failed"
        ends = (item.event.finish_reason for item in self.events_after(0))
        return "cancelled" if "cancelled" in ends and not self.timed_out else "completed"

    def choice_id(self, choice: int) -> str:
        """The engine's name for a choice."""
        return f"{self.id}-{choice}"

    def events_after(self, count: int) -> tuple[ChoiceEvent, ...]:
        """All events but the first `count`, in the order in which they came."""
        with self._lock:
            return tuple(self._events[count:])

    def finished_choices(self) -> tuple[tuple[Usage, EngineTimings], ...]:
        """Counts and times of the choices that the engine has ended."""
        return tuple(
            (item.event.usage, item.event.timings)
            for item in self.events_after(0)
            if item.event.usage is not None and item.event.timings is not None
        )

    @contextlib.contextmanager
    def followed(self, notify: Callable[[], None]) -> Iterator[None]:
        """Calls `notify` (from another thread, it must not block) after every new event."""
        with self._lock:
            self._notify.add(notify)
        try:
            yield
        finally:
            with self._lock:
                self._notify.discard(notify)

    def cancel(self) -> None:
        """End what is not over yet; harmless when all is."""
        with self._lock:
            self._cancelled = True
            left = tuple(self._open)
        for choice in left:
            self._on_cancel(self.choice_id(choice))

    def end_in_time(self) -> None:
        """Its time is up: what is written stands, without a word it has failed unless an end of its
        own is on its way already. Harmless when it is over."""
        with self._lock:
            if not self._open:
                return
            self.timed_out = True
        self.cancel()

    @property
    def cancelled(self) -> bool:
        """Whether it was asked to end."""
        return self._cancelled

    def fail(self, choice: int, failure: AppError) -> bool:
        """Ends a choice, and the others with it. True: it was the last of all."""
        event = TokenEvent(
            self.choice_id(choice), 0, None, "", finish_reason="error", error=failure.message
        )
        return self.publish(choice, event, failure)

    def publish(self, choice: int, event: TokenEvent, failure: AppError | None = None) -> bool:
        """Appends an event and wakes the followers. True: it was the last of all. `failure` is what
        an event with an error is told as; without it the engine's own failure."""
        with self._lock:
            if self.first_token_s is None and event.token_id is not None:
                self.first_token_s = time.perf_counter() - self.arrived
                self.timeline.note("first_event")
            self._untold.append(ChoiceEvent(choice, event))
            if event.finish_reason is not None:
                self._open.discard(choice)
            if not self._is_undecided(event):
                self._events += self._untold
                self._untold = []
            if event.finish_reason == "error" and self.failure is None:
                message = event.error or "The engine failed."
                self.failure = failure or Unavailable(message, code="engine_error")
            over = not self._open
            if over:
                if self.failure is None and self._cut_wordless():
                    self.failure = no_answer_within(self.timeout_s or 0.0)
                self.timeline.note("completed")
            followers = tuple(self._notify)
        if event.finish_reason == "error" and not over:
            self.cancel()
        for notify in followers:
            notify()
        return over

    def _is_undecided(self, event: TokenEvent) -> bool:
        """Whether what is still to come says what a run whose time is up is told as: until a choice
        has a word, or an end of its own."""
        if not self.timed_out or event.finish_reason not in (None, "cancelled") or event.text:
            return False
        return bool(self._open) and self.failure is None and not self._has_said()

    def _cut_wordless(self) -> bool:
        """Whether its time ended choices, and none has a word or an end of its own."""
        return self.timed_out and not self._has_said()

    def _has_said(self) -> bool:
        ends = (None, "cancelled")
        return any(one.event.text or one.event.finish_reason not in ends for one in self._events)
