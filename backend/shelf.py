"""Documents to be read: those under way take turns, the others wait until there is room for them.

Owners take turns by tokens (`backend.turns`), and so do the documents of one owner, a group of
blocks each, so that a short one isn't kept waiting. Documents are under way side by side only as
far as all their pages fit in the pool: else they would push each other's blocks out while they are
read, and each would end with holes. So that a short one need not wait for long ones to end, long
ones leave a part of the pool to short ones; one that is longer than that allows is read with no
other long one beside it, and one that has no room even so when nothing else is under way.

Pages that are pinned or held for questions while a document is begun are left alone; what is pinned
or held later takes pages all the same. A block that two documents share is counted twice. What a
tier behind the pool could take back is not counted on. Knows no requests. Owned by the engine's
thread.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from itertools import chain

from backend.batch import ReadBlocks
from backend.reading import DocumentReading
from backend.reading_line import ReadingLine
from backend.turns import Turns
from kvstore.room import Room

SHORT_SHARE = 1 / 16
"""Of the room for documents, at most, has one that counts as short."""
LONG_SHARE = 3 / 4
"""Of the room for documents, at most, have long ones that are read side by side."""

RoomFor = Callable[[Collection[str]], Room]
"""What documents, by key, can have together (see `KVStore.room_for`)."""


class Shelf:
    """Documents that are wanted and not read. One that is over, because it is read, cancelled or
    failed, is taken away before the next group of blocks, and those who wait for it are told."""

    def __init__(self, room: RoomFor | None = None, *, first_come: bool = False) -> None:
        """Without `room` any number fits. `first_come`: one document after the other, in the order
        of arrival."""
        self._room = room
        self._first_come = first_come
        # Owners of documents that are under way or wait.
        self._turns = Turns()
        self._under_way: dict[str, deque[DocumentReading]] = {}
        self._line = ReadingLine()

    def __bool__(self) -> bool:
        return bool(self._under_way or self._line)

    def readings(self) -> list[DocumentReading]:
        """All of them, those under way first."""
        return [*self.under_way(), *self._line.readings()]

    def under_way(self) -> list[DocumentReading]:
        """Those that take turns."""
        return list(chain.from_iterable(self._under_way.values()))

    def add(self, reading: DocumentReading) -> None:
        """A document comes, behind its owner's others."""
        self._turns.enter(reading.document.owner)
        self._line.add(reading)

    def drop(self, key: str) -> list[DocumentReading]:
        """Take a document away, as often as it was asked to be read."""
        dropped = [one for one in self.readings() if one.document.key == key]
        for reading in dropped:
            self._remove(reading)
        return dropped

    def keep_recent(self) -> None:
        """Have blocks of documents under way make room after those of all others."""
        for reading in self.under_way():
            reading.keep_recent()

    def next_group(self, tokens: int) -> ReadBlocks | None:
        """Blocks of `tokens` tokens, at least one block; None when nothing is left to be read."""
        while True:
            self._clear()
            while (reading := self._next_to_begin()) is not None:
                self._begin(reading)
            order = self._turns.order()
            place = next((at for at, one in enumerate(order) if one in self._under_way), None)
            if place is None:
                return None
            owner = order[place]
            reading = self._under_way[owner][0]
            # None, if the disk has just got the last of them.
            if indexes := reading.next_left(tokens):
                self._under_way[owner].rotate(-1)
                self._turns.charge(owner, reading.size_of(indexes), passed_over=order[:place])
                self.keep_recent()
                return ReadBlocks(reading, indexes)

    def _clear(self) -> None:
        """Take away those that are over, be it that what they lacked was read for questions or for
        other documents."""
        for reading in self.readings():
            if _is_ended(reading) or (self._looks_at(reading) and reading.nothing_left()):
                self._remove(reading)
                reading.notify()

    def _looks_at(self, reading: DocumentReading) -> bool:
        """Whether it may be over before its turn."""
        return reading.begun or not self._first_come

    def _next_to_begin(self) -> DocumentReading | None:
        """The first document that fits beside those under way, if those before it let it pass."""
        if not self._line:
            return None
        taken = self._taken()
        due: DocumentReading | None = None
        for reading in self._in_order():
            if taken is None or taken.leaves_room(reading, due):
                return reading
            if due is None and self._line.is_due(reading):
                due = reading
        return None

    def _in_order(self) -> list[DocumentReading]:
        """Those that wait, the first one first."""
        if not self._first_come:
            return self._line.in_order(self._turns.order())
        return sorted(self._line.readings(), key=lambda one: one.arrival)

    def _taken(self) -> _Taken | None:
        """What those under way take of the room; None where nobody needs to wait for it."""
        pages = {one.document.key: one.pages for one in self.under_way()}
        if not pages:
            return None
        if self._first_come:
            return _Taken({}, Room(0, {}))
        return None if self._room is None else _Taken(pages, self._room(pages))

    def _begin(self, reading: DocumentReading) -> None:
        self._line.begin(reading)
        reading.begun = True
        self._under_way.setdefault(reading.document.owner, deque()).append(reading)

    def _remove(self, reading: DocumentReading) -> None:
        owner = reading.document.owner
        own = self._under_way.get(owner)
        if own is None or reading not in own:
            self._line.remove(reading)
        else:
            own.remove(reading)
            if not own:
                del self._under_way[owner]
        self._turns.leave(owner)


def _is_ended(reading: DocumentReading) -> bool:
    """Whether no more of it is to be read, be it read or not."""
    return reading.cancelled or bool(reading.error)


class _Taken:
    """Pages of documents under way, by key, and the room that they have together, which is larger
    with one of which something is pinned or held."""

    def __init__(self, pages: dict[str, int], room: Room) -> None:
        self._pages = pages
        self._all = sum(pages.values())
        self._room = room

    def leaves_room(self, reading: DocumentReading, due: DocumentReading | None) -> bool:
        """Whether the document fits too, and keeps the one that is `due` from nothing."""
        if reading.document.key in self._pages:
            return True
        room = self._room.shared_with(reading.document.key)
        if self._all + reading.pages > room:
            return False
        long = self._long(room)
        short = reading.pages <= room * SHORT_SHARE
        if due is not None:
            # Short ones go on beside long ones, as long as it fits once these have ended.
            later = self._room.shared_with(reading.document.key, due.document.key)
            left = later - due.pages - (self._all - long)
            return short and due.pages > room * SHORT_SHARE and reading.pages <= left
        return short or not long or long + reading.pages <= room * LONG_SHARE

    def _long(self, room: int) -> int:
        """Pages of those under way that are long in such a room."""
        return sum(one for one in self._pages.values() if one > room * SHORT_SHARE)
