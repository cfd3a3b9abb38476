"""Places in which files are parsed and indexed: the usual ones, and a few kept for short files.

The usual places take files in the order of the line. While all of them are taken, a kept one takes
the next file that has at most one in `SHORTER` of the bytes of every file that is being prepared.
So a short file doesn't wait for long ones. When a usual place takes the next file is as it would be
without the kept ones; so is which one it takes among the files of one owner. Among several owners a
file in a kept place counts as under way for its owner, whose turn comes later then. Beyond that all
that a long one loses is time of the processor: beside it at most `KEPT` more files are prepared,
each at most a half of the next longer one, so that together they have fewer bytes than any of those
beside which they came.

A file's bytes are all that is known before it is parsed, and say little of its work where fonts,
pictures or packing make them up: hence a half, and not the quarter of `app.reading_turns`, which
knows tokens. Does not know the line, nor who takes a place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

KEPT = 2
"""Places for short files. The second one is for those that are short beside the first one's."""
SHORTER = 2
"""A file in a kept place has at most one in so many of the bytes of each that is being prepared."""


class Sized(Protocol):
    """A job that knows the bytes of its file."""

    @property
    def size(self) -> int:
        """Bytes."""


T = TypeVar("T", bound=Sized)


@dataclass(frozen=True, slots=True, eq=False)
class Place(Generic[T]):
    """One that was taken. Two may have the same job: one that went back to the line is claimed
    again before it has left its place."""

    job: T
    kept: bool


class PreparingPlaces:
    """`usual` places and the kept ones. Thread-safe."""

    def __init__(self, usual: int) -> None:
        self._usual = usual
        self._sizes: dict[Place[Any], int] = {}
        self._lock = threading.Lock()

    def take(self, claim: Callable[[int | None], T | None], *, kept: bool) -> Place[T] | None:
        """A place, until `leave`, for what `claim` gives. It is called with the most bytes that the
        file may have (None: any number); for a kept place not at all while a usual one is free."""
        # One at a time: two kept places must not take two of the same length.
        with self._lock:
            most = self._most() if kept else None
            if most == 0:
                return None
            job = claim(most)
            if job is None:
                return None
            place = Place(job, kept)
            self._sizes[place] = job.size
            return place

    def leave(self, place: Place[T]) -> None:
        """Its job is prepared, or never will be."""
        with self._lock:
            del self._sizes[place]

    def _most(self) -> int:
        if sum(not place.kept for place in self._sizes) < self._usual:
            return 0
        return min(self._sizes.values()) // SHORTER
