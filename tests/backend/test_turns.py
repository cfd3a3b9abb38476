"""Whose turn it is among owners."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from backend.turns import Turns


def test_the_least_served_is_next_and_waits_no_longer_than_others() -> None:
    turns = Turns()
    for owner in ("a", "b", "c"):
        turns.enter(owner)
    given = []
    for _ in range(6):
        owner = turns.order()[0]
        given.append(owner)
        turns.charge(owner, 10)
    assert given == ["a", "b", "c"] * 2
    turns.charge("a", 100)
    assert turns.order() == ["b", "c", "a"]


def test_who_comes_is_next_and_has_saved_up_nothing() -> None:
    turns = Turns()
    turns.enter("busy")
    for _ in range(50):
        turns.charge("busy", 512)
    turns.enter("new")
    assert turns.order()[0] == "new"
    turns.charge("new", 512)
    assert turns.order()[0] == "busy", "not another fifty for who has just come"


def test_going_and_coming_back_gains_nothing() -> None:
    turns = Turns()
    for owner in ("stays", "goes"):
        turns.enter(owner)
    turns.charge("goes", 1000)
    turns.leave("goes")
    turns.enter("goes")
    assert turns.order() == ["stays", "goes"]
    assert turns.served("goes") - turns.served("stays") == 1000


def test_who_could_not_be_served_saves_up_nothing() -> None:
    turns = Turns()
    for owner in ("blocked", "other"):
        turns.enter(owner)
    for _ in range(40):
        turns.charge("other", 512, passed_over=["blocked"])
    assert turns.order()[0] == "blocked"
    turns.charge("blocked", 1024)
    assert turns.order()[0] == "other"


def test_owners_of_long_ago_are_forgotten() -> None:
    turns = Turns()
    turns.enter("stays")
    for number in range(1000):
        turns.enter(f"guest {number}")
        turns.leave(f"guest {number}")
        turns.charge("stays", 1)
    turns.enter("stays")
    assert len(turns) == 1
    assert len(turns._served) <= 3


Move = tuple[str, int]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.sampled_from(["come", "go", "serve", "serve", "serve"]), st.integers(0, 4)),
        max_size=120,
    ),
    st.integers(1, 64),
)
def test_owners_with_work_are_served_alike(moves: list[Move], most: int) -> None:
    turns = Turns()
    work = dict.fromkeys("abcde", 0)
    # What each had when both of a pair last began to have work, and has been served since.
    since: dict[tuple[str, str], list[int]] = {}
    for step, (move, number) in enumerate(moves):
        owner = "abcde"[number]
        if move == "come":
            if not work[owner]:
                for other in "abcde":
                    since[min(owner, other), max(owner, other)] = [0, 0]
            work[owner] += 1
            turns.enter(owner)
        elif move == "go" and work[owner]:
            work[owner] -= 1
            turns.leave(owner)
        elif move == "serve" and len(turns):
            chosen = turns.order()[0]
            tokens = 1 + (step * 7 + number) % most
            turns.charge(chosen, tokens)
            for other in "abcde":
                if other != chosen:
                    pair = since.setdefault((min(chosen, other), max(chosen, other)), [0, 0])
                    pair[chosen > other] += tokens
        with_work = [one for one in work if work[one]]
        assert sorted(turns.order()) == with_work
        for first in with_work:
            for second in with_work:
                if first < second:
                    served = since[first, second]
                    assert abs(served[0] - served[1]) <= 2 * most
