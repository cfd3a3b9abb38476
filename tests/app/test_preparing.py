"""Places for files that are prepared, and who gets the kept ones."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.preparing import KEPT, SHORTER, Place, PreparingPlaces


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
    assert first is not None and first.job == File("0", 1000)
    assert places.take(line.claim, kept=True) is None and line.asked == [None]
    assert taken(places, line, kept=False) == File("1", 800)
    assert taken(places, line, kept=True) == File("3", 400)
    assert taken(places, line, kept=True) == File("5", 200)
    assert line.asked[2:] == [400, 200]
    places.leave(first)
    assert places.take(line.claim, kept=True) is None and len(line.asked) == 4
    assert taken(places, line, kept=False) == File("2", 900)


def test_two_places_may_have_the_same_job_and_each_is_left_alone() -> None:
    same, places = File("0", 1000), PreparingPlaces(2)
    first = places.take(lambda _: same, kept=False)
    second = places.take(lambda _: same, kept=False)
    assert first is not None and second is not None
    line = Line(500, 250)
    places.leave(first)
    assert places.take(line.claim, kept=True) is None, "a usual one is free"
    again = places.take(lambda _: same, kept=False)
    assert again is not None
    assert taken(places, line, kept=True) == File("0", 500)
    places.leave(second)
    places.leave(again)


def test_a_claim_that_fails_takes_no_place() -> None:
    def fail(_: int | None) -> File | None:
        raise RuntimeError("the disk is on fire")

    line, places = Line(10, 5), PreparingPlaces(1)
    with pytest.raises(RuntimeError):
        places.take(fail, kept=False)
    assert places.take(line.claim, kept=True) is None
    assert taken(places, line, kept=False) == File("0", 10)
    assert taken(places, line, kept=True) == File("1", 5)


@given(
    st.integers(1, 4),
    st.lists(st.integers(1, 1 << 40), max_size=40),
    st.lists(st.tuples(st.sampled_from(["usual", "kept", "leave"]), st.integers(0, 9))),
)
def test_the_usual_places_take_every_file_in_its_order_and_the_kept_ones_little(
    usual: int, sizes: list[int], steps: list[tuple[str, int]]
) -> None:
    line, places = Line(*sizes), PreparingPlaces(usual)
    in_usual: list[Place[File]] = []
    in_kept: list[Place[File]] = []
    for kind, number in steps:
        if kind == "leave":
            left = in_usual + in_kept
            if left:
                gone = left[number % len(left)]
                places.leave(gone)
                (in_usual if gone in in_usual else in_kept).remove(gone)
        elif kind == "usual" and len(in_usual) < usual:
            first = line.files[0] if line.files else None
            place = places.take(line.claim, kept=False)
            assert (place and place.job) == first
            in_usual += [place] if place else []
        elif kind == "kept" and len(in_kept) < KEPT:
            least = _least(in_usual + in_kept)
            able = [one for one in line.files if one.size * SHORTER <= least]
            place = places.take(line.claim, kept=True)
            expected = able[0] if able and len(in_usual) == usual else None
            assert (place and place.job) == expected
            if place is not None:
                assert SHORTER * place.job.size <= least
                in_kept.append(place)


def taken(places: PreparingPlaces, line: Line, *, kept: bool) -> File | None:
    place = places.take(line.claim, kept=kept)
    return None if place is None else place.job


def _least(places: list[Place[File]]) -> int:
    return min((place.job.size for place in places), default=0)
