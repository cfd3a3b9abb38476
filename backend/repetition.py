"""Tells when greedy decoding has fallen into a loop."""

from __future__ import annotations

from collections.abc import Sequence

LONGEST_PERIOD = 64
REPEATS = 4
SHORTEST_RUN = 48
"""A loop is a run of at least 48 tokens and 4 rounds: a price list repeats its units, but not the
same tokens four rows running."""


def is_looping(tokens: Sequence[int]) -> bool:
    """Whether `tokens` ends in one sequence of up to 64 tokens repeated at least 4 times."""
    for period in range(1, LONGEST_PERIOD + 1):
        run = max(SHORTEST_RUN, period * REPEATS)
        if run > len(tokens):
            continue
        tail = tokens[-run:]
        if all(tail[i] == tail[i - period] for i in range(run - 1, period - 1, -1)):
            return True
    return False
