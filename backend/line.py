"""The line of requests whose first token is still to come, in the order in which they are worked
on.

Owners take turns by tokens (`backend.turns`). Of one owner's requests the quick ones go first, in
the order in which they came; a long one gets a step after every `LONG_TURN` steps of quick ones.
Knows no batches. Owned by the engine's thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from backend.sequence import Sequence
from backend.turns import Turns

QUICK_TOKENS = 4_096
"""A request is quick while no more of its prompt is to come, and no more was read for it."""
LONG_TURN = 8
"""Steps of one owner's quick requests between two of its long ones, which therefore take at most
nine times as long as alone. A prompt of 100,000 tokens that waits for all others would wait for
ever where questions never cease."""
LOOK_AHEAD = 4
"""Requests that are looked at for one that can be opened now; a look costs some 0.1 ms."""


class Line:
    """Requests by owner. One that has its context is `open`."""

    def __init__(self, *, first_come: bool = False) -> None:
        """`first_come`: strictly in the order of arrival."""
        self._first_come = first_come
        self._turns = Turns()
        self._requests: dict[str, list[Sequence]] = {}
        self._open: set[Sequence] = set()
        self._alone: Sequence | None = None
        # Steps of each owner's quick requests since its last long one had a step.
        self._quick_steps: dict[str, int] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def open(self) -> int:
        """Requests that have their context."""
        return len(self._open)

    @property
    def waiting(self) -> int:
        """Requests that have none yet."""
        return self._length - len(self._open)

    def requests(self) -> list[Sequence]:
        """All of them."""
        return [sequence for own in self._requests.values() for sequence in own]

    def add(self, sequence: Sequence) -> None:
        """A request comes, behind its owner's others."""
        owner = sequence.request.owner
        self._turns.enter(owner)
        self._requests.setdefault(owner, []).append(sequence)
        self._length += 1

    def begin(self, sequence: Sequence) -> None:
        """The request has its context."""
        self._open.add(sequence)
        if sequence is self._alone:
            self._alone = None

    def serve_alone(self, sequence: Sequence) -> None:
        """No other request is opened before this one is, or is over."""
        self._alone = sequence

    def leave(self, over: Callable[[Sequence], bool]) -> list[Sequence]:
        """Takes out the requests that are over."""
        left = [one for own in self._requests.values() for one in own if over(one)]
        for sequence in left:
            self._remove(sequence)
        return left

    def in_turn(self) -> Iterator[Sequence]:
        """The requests, the one whose turn it is first."""
        if self._first_come:
            yield from sorted(self.requests(), key=lambda one: one.arrival)
            return
        for owner in self._turns.order():
            own = self._requests[owner]
            long_first = self._quick_steps.get(owner, 0) >= LONG_TURN
            for long in (long_first, not long_first):
                for sequence in own:
                    if _is_long(sequence) is long:
                        yield sequence

    def to_open(self) -> list[Sequence]:
        """Requests whose context is to be opened now, the next one first. A context is opened
        when its turn is near: it is a copy of all that it sees, and takes memory."""
        if self._alone is not None:
            return [self._alone]
        found: list[Sequence] = []
        ahead = 0
        for sequence in self.in_turn():
            if sequence in self._open:
                ahead += 1
                if ahead > 1:
                    break
                continue
            found.append(sequence)
            if len(found) == LOOK_AHEAD:
                break
        return found

    def next_step(self, asker: Sequence | None) -> Sequence | None:
        """The first request that can be worked on: it is open, or it is `asker`, for whom blocks
        are to be read."""
        for sequence in self.in_turn():
            if sequence in self._open or sequence is asker:
                return sequence
        return None

    def is_long(self, sequence: Sequence) -> bool:
        """Whether it goes behind its owner's quick requests."""
        return _is_long(sequence)

    def served(self, sequence: Sequence, tokens: int) -> None:
        """A step of `tokens` tokens was for this request."""
        owner = sequence.request.owner
        if owner not in self._turns:
            return
        long = _is_long(sequence)
        others = self._requests[owner]
        waits = not long and any(_is_long(one) for one in others)
        self._quick_steps[owner] = self._quick_steps.get(owner, 0) + 1 if waits else 0
        sequence.spent += tokens
        order = self._turns.order()
        self._turns.charge(owner, tokens, passed_over=order[: order.index(owner)])

    def _remove(self, sequence: Sequence) -> None:
        owner = sequence.request.owner
        own = self._requests[owner]
        own.remove(sequence)
        self._turns.leave(owner)
        if not own:
            del self._requests[owner]
            self._quick_steps.pop(owner, None)
        self._open.discard(sequence)
        if sequence is self._alone:
            self._alone = None
        self._length -= 1


def _is_long(sequence: Sequence) -> bool:
    return sequence.prompt_left > QUICK_TOKENS or (
        sequence.context is None and sequence.spent > QUICK_TOKENS
    )
