"""When a job or an answer looks up from its work: to report progress, and to stop when it is told
to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PROGRESS_S = 0.5
"""Progress is written at most this often: each write is a transaction."""

LOOK_S = 0.5
"""How often one that waits for its turn looks whether it is still to have it. Not oftener: each
look puts it behind those that came after it."""


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


@contextmanager
def in_turn(turn: threading.Semaphore | None, stopping: Callable[[], bool]) -> Iterator[None]:
    """Waits for a turn (None: it is always one's turn) and has it while the block runs. Raises
    Stopped when it should stop before."""
    if turn is None:
        check(stopping)
        yield
        return
    while not turn.acquire(timeout=LOOK_S):
        check(stopping)
    try:
        check(stopping)
        yield
    finally:
        turn.release()


def since(started: float) -> float:
    """Milliseconds since a `time.monotonic()`."""
    return (time.monotonic() - started) * 1000.0
