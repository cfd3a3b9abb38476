"""Jobs that went back to the line because the database failed while they were prepared: how often,
and until when each of them pauses.

A database that is away for some minutes costs no document. One document that it can never take (a
statement too long for the server's limit) is not prepared again for ever. Does not know the line.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FIRST_S = 1.0
"""The first pause, in seconds; each is twice the one before."""
LONGEST_S = 60.0
"""No pause is longer, in seconds."""
MOST = 15
"""How often one goes back: the pauses are 1, 2, 4, 8, 16, 32 and nine times 60 s, about ten
minutes."""


class Returns:
    """Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._returned: dict[str, tuple[int, float]] = {}

    def admits(self, key: str) -> bool:
        """Whether it may go back once more; it pauses from now on. False: it did so too often, and
        is forgotten."""
        with self._lock:
            times, _ = self._returned.pop(key, (0, 0.0))
            if times == MOST:
                return False
            pause = min(LONGEST_S, FIRST_S * 2**times)
            self._returned[key] = times + 1, self._clock() + pause
            return True

    def forget(self, key: str) -> None:
        """The database took it, or it has ended."""
        with self._lock:
            self._returned.pop(key, None)

    @property
    def pausing(self) -> frozenset[str]:
        """Those that are not to be taken up yet."""
        now = self._clock()
        with self._lock:
            return frozenset(key for key, (_, until) in self._returned.items() if now < until)
