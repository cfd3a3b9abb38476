"""Documents that wait to be read, in the order in which their blocks are.

Owners take turns by tokens (`backend.turns`), and so do the documents of one owner, a group of
blocks each, so that a short one isn't kept waiting. Knows no requests. Owned by the engine's
thread.
"""

from __future__ import annotations

from collections import deque

from backend.batch import ReadBlocks
from backend.reading import DocumentReading
from backend.turns import Turns


class Shelf:
    """Documents by owner. One that is read, cancelled or failed is taken away when its turn
    comes."""

    def __init__(self, *, first_come: bool = False) -> None:
        """`first_come`: one document after the other, in the order of arrival."""
        self._first_come = first_come
        self._turns = Turns()
        self._readings: dict[str, deque[DocumentReading]] = {}

    def __bool__(self) -> bool:
        return bool(self._readings)

    def readings(self) -> list[DocumentReading]:
        """All of them."""
        return [reading for own in self._readings.values() for reading in own]

    def add(self, reading: DocumentReading) -> None:
        """A document comes, behind its owner's others."""
        owner = reading.document.owner
        self._turns.enter(owner)
        self._readings.setdefault(owner, deque()).append(reading)

    def drop(self, key: str) -> list[DocumentReading]:
        """Take a document away, as often as it was asked to be read."""
        dropped = [one for one in self.readings() if one.document.key == key]
        for reading in dropped:
            self._remove(reading)
        return dropped

    def first(self) -> DocumentReading | None:
        """The document whose turn it is."""
        if not self._readings:
            return None
        if self._first_come:
            return min(self.readings(), key=lambda one: one.arrival)
        return self._readings[self._turns.order()[0]][0]

    def next_group(self, tokens: int) -> ReadBlocks | None:
        """Blocks of `tokens` tokens, at least one block; None when nothing is left to be read.
        Those who wait for a document that is over are told."""
        while (reading := self.first()) is not None:
            over = reading.cancelled or reading.error
            if not over and (indexes := reading.next_left(tokens)):
                owner = reading.document.owner
                self._readings[owner].rotate(0 if self._first_come else -1)
                self._turns.charge(owner, reading.size_of(indexes))
                return ReadBlocks(reading, indexes)
            self._remove(reading)
            reading.notify()
        return None

    def _remove(self, reading: DocumentReading) -> None:
        owner = reading.document.owner
        own = self._readings[owner]
        own.remove(reading)
        self._turns.leave(owner)
        if not own:
            del self._readings[owner]
