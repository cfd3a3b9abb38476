"""What the store counts: look-ups, blocks that had to be read although asked for, evictions, each
by reason. Decides nothing."""

from __future__ import annotations

from collections import Counter, OrderedDict
from typing import Literal

Miss = Literal["new", "evicted", "refused"]
"""Why a block must be read from its text: it never was (or is of those evicted very long ago), it
had to make room and no tier has it, or a tier had it and it was not fit for use."""

Eviction = Literal["room", "pinned", "forgotten"]
"""Why a block left the pool: for others' room; for others' room although it was pinned, since
nothing else was left; because its documents were deleted."""

REMEMBERED = 65_536
"""Evicted blocks that are told from those never read, the last ones."""


class Tally:
    """Counters since the store was made."""

    def __init__(self) -> None:
        self.hits = 0
        self.misses = 0
        self.lost: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self._evicted: OrderedDict[bytes, None] = OrderedDict()

    def evict(self, key: bytes, reason: Eviction) -> None:
        """A block left the pool."""
        self.dropped[reason] += 1
        if reason == "forgotten":
            self._evicted.pop(key, None)
            return
        self._evicted[key] = None
        if len(self._evicted) > REMEMBERED:
            self._evicted.popitem(last=False)

    def lose(self, key: bytes, refused: bool) -> None:
        """A block must be read from its text. `refused`: a tier had seemed to have it."""
        found: Miss = "refused" if refused else "evicted" if key in self._evicted else "new"
        self.lost[found] += 1
