"""When what happened to one question, from the first byte in to the last byte out.

Three levels on one clock: the gateway (a request's arrival, its first and last byte out), the
scheduler (the question's way through the queue, retrieval and the engine) and the kernel (the steps
of the engine that it took part in, as far as they were measured). The gateway knows the request by
`request_id`, the others by the answer's id. Thread-safe; knows no HTTP.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.request_id import current_request_id
from backend.step_times import RequestSteps

if TYPE_CHECKING:
    from app.engines import AnyEngine

Level = Literal["gateway", "scheduler", "kernel"]


class RequestClock:
    """The times of one request at the gateway, seconds of `time.perf_counter`; None while it has
    not come to that."""

    __slots__ = ("first_byte", "last_byte", "received")

    def __init__(self) -> None:
        self.received = time.perf_counter()
        self.first_byte: float | None = None
        self.last_byte: float | None = None

    def sent(self) -> None:
        """Bytes of a body went out."""
        if self.first_byte is None:
            self.first_byte = time.perf_counter()

    def done(self) -> float:
        """The last byte went out, or the client left; seconds since the request came."""
        self.last_byte = time.perf_counter()
        return self.last_byte - self.received


_clock: ContextVar[RequestClock | None] = ContextVar("request_clock", default=None)


def begin_request() -> RequestClock:
    """Starts the clock of the request that this context serves."""
    clock = RequestClock()
    _clock.set(clock)
    return clock


def current_clock() -> RequestClock | None:
    """The clock of the request that is being served, None outside of one."""
    return _clock.get()


@dataclass(frozen=True, slots=True)
class Mark:
    """`at_ms` counts from the arrival of the request (without one: of the question). What takes
    time has a `duration_ms`."""

    level: Level
    name: str
    at_ms: float
    duration_ms: float | None = None


class Timeline:
    """The marks of one question. The first mark of a name counts. `request_id` is that of the
    request that asked it, empty without one."""

    def __init__(self) -> None:
        self.request_id = current_request_id()
        self._clock = current_clock()
        self._lock = threading.Lock()
        self._noted: dict[str, float] = {}
        self.note("arrived")

    def note(self, name: str) -> None:
        """Something happened to the question now."""
        with self._lock:
            self._noted.setdefault(name, time.perf_counter())

    @property
    def zero(self) -> float:
        """The moment (`time.perf_counter`) from which marks count."""
        with self._lock:
            arrived = self._noted["arrived"]
        return arrived if self._clock is None else min(arrived, self._clock.received)

    @property
    def sent(self) -> bool:
        """Whether the last byte went out, or nobody waits for one."""
        return self._clock is None or self._clock.last_byte is not None

    def marks(self, requests: Iterable[RequestSteps] = ()) -> tuple[Mark, ...]:
        """What has happened by now, in order of time; `requests` are those that it made of the
        engine."""
        with self._lock:
            found: list[tuple[float | None, Level, str, float | None]] = [
                (at, "scheduler", name, None) for name, at in self._noted.items()
            ]
        clock = self._clock
        if clock is not None:
            found += [
                (clock.received, "gateway", "received", None),
                (clock.first_byte, "gateway", "first_byte", None),
                (clock.last_byte, "gateway", "last_byte", None),
            ]
        for steps in requests:
            found += [(at, "scheduler", name, None) for name, at in steps.marks]
            found += [(one.started, "kernel", one.kind, one.seconds) for one in steps.ranges]
        zero = self.zero
        marks = [
            Mark(level, name, 1000 * (at - zero), None if took is None else 1000 * took)
            for at, level, name, took in found
            if at is not None
        ]
        return tuple(sorted(marks, key=lambda mark: mark.at_ms))

    def tokens_ms(self, requests: Iterable[RequestSteps]) -> tuple[float, ...]:
        """When the model's tokens were there, one entry for each decoding step."""
        zero = self.zero
        return tuple(1000 * (at - zero) for steps in requests for at in steps.tokens)


def steps_of(engine: AnyEngine, request_ids: Iterable[str]) -> tuple[RequestSteps, ...]:
    """What the engine remembers of these requests."""
    found = (engine.steps_of(request_id) for request_id in request_ids)
    return tuple(steps for steps in found if steps is not None)
