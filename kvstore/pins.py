"""Documents that somebody wants kept in the pool for a while. Knows no blocks."""

from __future__ import annotations

import math
from collections.abc import Callable

from kvstore.errors import PinRefused

Clock = Callable[[], float]
"""Seconds that only grow."""


class Pins:
    """When each pin ends. A pin that is over is as if it had never been."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ends: dict[str, float] = {}

    @property
    def documents(self) -> tuple[str, ...]:
        """Documents that are pinned now."""
        now = self._clock()
        self._ends = {name: end for name, end in self._ends.items() if end > now}
        return tuple(self._ends)

    def set(self, document: str, ttl_s: float) -> None:
        """Pin the document until `ttl_s` seconds from now, however long it was pinned before.
        Raises PinRefused for a time that is none."""
        if not (math.isfinite(ttl_s) and ttl_s > 0):
            raise PinRefused(f"A document is pinned for a time above 0 seconds, not {ttl_s}")
        self._ends[document] = self._clock() + ttl_s

    def drop(self, document: str) -> None:
        """End the pin, if there is one."""
        self._ends.pop(document, None)

    def left(self, document: str) -> float:
        """Seconds until the document's pin ends; 0 without one."""
        return max(self._ends.get(document, -math.inf) - self._clock(), 0.0)
