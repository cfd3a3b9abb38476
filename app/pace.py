"""When a job or an answer looks up from its work: to report progress, and to stop when it is told
to."""

from __future__ import annotations

import time
from collections.abc import Callable

PROGRESS_S = 0.5
"""Progress is written at most this often: each write is a transaction."""


class Stopped(Exception):
    """It was cancelled or the program is stopping; the caller knows which."""


class Throttle:
    """Says at most once per `seconds` that something is due."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._last = 0.0

    def due(self) -> bool:
        """True when the last True is long enough ago."""
        now = time.monotonic()
        if now - self._last < self._seconds:
            return False
        self._last = now
        return True


def check(stopping: Callable[[], bool]) -> None:
    """Raises Stopped when it should stop."""
    if stopping():
        raise Stopped


def since(started: float) -> float:
    """Milliseconds since a `time.monotonic()`."""
    return (time.monotonic() - started) * 1000.0
