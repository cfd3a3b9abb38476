"""Decides what the engine does next: answers first, then questions, then reading.

Reading can't be starved: after `DECODE_BURST` decoding steps in a row one block of whoever waits is
read. Nor can questions: a question's missing blocks are read before any other reading. It runs
nothing itself and is owned by the engine's thread.
"""

from __future__ import annotations

from collections import OrderedDict, deque

from backend.batch import Batch, Decode, Prefill, ReadBlock
from backend.reading import DocumentReading
from backend.sequence import Sequence

DECODE_BURST = 32
"""Decoding steps between two units of other work when both are waiting: with 10 ms a step and one
second a block, an answer pauses for a block after each 0.3 s at worst."""


class Scheduler:
    """The engine's queues."""

    def __init__(self, prefill_chunk: int) -> None:
        self._prefill_chunk = prefill_chunk
        self._waiting: deque[Sequence] = deque()
        self._filling: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._reading: OrderedDict[str, DocumentReading] = OrderedDict()
        self._burst = 0

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self._waiting or self._filling or self._running or self._reading)

    @property
    def waiting(self) -> int:
        """Requests that have no context yet."""
        return len(self._waiting)

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        self._waiting.append(sequence)

    def add_reading(self, reading: DocumentReading) -> None:
        """Queue a document for reading, behind the others."""
        self._reading[reading.document.key] = reading

    def drop_reading(self, key: str) -> None:
        """Take a document out of the reading queue."""
        self._reading.pop(key, None)

    def sequences(self) -> list[Sequence]:
        """All requests that are not finished."""
        return [*self._waiting, *self._filling, *self._running]

    def begin_filling(self, sequence: Sequence) -> None:
        """The request at the head of the queue has its context."""
        self._waiting.remove(sequence)
        self._filling.append(sequence)

    def sweep(self) -> None:
        """Forget finished requests; those whose prompt is in begin to decode."""
        self._waiting = deque(s for s in self._waiting if not s.finished)
        self._running = [s for s in self._running if not s.finished]
        for sequence in [s for s in self._filling if s.finished or s.prompt_left == 0]:
            self._filling.remove(sequence)
            if not sequence.finished:
                self._running.append(sequence)

    def next_waiting(self) -> Sequence | None:
        """The request whose context is to be opened next."""
        return self._waiting[0] if self._waiting else None

    def schedule(self, wanted: ReadBlock | None) -> Batch | None:
        """The next step, or None when there is none. `wanted` is the block that the first waiting
        request needs."""
        other = self._filling or wanted or self._reading
        if self._running and (not other or self._burst < DECODE_BURST):
            self._burst += 1
            return Decode(tuple(self._running))
        self._burst = 0
        if self._filling:
            sequence = self._filling[0]
            return Prefill(sequence, min(sequence.prompt_left, self._prefill_chunk))
        if wanted:
            return wanted
        return self._next_reading()

    def _next_reading(self) -> ReadBlock | None:
        while self._reading:
            key, reading = next(iter(self._reading.items()))
            missing = reading.missing(range(len(reading.keys)))
            if missing and not reading.cancelled and not reading.error:
                # Documents take turns, block by block, so that a short one isn't kept waiting.
                self._reading.move_to_end(key)
                return ReadBlock(reading, missing[0])
            del self._reading[key]
            reading.notify()
        return None
