"""Who gets the last places of a line that is too short for all, and when the others come again.

Places are not kept for anybody, and nobody is known by name. So where the next free place goes to
whoever asks first, it goes to those who were just answered and ask on, and those who were refused
and come again after seconds never find one. While some are refused, therefore, the last quarter of
the places is given out sparingly: the fewer are left, the fewer of those who ask have one, whether
they come for the first time or again. (Random early detection does so for packets: Floyd and
Jacobson, 1993; here it is every n-th, not one by chance.)

Whoever is refused is told a time, from how long the last places took to become free while others
waited on (else it is as long as it took for somebody to come), and behind those who were refused
before: not all are to come for the same place. Does not know what the places are for. Not
thread-safe: whoever has one holds a lock.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

SOONEST_S = 1
LATEST_S = 60
"""Nobody is told to wait for longer; servers keep connections open for a little more."""
USUAL_S = 5
"""What is told while nothing is known yet."""
LOOKED_AT = 16
"""Of the last places that became free."""
SPARED = 4
"""One in so many places is given out sparingly."""


class Turnover:
    """`places` that some share. `clock`: seconds that only grow."""

    def __init__(self, places: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._places = places
        self._spared = places // SPARED
        self._clock = clock
        self._freed: deque[float] = deque(maxlen=LOOKED_AT)
        self._promised = -math.inf
        self._refused = -math.inf
        # Of a place, for the next one who asks.
        self._due = 0.0

    def admits(self, left: int) -> bool:
        """Whether one who asks while there are `left` places has one of them."""
        if left <= 0:
            return False
        if left >= self._spared or self.calm:
            self._due = 0.0
            return True
        self._due += left / self._spared
        admitted = self._due >= 1.0
        self._due -= admitted
        return admitted

    @property
    def calm(self) -> bool:
        """Whether nobody was refused for `LATEST_S`: nobody is to come again."""
        return self._clock() - self._refused > LATEST_S

    def freed(self, waiting: int) -> None:
        """A place has become free, and so many wait on. Where nobody does all places are free: how
        soon they will be when they are taken again is not known, and who was told to come comes to
        a free one."""
        if waiting:
            self._freed.append(self._clock())
        else:
            self._freed.clear()
            self._promised = -math.inf

    def refuse(self) -> int:
        """Whole seconds after which to come again, for one who found no place."""
        now = self._refused = self._clock()
        if len(self._freed) < 2:
            return USUAL_S
        between = self._between(now)
        # When all places have become free once there is one for everybody; behind the latest there
        # is no order any more.
        latest = now + min(self._places * between, LATEST_S)
        self._promised = min(max(self._promised, now) + between, latest)
        return max(math.ceil(self._promised - now), SOONEST_S)

    def _between(self, now: float) -> float:
        """Seconds from one free place to the next; longer the longer the next one is overdue."""
        usual = (self._freed[-1] - self._freed[0]) / (len(self._freed) - 1)
        return max(usual, now - self._freed[-1])


class OwnersTurnover:
    """Places of which each owner may have `own`, and all together `whole`. What is `left` is told
    with each call, to the owner and to all; where there is less decides. `idle`: whether an owner
    has none of them, nor is about to; of one who is, and who need not come again, nothing is kept.
    """

    def __init__(
        self, own: int, whole: int, idle: Callable[[str], bool], clock: Callable[[], float]
    ) -> None:
        self._own = own
        self._whole = Turnover(whole, clock)
        self._idle = idle
        self._clock = clock
        self._by_owner: dict[str, Turnover] = {}

    def __len__(self) -> int:
        """Owners of whom something is kept."""
        return len(self._by_owner)

    def __contains__(self, owner: str) -> bool:
        return owner in self._by_owner

    def scarcer(self, owner: str, left: tuple[int, int]) -> Turnover:
        """The places that decide: the owner's, or those of all."""
        if owner not in self._by_owner:
            for one in [one for one in self._by_owner if self._idle(one)]:
                if self._by_owner[one].calm:
                    del self._by_owner[one]
            self._by_owner[owner] = Turnover(self._own, self._clock)
        own, whole = left
        return self._whole if whole <= own else self._by_owner[owner]

    def freed(self, owner: str, taken: tuple[int, int]) -> None:
        """A place of this owner's has become free, and so many of it and of all are taken still."""
        own, whole = taken
        if owner in self._by_owner:
            self._by_owner[owner].freed(own)
        self._whole.freed(whole)
