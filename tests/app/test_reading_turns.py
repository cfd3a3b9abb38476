"""Which of an owner's documents the engine is given: short ones overtake, and nobody for ever."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from app.reading_turns import MOST, OVERTAKES, ahead_of, due


@dataclass(eq=False)
class Unread:
    """A document that waits, or that the engine has."""

    length: int
    owner: str = "a"
    given: bool = False


DOCUMENTS = st.builds(
    Unread,
    st.one_of(st.integers(1, 9), st.integers(10, 99), st.integers(1, 1_000_000)),
    st.sampled_from("ab"),
)


def lengths(unread: list[Unread]) -> list[int]:
    return [one.length for one in due(unread)]


def test_one_of_a_quarter_overtakes_and_one_of_more_waits() -> None:
    assert lengths([Unread(400), Unread(101), Unread(100)]) == [400, 100]
    assert lengths([Unread(400), Unread(100), Unread(26), Unread(25)]) == [400, 100, 25]


def test_a_long_one_waits_for_a_short_one_that_came_first() -> None:
    short, long = Unread(100), Unread(1_000)
    assert due([short, long]) == [short]
    assert ahead_of(long, [short, long]) == [short]
    assert due([long]) == [long]


def test_what_the_engine_has_stays_there_and_the_first_is_given_beside_it() -> None:
    second, short = Unread(200), Unread(100, given=True)
    assert due([Unread(400), second, short])[1:] == [short]
    assert due([second, short]) == [second, short]
    assert lengths([second, short, Unread(26), Unread(25)]) == [200, 100, 25]


def test_a_first_one_that_took_longest_to_prepare_is_given_beside_as_many_as_there_may_be() -> None:
    shorter = [Unread(4**power, given=True) for power in range(MOST, 0, -1)]
    first = Unread(4 ** (MOST + 1))
    assert due([*shorter, Unread(1)]) == shorter
    assert due([first, *shorter, Unread(1)]) == [first, *shorter]


def test_owners_do_not_wait_for_each_other() -> None:
    unread = [Unread(100, "a"), Unread(100, "b"), Unread(90, "a")]
    assert lengths(unread) == [100, 100]
    assert ahead_of(unread[2], unread) == [unread[0]]


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(DOCUMENTS, min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_any_mix_is_given_in_bounds_and_to_the_end(unread: list[Unread], chance: object) -> None:
    order = list(unread)
    left: list[Unread] = []
    while order or left:
        if order and (not left or chance.random() < 0.5):  # type: ignore[attr-defined]
            left.append(order.pop(0))
        before = {one for one in left if one.given}
        for one in due(left):
            one.given = True
        for owner in {one.owner for one in left}:
            own = [one for one in left if one.owner == owner]
            assert own[0].given, "the first is never kept waiting"
            having = [one for one in own if one.given]
            assert len(having) <= MOST
            for place, one in enumerate(having):
                if one in before or place == 0:
                    continue
                assert all(one.length * OVERTAKES <= earlier.length for earlier in having[:place])
        ends = [one for one in left if one.given]
        if chance.random() < 0.7:  # type: ignore[attr-defined]
            left.remove(chance.choice(ends))  # type: ignore[attr-defined]
