"""The pulse of the engine's thread: how many steps it has begun, and how long the present one has
been running. Others see by it that the thread hangs; it knows nothing of what a step does."""

from __future__ import annotations

import time
from collections.abc import Callable


class Pulse:
    """Beaten by one thread, felt from any."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        # Replaced as a whole: whoever looks never sees half of a change.
        self._state: tuple[int, float | None] = (0, None)

    def beat(self) -> None:
        """A step begins."""
        self._state = (self._state[0] + 1, self._clock())

    def rest(self) -> None:
        """Nothing is to be done until somebody asks for it."""
        self._state = (self._state[0], None)

    @property
    def steps(self) -> int:
        """Steps begun so far."""
        return self._state[0]

    @property
    def step_seconds(self) -> float:
        """How long the present step has been running; 0 while there is none."""
        began = self._state[1]
        return 0.0 if began is None else max(self._clock() - began, 0.0)
