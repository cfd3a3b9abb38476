"""The line of questions: owners side by side, each in its order, nobody kept out by another."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from app.turnover import LATEST_S, USUAL_S
from app.waiting import OWNERS_FULL, Places, WaitingLine


@dataclass(frozen=True, slots=True)
class Asked:
    owner: str
    number: int


def line(places: int = 32, threads: int = 16, *, several: bool = True) -> WaitingLine[Asked]:
    return WaitingLine(places, threads, several=several)


def put(waiting: WaitingLine[Asked], owner: str, number: int = 0) -> Asked:
    assert waiting.reserve(owner)
    asked = Asked(owner, number)
    waiting.add(asked)
    waiting.give_back(owner)
    return asked


def test_owners_are_served_side_by_side() -> None:
    waiting = line()
    for number in range(5):
        put(waiting, "A", number)
    put(waiting, "B", 1)
    put(waiting, "B", 2)
    taken = [waiting.take() for _ in range(7)]
    assert "".join(asked.owner for asked in taken if asked) == "ABABAAA"
    assert [asked.number for asked in taken if asked and asked.owner == "A"] == [0, 1, 2, 3, 4]
    assert waiting.take() is None and len(waiting) == 0


def test_one_owner_leaves_threads_to_others() -> None:
    waiting = line(threads=4)
    for number in range(6):
        put(waiting, "A", number)
    taken = [waiting.take() for _ in range(4)]
    assert taken[3] is None, "three of four threads are A's"
    put(waiting, "B")
    assert waiting.take() == Asked("B", 0)
    assert taken[0] is not None
    waiting.done(taken[0])
    assert waiting.take() == Asked("A", 3)


def test_alone_all_threads_are_ones_own() -> None:
    waiting = line(threads=2, several=False)
    first, second = put(waiting, "local", 1), put(waiting, "local", 2)
    assert (waiting.take(), waiting.take()) == (first, second)


def test_one_owner_keeps_no_other_out_of_the_line() -> None:
    waiting = line(places=3)
    for number in range(3):
        put(waiting, "A", number)
    assert not waiting.reserve("A")
    for owner in range(OWNERS_FULL - 1):
        for number in range(3):
            put(waiting, f"other {owner}", number)
    assert not waiting.reserve("late"), "all places together are limited too"
    alone = line(places=3, several=False)
    assert [alone.reserve("local") for _ in range(4)] == [True, True, True, False]


def test_who_is_kept_out_by_others_comes_again_when_any_of_theirs_was_taken_up() -> None:
    now = [0.0]
    waiting: WaitingLine[Asked] = WaitingLine(2, 16, several=True, clock=lambda: now[0])
    for owner in range(OWNERS_FULL):
        for number in range(2):
            put(waiting, f"other {owner}", number)
    assert not waiting.reserve("other 0") and not waiting.kept_out("other 0")
    assert not waiting.reserve("late") and waiting.kept_out("late")
    for owner in range(3):
        now[0] += 2.0
        assert waiting.remove(Asked(f"other {owner}", 0))
    for owner in range(3):
        put(waiting, f"other {owner}", 0)
    assert not waiting.reserve("late")
    assert [waiting.retry_s("late") for _ in range(2)] == [2, 4]


def test_nothing_is_kept_of_owners_who_are_gone() -> None:
    now = [0.0]
    waiting: WaitingLine[Asked] = WaitingLine(2, 16, several=True, clock=lambda: now[0])
    for number in range(1000):
        asked = put(waiting, f"owner {number}", number)
        assert waiting.take() == asked
        waiting.done(asked)
    assert len(waiting._turnover) == 1
    for number in range(2):
        put(waiting, "full", number)
    assert not waiting.reserve("full")
    waiting.retry_s("full")
    for _ in range(2):
        waiting.take()
    for number in range(3):
        now[0] += LATEST_S / 2 + 1
        put(waiting, f"new {number}")
        assert ("full" in waiting._turnover) is (number == 0), "it was told to come again"


def test_reserved_places_count() -> None:
    waiting = line(places=2)
    assert waiting.reserve("A") and waiting.reserve("A") and not waiting.reserve("A")
    assert waiting.reserved == 2
    waiting.give_back("A")
    assert waiting.reserve("A")


def test_another_owners_line_that_has_its_share_is_no_rival() -> None:
    waiting = line(threads=4)
    for number in range(8):
        put(waiting, "A", number)
    assert [one.owner for one in (waiting.take(), waiting.take(), waiting.take()) if one] == [
        "A"
    ] * 3
    put(waiting, "B")
    assert waiting.take() == Asked("B", 0)
    assert waiting.rivals("B") == 0, "A has its three of four threads"
    assert waiting.rivals("A") == 5
    put(waiting, "B", 1)
    assert waiting.rivals("B") == 1


def test_one_that_waits_can_be_taken_out() -> None:
    waiting = line()
    first, second = put(waiting, "A", 1), put(waiting, "A", 2)
    assert waiting.remove(first) and not waiting.remove(first)
    assert waiting.take() == second
    assert not waiting.remove(second)


def test_one_owner_leaves_places_to_others() -> None:
    places = Places(4, several=True)
    assert [places.take("A") for _ in range(4)] == [True, True, True, False]
    assert places.take("B") and not places.take("C")
    places.leave("A")
    assert places.take("C") and not places.take("A")
    alone = Places(4, several=False)
    assert [alone.take("local") for _ in range(5)] == [True] * 4 + [False]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from("ABC")),
            st.tuples(st.just("take"), st.just("")),
            st.tuples(st.sampled_from(("done", "remove")), st.integers(0, 5)),
        ),
        max_size=80,
    )
)
def test_nothing_is_lost_and_turns_are_even(steps: list[tuple[str, object]]) -> None:
    waiting = line(places=4, threads=4)
    there: list[Asked] = []
    served: list[Asked] = []
    for count, (step, what) in enumerate(steps):
        if step == "put":
            owner = str(what)
            own = sum(one.owner == owner for one in there)
            assert waiting.reserve(owner) is (own < 4)
            if own < 4:
                there.append(Asked(owner, count))
                waiting.add(there[-1])
                waiting.give_back(owner)
        elif step == "take":
            now = Counter(one.owner for one in served)
            able = [one for one in there if now[one.owner] < 3]
            taken = waiting.take()
            if taken is None:
                assert not able
                continue
            least = min(now[one.owner] for one in able)
            assert taken == next(one for one in able if now[one.owner] == least)
            there.remove(taken)
            served.append(taken)
        elif step == "done" and served:
            waiting.done(served.pop(int(str(what)) % len(served)))
        elif step == "remove" and there:
            assert waiting.remove(there.pop(int(str(what)) % len(there)))
        assert len(waiting) == len(there) and waiting.reserved == 0


def test_one_of_an_owner_who_was_forgotten_is_served() -> None:
    waiting = line()
    assert waiting.reserve("A")
    waiting.give_back("A")
    # Whoever is new has the line forget owners of whom it has nothing.
    assert waiting.reserve("B")
    asked = Asked("A", 0)
    waiting.add(asked)
    assert waiting.take() == asked
    waiting.done(asked)
    assert len(waiting) == 0 and waiting.take() is None


def all_taken(clock: list[float]) -> Places:
    """Four of four places, of which some became free before, one every two seconds."""
    places = Places(4, several=False, clock=lambda: clock[0])
    assert places.take("A", 4)
    for _ in range(3):
        clock[0] += 2.0
        places.leave("A")
        assert places.take("A")
    return places


def test_who_finds_no_place_is_told_how_long_the_last_ones_took() -> None:
    now = [0.0]
    places = all_taken(now)
    assert not places.take("A") and places.retry_s("A") == 2
    assert places.retry_s("A") == 4, "behind the one who was told before"
    assert places.retry_s("A", 2) == 8, "until there are two"
    fresh = Places(1, several=False)
    assert fresh.take("A") and fresh.retry_s("A") == USUAL_S


def test_an_owner_who_has_its_share_comes_again_when_one_of_its_own_is_free() -> None:
    now = [0.0]
    places = Places(4, several=True, clock=lambda: now[0])
    assert places.take("A", 3) and places.take("B") and not places.take("A")
    assert places.retry_s("A") == USUAL_S
    for one in ("A", "B", "B", "A"):
        now[0] += 2.0
        places.leave(one)
        assert places.take(one)
    assert not places.take("C") and places.retry_s("C") == 2, "any place would do"
    places.leave("B")
    assert not places.take("A") and places.retry_s("A") == 6


def test_places_that_were_taken_for_nothing_say_nothing_about_the_next_ones() -> None:
    now = [0.0]
    places = all_taken(now)
    places.leave("A")
    for _ in range(20):
        assert places.take("A")
        places.give_back("A", 1)
    assert places.take("A") and places.retry_s("A") == 2
