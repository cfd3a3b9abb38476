"""Loops are told from lists."""

from __future__ import annotations

import random

from backend.repetition import is_looping


def test_loops_of_any_period_are_found() -> None:
    for period in (1, 2, 7, 30, 64):
        unit = list(range(1000, 1000 + period))
        repeats = max(4, -(-48 // period))
        assert is_looping([5, 6, 7, *unit * repeats])
        assert not is_looping([5, 6, 7, *unit * (repeats - 1)])


def test_price_list_is_no_loop() -> None:
    numbers = random.Random(3)
    rows = [t for _ in range(60) for t in (11, numbers.randrange(100, 999), 12, 13, 14)]
    assert not any(is_looping(rows[:end]) for end in range(len(rows)))
