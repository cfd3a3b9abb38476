"""Places for files that are prepared, and who gets the kept ones."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.preparing import KEPT, SHORTER, PreparingPlaces


@dataclass(frozen=True, slots=True)
class File:
    id: str
    size: int


class Line:
    """Files in the order in which they came."""

    def __init__(self, *sizes: int) -> None:
        self.files = deque(File(str(number), size) for number, size in enumerate(sizes))
        self.asked: list[int | None] = []

    def claim(self, largest: int | None) -> File | None:
        self.asked.append(largest)
        for file in self.files:
            if largest is None or file.size <= largest:
                self.files.remove(file)
                return file
        return None


def test_a_kept_place_is_for_short_files_while_the_usual_ones_are_taken() -> None:
    line, places = Line(1000, 800, 900, 400, 300, 200), PreparingPlaces(2)
    first = places.take(line.claim, kept=False)
    assert first == File("0", 1000)
    assert places.take(line.claim, kept=True) is None and line.asked == [None]
    second = places.take(line.claim, kept=False)
    assert second == File("1", 800)
    assert places.take(line.claim, kept=True) == File("3", 400)
    assert places.take(line.claim, kept=True) == File("5", 200)
    assert line.asked[2:] == [400, 200]
    places.leave(first)
    assert places.take(line.claim, kept=True) is None and len(line.asked) == 4
    assert places.take(line.claim, kept=False) == File("2", 900)


def test_a_claim_that_fails_takes_no_place() -> None:
    def fail(_: int | None) -> File | None:
        raise RuntimeError("the disk is on fire")

    line, places = Line(10, 5), PreparingPlaces(1)
    with pytest.raises(RuntimeError):
        places.take(fail, kept=False)
    assert places.take(line.claim, kept=True) is None
    assert places.take(line.claim, kept=False) == File("0", 10)
    assert places.take(line.claim, kept=True) == File("1", 5)


@given(
    st.integers(1, 4),
    st.lists(st.integers(1, 1 << 40), max_size=40),
    st.lists(st.tuples(st.sampled_from(["usual", "kept", "leave"]), st.integers(0, 9))),
)
def test_the_usual_places_take_every_file_in_its_order_and_the_kept_ones_little(
    usual: int, sizes: list[int], steps: list[tuple[str, int]]
) -> None:
    line, places = Line(*sizes), PreparingPlaces(usual)
    in_usual: list[File] = []
    in_kept: list[File] = []
    for kind, number in steps:
        if kind == "leave":
            taken = in_usual + in_kept
            if taken:
                gone = taken[number % len(taken)]
                places.leave(gone)
                (in_usual if gone in in_usual else in_kept).remove(gone)
        elif kind == "usual" and len(in_usual) < usual:
            first = line.files[0] if line.files else None
            file = places.take(line.claim, kept=False)
            assert file == first
            in_usual += [file] if file else []
        elif kind == "kept" and len(in_kept) < KEPT:
            beside = in_usual + in_kept
            able = [one for one in line.files if one.size * SHORTER <= _least(beside)]
            file = places.take(line.claim, kept=True)
            assert file == (able[0] if able and len(in_usual) == usual else None)
            if file is not None:
                assert SHORTER * file.size <= _least(beside)
                in_kept.append(file)


def _least(files: list[File]) -> int:
    return min((file.size for file in files), default=0)
