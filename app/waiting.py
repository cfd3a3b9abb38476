"""Questions that wait for a thread, by owner: nobody's many questions keep another's one out.

The next is of the owner for whom the fewest are being answered, so that owners who wait are served
side by side; of one owner's the first that came. An owner has a number of places in the line and,
where there may be several owners, leaves some threads to the others. Does not know what a question
is.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from app.turnover import OwnersTurnover

OWNERS_FULL = 4
"""Owners who may fill their places before the line is full for all: what waits takes memory."""
OWN_SHARE = 0.75
"""Of the threads, for one owner's questions where others may come."""


class Owned(Protocol):
    """Something of an owner's."""

    @property
    def owner(self) -> str:
        """Whose it is."""


T = TypeVar("T", bound=Owned)


class WaitingLine(Generic[T]):
    """`places` in the line and `threads` that serve it; `several`: whether there may be more than
    one owner. A place is reserved first and taken by `add`; whoever was taken out by `take` is
    served until `done`. Not thread-safe: whoever has one holds a lock."""

    def __init__(
        self,
        places: int,
        threads: int,
        *,
        several: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._places = places
        self._most = places * (OWNERS_FULL if several else 1)
        self._threads = own_share(threads, several=several)
        self._lines: dict[str, deque[T]] = {}
        self._reserved: Counter[str] = Counter()
        self._served: Counter[str] = Counter()
        self._arrivals: dict[T, int] = {}
        self._count = 0
        self._turnover = OwnersTurnover(places, self._most, self._is_idle, clock)

    def __len__(self) -> int:
        return len(self._arrivals)

    def rivals(self, owner: str) -> int:
        """How many wait for a thread that one of this owner's has: its own, and those of owners who
        may have one more."""
        return sum(
            len(line)
            for name, line in self._lines.items()
            if name == owner or self._served[name] < self._threads
        )

    def of(self, owner: str) -> int:
        """How many of this owner's wait."""
        return len(self._lines.get(owner, ()))

    @property
    def reserved(self) -> int:
        """Places that are kept for somebody."""
        return self._reserved.total()

    def reserve(self, owner: str) -> bool:
        """Keep a place for one more of this owner's. False: its places, or all, are taken, or the
        last ones are left to others (see `app.turnover`)."""
        left = self._left(owner)
        if not self._turnover.scarcer(owner, left).admits(min(left)):
            return False
        self._reserved[owner] += 1
        return True

    def kept_out(self, owner: str) -> bool:
        """Whether it is other owners' that leave this one fewer places than its own would."""
        own, whole = self._left(owner)
        return whole < own

    def retry_s(self, owner: str) -> int:
        """Whole seconds after which one of this owner's who found no place shall come again."""
        return self._turnover.scarcer(owner, self._left(owner)).refuse()

    def _left(self, owner: str) -> tuple[int, int]:
        own = self._places - self.of(owner) - self._reserved[owner]
        return own, self._most - len(self) - self.reserved

    def _is_idle(self, owner: str) -> bool:
        return not self.of(owner) and not self._reserved[owner]

    def ahead(self, item: T) -> int | None:
        """How many of its owner's come before one that waits; None for one that doesn't."""
        if item not in self._arrivals:
            return None
        line = self._lines[item.owner]
        return sum(self._arrivals[one] < self._arrivals[item] for one in line)

    def give_back(self, owner: str) -> None:
        """The reserved place is taken, or is not needed."""
        self._reserved[owner] -= 1
        self._reserved = +self._reserved

    def add(self, item: T) -> None:
        """Goes to the end of its owner's line, where a place is reserved for it until now."""
        self._lines.setdefault(item.owner, deque()).append(item)
        self._count += 1
        self._arrivals[item] = self._count

    def remove(self, item: T) -> bool:
        """Takes out one that waits; False: it does not."""
        if item not in self._arrivals:
            return False
        self._lines[item.owner].remove(item)
        self._taken_out(item)
        return True

    def take(self) -> T | None:
        """The next one to be served, which counts as served until `done`. None: nobody waits whose
        owner may have one more thread."""
        able = [one for one in self._lines if self._served[one] < self._threads]
        if not able:
            return None
        owner = min(able, key=lambda one: (self._served[one], self._arrivals[self._lines[one][0]]))
        item = self._lines[owner].popleft()
        self._taken_out(item)
        self._served[owner] += 1
        return item

    def done(self, item: T) -> None:
        """One that was taken has been served."""
        self._served[item.owner] -= 1
        self._served = +self._served

    def _taken_out(self, item: T) -> None:
        del self._arrivals[item]
        if not self._lines[item.owner]:
            del self._lines[item.owner]
        self._turnover.freed(item.owner, (self.of(item.owner), len(self)))


class Places:
    """A number of places that are held for a while; where there may be `several` owners, one leaves
    some to the others. Unlike those of a line none is given out sparingly: what works in one would
    stand still. Thread-safe."""

    def __init__(
        self, total: int, *, several: bool, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`total` and `own` are the places of all and of one owner."""
        self.total = total
        self.own = own_share(total, several=several)
        self._held: Counter[str] = Counter()
        self._turnover = OwnersTurnover(self.own, total, lambda owner: not self._held[owner], clock)
        self._lock = threading.Lock()

    @property
    def taken(self) -> int:
        """Places that are held now."""
        with self._lock:
            return self._held.total()

    def take(self, owner: str, count: int = 1) -> bool:
        """Whether there were so many places; give them back by `leave`, or by `give_back` when
        nothing was done in them."""
        with self._lock:
            if self._held[owner] + count > self.own or self._held.total() + count > self.total:
                return False
            self._held[owner] += count
            return True

    def leave(self, owner: str, count: int = 1) -> None:
        """So many of the owner's places have become free, after their time."""
        for _ in range(count):
            with self._lock:
                self._give_back(owner, 1)
                self._turnover.freed(owner, (self._held[owner], self._held.total()))

    def give_back(self, owner: str, count: int) -> None:
        """Gives so many back that were taken for nothing: that says nothing about the next ones."""
        with self._lock:
            self._give_back(owner, count)

    def retry_s(self, owner: str, count: int = 1) -> int:
        """Whole seconds after which one of this owner's who found less than so many places shall
        come again."""
        with self._lock:
            held = self._held[owner], self._held.total()
            turnover = self._turnover.scarcer(owner, (self.own - held[0], self.total - held[1]))
            return max(turnover.refuse() for _ in range(count))

    def _give_back(self, owner: str, count: int) -> None:
        self._held[owner] -= count
        self._held = +self._held


def own_share(total: int, *, several: bool) -> int:
    """How many of so many places one owner may have, where there may be `several`."""
    return max(1, int(total * OWN_SHARE)) if several else total
