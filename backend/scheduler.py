"""Decides what the engine does next: answers first, then questions, then reading.

A step is a decoding step of all running answers, a piece of a prompt, or a group of blocks. What
whoever waits can count on, whatever else is asked (tests/backend/test_scheduler.py):

- An answer: between two of its decoding steps there is at most one other step.
- A question (`backend.line`), once it is its turn: before each of its steps at most `DECODE_BURST`
  tokens are decoded, all running answers together, or one decoding step if that makes more. Once in
  `READING_TURN` steps a group of blocks is read besides, and after it the answers have one decoding
  step more. Its blocks are read before any other reading.
- An owner's first question: its turn comes with the next step for questions, however many
  questions of others wait. Later, owners who wait are served the same number of tokens, give or
  take a step.
- A long prompt: one step after every `LONG_TURN` steps for its owner's quick questions.
- A document under way (`backend.shelf`): at most `READING_TURN` steps for questions and answers,
  and one more, lie between two groups of blocks. Owners, and the documents of each, take turns in
  them. No other document's reading costs it a block.
- A document that waits for room (`backend.reading_line`): once it is its owner's oldest, others are
  begun before it until they have as many pages as it has. From then on only each other owner's
  oldest, if it was that before, and, where this is a long one, short ones that leave it room. It is
  begun as soon as it fits, at the latest when no other is under way. No question on it waits for
  that.

While questions wait or are answered, groups are smaller. The scheduler runs nothing itself and is
owned by the engine's thread.
"""

from __future__ import annotations

import itertools

from backend.batch import Batch, Decode, Prefill, ReadBlocks
from backend.line import Line
from backend.reading import DocumentReading
from backend.sequence import Sequence
from backend.shelf import RoomFor, Shelf

DECODE_BURST = 32
"""Decoding steps between two units of reading when both are waiting: with 10 ms a step and one
second a block, an answer pauses for a block after each 0.3 s at worst. Before a question's steps it
counts the tokens of all answers: with 32 answers under way 32 steps would be seconds."""
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
        self,
        prefill_chunk: int,
        read_tokens: int = 1,
        room: RoomFor | None = None,
        *,
        first_come: bool = False,
    ) -> None:
        """`prefill_chunk` and `read_tokens` bound a step, in tokens; a group of blocks has at least
        one block. `room` bounds what is read side by side. `first_come` serves strictly in order of
        arrival: what benchmarks compare with."""
        self._first_come = first_come
        self._arrivals = itertools.count()
        self._prefill_chunk = prefill_chunk
        self._read_tokens = read_tokens
        self._line = Line(first_come=first_come)
        self._shelf = Shelf(room, first_come=first_come)
        self._running: list[Sequence] = []
        # Decoding steps since any other step, tokens decoded since a question's last step.
        self._burst = self._decoded = 0
        self._since_reading = 0

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self._running or len(self._line) or self._shelf)

    @property
    def answering(self) -> bool:
        """Whether a request has its context."""
        return bool(self._running or self._line.open)

    @property
    def waiting(self) -> int:
        """Requests that have no context yet."""
        return self._line.waiting

    @property
    def group_tokens(self) -> int:
        """Tokens of the next group of blocks that a question waits for."""
        return self._read_tokens // GROUP_SHARE if self.answering else self._read_tokens

    def add(self, sequence: Sequence) -> None:
        """Queue a request."""
        sequence.arrival = next(self._arrivals)
        self._line.add(sequence)

    def add_reading(self, reading: DocumentReading) -> None:
        """Queue a document for reading, behind the others."""
        reading.arrival = next(self._arrivals)
        self._shelf.add(reading)

    def drop_readings(self, key: str) -> list[DocumentReading]:
        """Take a document out of the reading queue, as often as it was asked to be read."""
        return self._shelf.drop(key)

    def readings(self) -> list[DocumentReading]:
        """Documents in the reading queue."""
        return self._shelf.readings()

    def sequences(self) -> list[Sequence]:
        """All requests that are not finished."""
        return [*self._line.requests(), *self._running]

    def to_open(self) -> list[Sequence]:
        """The requests whose contexts are to be opened next, the first one first."""
        return self._line.to_open()

    def begin_filling(self, sequence: Sequence) -> None:
        """The request has its context."""
        self._line.begin(sequence)

    def serve_alone(self, sequence: Sequence) -> None:
        """Open no other request before this one, which needs all the room there is."""
        self._line.serve_alone(sequence)

    def sweep(self) -> None:
        """Forget finished requests; those whose prompt is in begin to decode."""
        self._running = [one for one in self._running if not one.finished]
        for sequence in self._line.leave(lambda one: one.finished or one.prompt_left == 0):
            if not sequence.finished:
                self._running.append(sequence)

    def schedule(self, wanted: ReadBlocks | None) -> Batch | None:
        """The next step, or None when there is none. `wanted` are blocks that a request needs
        before it can be opened."""
        if self._first_come and self._reading_came_first() and (group := self._next_group()):
            return group
        question = self._line.next_step(wanted.asker if wanted else None)
        if self._running and self._decodes_next(question):
            return self._decode()
        self._burst = 0
        if self._reading_is_due and (group := self._next_group()):
            return group
        batch = self._for_question(question, wanted) or self._next_group()
        if batch is None and self._running:
            return self._decode()
        return batch

    @property
    def _reading_is_due(self) -> bool:
        return self._since_reading >= READING_TURN and bool(self._shelf) and not self._first_come

    def _decodes_next(self, question: Sequence | None) -> bool:
        """Whether the running answers have their next token before anything else is done."""
        if self._burst == 0 or (question is None and not self._shelf):
            return True
        if self._reading_is_due:
            return False
        if question is None or self._first_come or self._line.is_long(question):
            return self._burst < DECODE_BURST
        return self._decoded + len(self._running) <= DECODE_BURST

    def _decode(self) -> Decode:
        self._burst += 1
        self._decoded += len(self._running)
        self._since_reading += 1
        return Decode(tuple(self._running))

    def _for_question(self, question: Sequence | None, wanted: ReadBlocks | None) -> Batch | None:
        if question is None:
            return None
        self._decoded = 0
        self._since_reading += 1
        if wanted is not None and wanted.asker is question:
            self._line.served(question, wanted.reading.size_of(wanted.indexes))
            self._shelf.keep_recent()
            return wanted
        tokens = min(question.prompt_left, self._prefill_chunk)
        self._line.served(question, tokens)
        return Prefill(question, tokens)

    def _next_group(self) -> ReadBlocks | None:
        self._since_reading = 0
        beside = self.waiting or self.answering
        return self._shelf.next_group(self._read_tokens // (GROUP_SHARE if beside else 1))

    def _reading_came_first(self) -> bool:
        """Whether a document came before every request."""
        first = min((reading.arrival for reading in self.readings()), default=None)
        return first is not None and all(first < one.arrival for one in self.sequences())
