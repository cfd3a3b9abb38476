"""How long one thread of Python may keep the interpreter while others wait for it.

The engine's thread gives the interpreter away with every operation of torch and asks for it again,
some hundred times a step. Beside one thread that computes in Python (a search, an index) on a core
of its own it waits a whole turn each time. On two cores with one thread of torch and SmolLM2-135M a
decoding step, a prompt of 250 tokens and a block of 512 took 31 ms, 0.3 s and 0.6 s alone; beside
such a thread 3.1 s, 11 s and 19 s with Python's own turns of 5 ms, 0.65 s, 2.5 s and 3.3 s with
0.5 ms, and 0.25 s, 1.0 s and 1.5 s with 0.1 ms, at which the other thread did about as much as
before. Where no thread waits there are no turns.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def turns_of(seconds: float) -> Iterator[None]:
    """Inside of the block a turn takes so many seconds, in the whole process."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(seconds)
    try:
        yield
    finally:
        sys.setswitchinterval(before)
