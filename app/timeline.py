"""When what happened to one question, from the first byte in to the last byte out.

Two levels on one clock: the gateway (a request's arrival, its first and last byte out) and the
scheduler (the question's way through the queue, retrieval and the engine). Durations inside the
engine are in the answer's own timings. Thread-safe; knows no HTTP.
"""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

Level = Literal["gateway", "scheduler"]


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
    """`at_ms` counts from the arrival of the request (without one: of the question)."""

    level: Level
    name: str
    at_ms: float


class Timeline:
    """The marks of one question. The first mark of a name counts."""

    def __init__(self) -> None:
        self._clock = current_clock()
        self._lock = threading.Lock()
        self._noted: dict[str, float] = {}
        self.note("arrived")

    def note(self, name: str) -> None:
        """Something happened to the question now."""
        with self._lock:
            self._noted.setdefault(name, time.perf_counter())

    def marks(self) -> tuple[Mark, ...]:
        """What has happened by now, in order of time."""
        with self._lock:
            found: list[tuple[Level, str, float | None]] = [
                ("scheduler", name, at) for name, at in self._noted.items()
            ]
        clock = self._clock
        if clock is not None:
            found += [
                ("gateway", "received", clock.received),
                ("gateway", "first_byte", clock.first_byte),
                ("gateway", "last_byte", clock.last_byte),
            ]
        known = [(at, level, name) for level, name, at in found if at is not None]
        zero = min(at for at, _, _ in known)
        return tuple(Mark(level, name, 1000 * (at - zero)) for at, level, name in sorted(known))
