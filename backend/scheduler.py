"""Decides what the engine does next: answers first, then questions, then reading.

A running answer can't keep others from starting: after `DECODE_BURST` decoding steps in a row one
unit of whoever waits is done. Nor can questions that never cease keep documents from being read:
after `READING_TURN` steps for them one group of blocks of a waiting document is read. A question's
missing blocks are read before any other reading. While questions wait or are answered, groups are
smaller.

It runs nothing itself and is owned by the engine's thread.
"""

from __future__ import annotations

from collections import deque

from backend.batch import Batch, Decode, Prefill, ReadBlocks
from backend.reading import DocumentReading
from backend.sequence import Sequence

DECODE_BURST = 32
"""Decoding steps between two units of other work when both are waiting: with 10 ms a step and one
second a block, an answer pauses for a block after each 0.3 s at worst."""
READING_TURN = 32
"""Steps of any kind for questions between two blocks of waiting documents. Short answers end before
a decoding burst does, so two clients that asked without a pause kept 20 documents unread for ten
minutes when only bursts were counted."""
GROUP_SHARE = 4
"""Beside questions a group of blocks has a quarter of its tokens: on an H200 8,192 tokens in 23 ms,
what a single block took (docs/benchmarks/ttft-h200.md)."""


class Scheduler:
    """The engine's queues."""

    def __init__(
        self, prefill_chunk: int, read_tokens: int = 1, *, first_come: bool = False
    ) -> None:
        """`prefill_chunk` and `read_tokens` bound a step, in tokens; a group of blocks has at least
        one block. `first_come` serves strictly in order of arrival: what benchmarks compare with.
        """
        self._first_come = first_come
        self._arrivals: dict[object, int] = {}
        self._prefill_chunk = prefill_chunk
        self._read_tokens = read_tokens
        self._waiting: deque[Sequence] = deque()
        self._filling: deque[Sequence] = deque()
        self._running: list[Sequence] = []
        self._reading: deque[DocumentReading] = deque()
        self._burst = 0
        self._since_reading = 0

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self._waiting or self._filling or self._running or self._reading)

    @property
    def answering(self) -> bool:
        """Whether a request has its context."""
        return bool(self._filling or self._running)

    @property
    def waiting(self) -> int:
        """Requests that have no context yet."""
        return len(self._waiting)

    @property
    def group_tokens(self) -> int:
        """Tokens of the next group of blocks that a question waits for."""
        return self._read_tokens // GROUP_SHARE if self.answering else self._read_tokens

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        self._arrive(sequence)
        self._waiting.append(sequence)

    def add_reading(self, reading: DocumentReading) -> None:
        """Queue a document for reading, behind the others."""
        self._arrive(reading)
        self._reading.append(reading)

    def _arrive(self, work: Sequence | DocumentReading) -> None:
        if self._first_come:
            self._arrivals[work] = len(self._arrivals)

    def _reading_came_first(self) -> bool:
        """Whether the document at the head of the line came before every request."""
        if not self._first_come or not self._reading:
            return False
        came = self._arrivals[self._reading[0]]
        return all(came < self._arrivals[sequence] for sequence in self.sequences())

    def drop_readings(self, key: str) -> list[DocumentReading]:
        """Take a document out of the reading queue, as often as it was asked to be read."""
        dropped = [reading for reading in self._reading if reading.document.key == key]
        for reading in dropped:
            self._reading.remove(reading)
        return dropped

    def readings(self) -> list[DocumentReading]:
        """Documents in the reading queue."""
        return list(self._reading)

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

    def schedule(self, wanted: ReadBlocks | None) -> Batch | None:
        """The next step, or None when there is none. `wanted` are blocks that the first waiting
        request needs."""
        turn = self._since_reading >= READING_TURN and not self._first_come
        if (turn or self._reading_came_first()) and (block := self._next_reading()):
            return block
        batch = self._for_questions(wanted)
        if batch is None:
            return self._next_reading()
        self._since_reading += 1
        return batch

    def _for_questions(self, wanted: ReadBlocks | None) -> Batch | None:
        other = self._filling or wanted or self._reading
        if self._running and (not other or self._burst < DECODE_BURST):
            self._burst += 1
            return Decode(tuple(self._running))
        self._burst = 0
        if self._filling:
            sequence = self._filling[0]
            return Prefill(sequence, min(sequence.prompt_left, self._prefill_chunk))
        return wanted

    def _next_reading(self) -> ReadBlocks | None:
        self._since_reading = 0
        tokens = self._read_tokens // (GROUP_SHARE if self._waiting or self.answering else 1)
        while self._reading:
            reading = self._reading[0]
            indexes = () if reading.cancelled or reading.error else reading.next_left(tokens)
            if indexes:
                # Documents take turns, group by group, so that a short one isn't kept waiting.
                if not self._first_come:
                    self._reading.rotate(-1)
                return ReadBlocks(reading, indexes)
            self._reading.popleft()
            reading.notify()
        return None
