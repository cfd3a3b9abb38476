"""Documents that wait for room to be read, in the order in which they are looked at.

The owner whose turn it is comes first, and of one owner's documents the one that came first. One
that doesn't fit is passed over by others that do, but not for ever: once those that were begun
meanwhile have as many pages as it has, it is due, and who is due comes before all who are not. Only
each owner's oldest becomes due, so that many documents of one owner don't go before another's.
Knows no pool. Owned by the engine's thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from backend.reading import DocumentReading


class ReadingLine:
    """Documents by owner, none of them begun."""

    def __init__(self) -> None:
        self._waiting: dict[str, deque[DocumentReading]] = {}
        # Each owner's oldest, the one that is it for the longest time first, and the pages of those
        # that were begun since then.
        self._oldest: dict[DocumentReading, int] = {}

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def readings(self) -> list[DocumentReading]:
        """All of them."""
        return [reading for own in self._waiting.values() for reading in own]

    def add(self, reading: DocumentReading) -> None:
        """A document comes, behind its owner's others."""
        own = self._waiting.setdefault(reading.document.owner, deque())
        own.append(reading)
        self._oldest.setdefault(own[0], 0)

    def remove(self, reading: DocumentReading) -> None:
        """The document waits no more."""
        owner = reading.document.owner
        own = self._waiting[owner]
        own.remove(reading)
        self._oldest.pop(reading, None)
        if own:
            self._oldest.setdefault(own[0], 0)
        else:
            del self._waiting[owner]

    def begin(self, reading: DocumentReading) -> None:
        """The document is read from now on, before those that are left here."""
        for oldest in self._oldest:
            self._oldest[oldest] += reading.pages
        self.remove(reading)

    def is_due(self, reading: DocumentReading) -> bool:
        """Whether it was passed over often enough."""
        return self._oldest.get(reading, -1) >= reading.pages

    def in_order(self, owners: Iterable[str]) -> list[DocumentReading]:
        """All of them, the first one first. `owners`: theirs, the one whose turn it is first."""
        due = [reading for reading in self._oldest if self.is_due(reading)]
        others = (one for owner in owners for one in self._waiting.get(owner, ()))
        return [*due, *(one for one in others if not self.is_due(one))]
