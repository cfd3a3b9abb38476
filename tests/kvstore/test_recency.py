"""The order in which blocks go, against its definition."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstore.errors import IntegrityError
from kvstore.recency import Recency


def keys(names: str) -> frozenset[bytes]:
    return frozenset(name.encode() for name in names)


def went(order: Recency) -> str:
    return b"".join(order.least()).decode()


def test_a_document_goes_whole_before_a_newer_one_gets_a_hole() -> None:
    order = Recency()
    order.enrol("old", keys("abc"))
    order.enrol("new", keys("xyz"))
    # Read in turns, then single blocks of each were asked for, "new" last.
    for key in "axbyczb":
        order.use(key.encode())
    order.use(b"x")
    assert went(order) == "acbyzx"
    order.check_integrity(keys("abcxyz"))


def test_a_shared_block_goes_with_the_document_that_was_used_last() -> None:
    order = Recency()
    order.enrol("v1", keys("as"))
    order.enrol("v2", keys("bs"))
    for key in "asb":
        order.use(key.encode())
    order.use(b"a")
    # v2 was used least recently, but v1 has the shared block too.
    assert went(order) == "bsa"


def test_a_document_in_use_goes_after_those_used_before() -> None:
    order = Recency()
    order.enrol("reading", keys("ab"))
    order.enrol("idle", keys("xy"))
    for key in "abxy":
        order.use(key.encode())
    order.use_document("reading")
    order.use_document("nobody's")
    assert went(order) == "xyab"
    order.check_integrity(keys("abxy"))


def test_blocks_of_no_document_go_by_themselves() -> None:
    order = Recency()
    for key in "pq":
        order.use(key.encode())
    order.enrol("d", keys("ab"))
    order.use(b"a")
    order.use(b"p")
    assert went(order) == "qap"
    assert set(order.forget("d")) == {b"a", b"b"}
    assert went(order) == "qpa", "what is not forgotten stands alone"
    order.remove(b"p")
    assert went(order) == "qa"


def test_books_that_do_not_agree_are_noticed() -> None:
    order = Recency()
    order.enrol("d", keys("ab"))
    order.use(b"a")
    with pytest.raises(IntegrityError):
        order.check_integrity(keys("ab"))
    order._owners[b"b"] = ("nobody",)
    with pytest.raises(IntegrityError):
        order.check_integrity(keys("a"))


NAMES = ("d0", "d1", "d2")
KEYS = st.integers(0, 5).map(lambda number: str(number).encode())
Made = dict[str, frozenset[bytes]]


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(st.sampled_from(NAMES), st.frozensets(KEYS)),
    st.lists(st.tuples(st.booleans(), KEYS), max_size=30),
)
def test_blocks_go_by_the_last_use_of_their_documents(
    documents: Made, steps: list[tuple[bool, bytes]]
) -> None:
    order = Recency()
    for name, made in documents.items():
        order.enrol(name, made)
    used: dict[bytes, int] = {}
    last: dict[str | bytes, int] = {}
    for now, (use, key) in enumerate(steps):
        owners = {name for name, made in documents.items() if key in made} or {key}
        if use:
            order.use(key)
            used[key] = now
            last.update(dict.fromkeys(owners, now))
        elif key in used:
            order.remove(key)
            del used[key]
        order.check_integrity(frozenset(used))

    def turn(key: bytes) -> tuple[int, int]:
        owners = {name for name, made in documents.items() if key in made} or {key}
        return max(last[owner] for owner in owners), used[key]

    assert list(order.least()) == sorted(used, key=turn)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("use"), KEYS),
            st.tuples(st.sampled_from(NAMES), st.none() | st.frozensets(KEYS)),
        ),
        max_size=30,
    )
)
def test_documents_are_torn_one_after_another(
    steps: list[tuple[str, bytes | frozenset[bytes] | None]],
) -> None:
    """Whatever documents were made of before: wherever eviction stops, at most one of them has
    lost a block and still has one of its own."""
    order = Recency()
    documents: Made = {}
    here: set[bytes] = set()
    for name, given_ in steps:
        if isinstance(given_, bytes):
            order.use(given_)
            here.add(given_)
        elif given_ is None:
            left = documents.pop(name, frozenset())
            others = frozenset[bytes]().union(*documents.values())
            assert set(order.forget(name)) == left - others
        else:
            order.enrol(name, given_)
            documents[name] = given_
        order.check_integrity(frozenset(here))
    assert set(order.documents) == set(documents)
    going = list(order.least())
    assert sorted(going) == sorted(here)
    own = {
        name: made.difference(*(other for key, other in documents.items() if key != name))
        for name, made in documents.items()
    }
    for cut in range(len(going)):
        gone, left = set(going[:cut]), set(going[cut:])
        torn = [name for name, made in documents.items() if made & gone and own[name] & left]
        assert len(torn) <= 1
