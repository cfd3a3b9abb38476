"""Documents that are prepared and not read yet, and which of an owner's the engine is given.

It is given the one that came first, and beside it each that has at most one in `OVERTAKES` of the
tokens of every document with the engine that came before it, as long as these are fewer than
`MOST`. So a short contract doesn't wait until a long one is read, and one that is nearly as long
does: side by side both would end when the second one would have. Nobody waits for ever, since those
that came before end some time, and then it is the first: it is given then however many the engine
has, which are more than `MOST` only where the first took longer to prepare than others that came
after it. Of an owner's documents that the engine has all take turns, and so do owners, as far as
there is room (`backend.shelf`): so those that are read share their owner's turns with shorter ones
that came later, and have about every `MOST`th at least.

Knows neither jobs nor the engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

OVERTAKES = 4
"""A document has at most one in so many of the tokens of those that it overtakes."""
MOST = 6
"""Documents of one owner that the engine is given at a time. With each a quarter of the one before
it the sixth has 512 tokens beside one of 524,288."""


class Prepared(Protocol):
    """A document with its owner, its length in tokens, and whether the engine was given it."""

    @property
    def owner(self) -> str:
        """Whose it is."""

    @property
    def length(self) -> int:
        """Its tokens."""

    @property
    def given(self) -> bool:
        """The engine has it; it isn't taken back."""


T = TypeVar("T", bound=Prepared)


def due(unread: Sequence[T]) -> list[T]:
    """Those that the engine is to have, or has. `unread` are all, the first that came first."""
    shortest: dict[str, int] = {}
    count = Counter(one.owner for one in unread if one.given)
    found = []
    for one in unread:
        before = shortest.get(one.owner)
        if not one.given:
            beside = before is None or overtakes(one.length, before)
            if not beside or (before is not None and count[one.owner] >= MOST):
                continue
            count[one.owner] += 1
        found.append(one)
        shortest[one.owner] = one.length if before is None else min(before, one.length)
    return found


def ahead_of(one: T, unread: Sequence[T]) -> list[T]:
    """Those of its owner's that came before it and that it can't overtake."""
    return [
        other
        for other in unread[: unread.index(one)]
        if other.owner == one.owner and not overtakes(one.length, other.length)
    ]


def overtakes(length: int, before: int) -> bool:
    """Whether a document need not wait for one that came before it."""
    return length * OVERTAKES <= before
