"""Who finds no place comes again when there is one, and finds one as often as others do."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from dataclasses import dataclass

import pytest

from app.turnover import LATEST_S, SOONEST_S, USUAL_S, Turnover
from app.waiting import WaitingLine


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def turnover(clock: Clock, every: float, places: int = 32) -> Turnover:
    """One whose places become free `every` so many seconds, while others wait."""
    told = Turnover(places, clock)
    for _ in range(8):
        clock.now += every
        told.freed(waiting=1)
    return told


def test_each_is_told_a_time_of_its_own(clock: Clock) -> None:
    told = turnover(clock, 3.0)
    assert [told.refuse() for _ in range(4)] == [3, 6, 9, 12]
    clock.now += 6.0
    told.freed(waiting=2)
    told.freed(waiting=1)
    assert told.refuse() > 6, "others are told to come before"


def test_before_anything_is_known_it_is_the_usual_time(clock: Clock) -> None:
    assert Turnover(32, clock).refuse() == USUAL_S


def test_a_place_that_is_overdue_is_not_promised_for_sooner(clock: Clock) -> None:
    told = turnover(clock, 1.0)
    clock.now += 20.0
    assert told.refuse() == 20


def test_nobody_is_told_more_than_the_latest_or_less_than_the_soonest(clock: Clock) -> None:
    slow = turnover(clock, 50.0)
    assert [slow.refuse() for _ in range(3)] == [50, LATEST_S, LATEST_S]
    assert turnover(clock, 0.01).refuse() == SOONEST_S


def test_who_asks_on_and_on_puts_nobody_further_back_than_all_places_take(clock: Clock) -> None:
    told = turnover(clock, 1.0, places=8)
    assert max(told.refuse() for _ in range(100)) == 8


def test_an_empty_line_takes_promises_and_pace_back(clock: Clock) -> None:
    told = turnover(clock, 3.0)
    assert [told.refuse() for _ in range(15)][-1] == 45
    told.freed(waiting=0)
    assert told.refuse() == USUAL_S
    for _ in range(2):
        clock.now += 1.0
        told.freed(waiting=1)
    assert [told.refuse() for _ in range(2)] == [1, 2]


def test_how_seldom_somebody_came_is_not_how_long_a_place_takes(clock: Clock) -> None:
    line: WaitingLine[Asked] = WaitingLine(32, 4, several=False, clock=clock)

    def ask(number: int) -> bool:
        if not line.reserve(""):
            return False
        line.give_back("")
        line.add(Asked("", number))
        return True

    for number in range(20):
        clock.now += 300.0
        assert ask(number) and line.take() is not None
        line.done(Asked("", number))
    for number in range(36):
        assert ask(number)
        line.take()
    clock.now += 1.0
    assert not ask(36) and line.retry_s("") == USUAL_S
    for _ in range(3):
        clock.now += 1.0
        line.done(Asked("", 0))
        assert line.take() is not None
    assert [line.retry_s("") for _ in range(3)] == [1, 2, 3]


def test_as_long_as_nobody_was_refused_all_places_are_given(clock: Clock) -> None:
    told = Turnover(32, clock)
    assert all(told.admits(left) for left in range(32, 0, -1))
    assert not told.admits(0)


def test_the_last_quarter_is_given_sparingly_until_nobody_was_refused_for_a_while(
    clock: Clock,
) -> None:
    told = Turnover(32, clock)
    told.refuse()
    assert all(told.admits(left) for left in range(32, 7, -1))
    assert [told.admits(2) for _ in range(8)] == [False, False, False, True] * 2
    assert sum(told.admits(6) for _ in range(8)) == 6
    clock.now += LATEST_S + 1
    assert all(told.admits(1) for _ in range(8))


def test_a_line_of_few_places_spares_none(clock: Clock) -> None:
    told = Turnover(3, clock)
    told.refuse()
    assert [told.admits(1) for _ in range(4)] == [True] * 4


@dataclass(frozen=True, slots=True)
class Asked:
    owner: str
    number: int


@pytest.mark.parametrize("answer_s", [0.2, 1.0, 8.0])
def test_sixty_four_askers_in_forty_eight_places_are_all_answered(
    clock: Clock, answer_s: float
) -> None:
    """Each asks again as soon as it is answered, or when it was told to, or somewhat before."""
    chance = random.Random(1)
    line: WaitingLine[Asked] = WaitingLine(32, 16, several=False, clock=clock)
    numbers = itertools.count()
    events = [(clock.now + chance.random(), next(numbers), "ask", asker) for asker in range(64)]
    heapq.heapify(events)
    answered: Counter[int] = Counter()
    refusals = 0

    def serve() -> None:
        while (taken := line.take()) is not None:
            takes = answer_s * chance.uniform(0.5, 1.5)
            heapq.heappush(events, (clock.now + takes, next(numbers), "done", taken.number))

    while answered.total() < 64 * 20:
        clock.now, _, what, asker = heapq.heappop(events)
        if what == "done":
            answered[asker] += 1
            line.done(Asked("", asker))
            heapq.heappush(events, (clock.now + 0.001, next(numbers), "ask", asker))
            serve()
        elif line.reserve(""):
            line.give_back("")
            line.add(Asked("", asker))
            serve()
        else:
            refusals += 1
            again = clock.now + line.retry_s("") * chance.uniform(0.5, 1.0)
            heapq.heappush(events, (again, next(numbers), "ask", asker))
    assert len(answered) == 64
    assert min(answered.values()) >= 8, sorted(answered.values())
    assert refusals < 3 * answered.total()
