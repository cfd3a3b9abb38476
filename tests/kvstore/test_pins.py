"""Pinned documents make room last, for a while, and never at the cost of a request."""

from __future__ import annotations

import pytest
import torch

from kvstore.errors import PinRefused, PoolExhausted
from kvstore.store import KVStore
from kvstore.tiers.types import DocumentLayout
from kvstore.types import PAGE_TOKENS, KVShape


class Hours:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Hours:
    return Hours()


@pytest.fixture
def store(clock: Hours) -> KVStore:
    return KVStore(KVShape(layers=1, kv_heads=1, head_dim=4), 8, torch.float32, clock=clock)


def put(store: KVStore, *names: str) -> None:
    """Blocks of a page each are read."""
    for name in names:
        ids = tuple(range(PAGE_TOKENS))
        store.commit(name.encode(), ids, store.reserve(PAGE_TOKENS))


def there(store: KVStore, names: str) -> str:
    return "".join(name for name in names if store.contains(name.encode()))


def enrol(store: KVStore, document: str, names: str) -> None:
    """A document of these blocks, with a layout."""
    keys = tuple(name.encode() for name in names)
    blocks = tuple((at * PAGE_TOKENS, (at + 1) * PAGE_TOKENS) for at in range(len(keys)))
    ids = tuple(range(PAGE_TOKENS)) * len(keys)
    store.enrol(document, keys, DocumentLayout(document, keys, blocks, ids))


def test_a_pinned_document_goes_after_all_others_until_its_time_is_over(
    store: KVStore, clock: Hours
) -> None:
    enrol(store, "kept", "abc")
    put(store, *"abc", *"vwxyz")
    store.pin("kept", 10)
    assert store.pinned_s("kept") == 10
    put(store, *"ABCDE")
    assert there(store, "abcvwxyz") == "abc"
    clock.now += 9.5
    assert store.pinned_s("kept") == 0.5
    put(store, "F")
    assert there(store, "abcABCDEF") == "abcBCDEF"
    clock.now += 0.5
    assert store.pinned_s("kept") == 0
    put(store, "G")
    assert there(store, "abc") == "bc", "used least recently of all"
    assert store.counters.dropped == {"room": 7}
    store.check_integrity()


def test_blocks_that_come_later_are_pinned_too(store: KVStore) -> None:
    enrol(store, "kept", "ab")
    store.pin("kept", 10)
    put(store, *"ab", *"tuvwxyz")
    assert there(store, "ab") == "ab"


def test_a_pin_keeps_nobody_from_the_room_that_there_is(store: KVStore) -> None:
    enrol(store, "kept", "abcd")
    put(store, *"abcd")
    store.pin("kept", 10)
    for name in (b"a", b"b"):
        store.hold(name)
    pages = store.reserve(6 * PAGE_TOKENS)
    assert there(store, "abcd") == "ab"
    assert store.counters.dropped == {"pinned": 2}
    assert store.counters.evicted == 2
    with pytest.raises(PoolExhausted):
        store.reserve(PAGE_TOKENS)
    store.abandon(pages)


def test_room_is_what_others_that_may_go_leave(store: KVStore, clock: Hours) -> None:
    total = store.pool.total
    for document, names in (("pinned", "ab"), ("idle", "c"), ("shares", "bd")):
        enrol(store, document, names)
    put(store, "a", "b", "c")
    assert store.room_for(["new"]).pages == total
    store.pin("pinned", 10)
    store.hold(b"c")
    assert store.room_for(["new"]).pages == total - 3
    assert store.room_for(["new", "idle"]).pages == total - 2
    assert store.room_for(["shares"]).pages == total - 2
    assert store.room_for(["pinned", "idle"]).pages == total
    room = store.room_for(["new"])
    assert room.shared_with("new") == room.shared_with() == total - 3
    assert room.shared_with("idle") == room.shared_with("shares") == total - 2
    assert room.shared_with("pinned", "shares") == total - 1
    assert room.shared_with("pinned", "shares", "idle") == total
    clock.now += 11
    store.unhold(b"c")
    assert store.room_for(["new"]).pages == total


def test_half_of_the_pool_may_be_pinned_and_shared_blocks_count_once(store: KVStore) -> None:
    enrol(store, "v1", "abc")
    enrol(store, "v2", "abd")
    enrol(store, "large", "ghijk")
    store.pin("v1", 10)
    store.pin("v2", 10)
    with pytest.raises(PinRefused, match="at most 4 of the pool's 8"):
        store.pin("large", 10)
    assert store.pinned_s("large") == 0
    store.pin("v1", 20)
    assert store.pinned_s("v1") == 20, "a pin can be renewed"
    store.unpin("v2")
    store.unpin("v2")
    enrol(store, "small", "g")
    store.pin("small", 10)


def test_what_is_not_known_or_no_time_is_refused(store: KVStore) -> None:
    with pytest.raises(PinRefused, match="not given"):
        store.pin("nobody's", 10)
    enrol(store, "d", "a")
    for time in (0, -1, float("nan"), float("inf")):
        with pytest.raises(PinRefused, match="above 0 seconds"):
            store.pin("d", time)
    store.pin("d", 10)
    store.forget_document("d")
    assert store.pinned_s("d") == 0


def test_a_document_without_a_layout_counts_with_what_is_there(store: KVStore) -> None:
    put(store, *"abcde")
    store.enrol("d", [name.encode() for name in "abcde"])
    with pytest.raises(PinRefused, match="have 5 KV pages"):
        store.pin("d", 10)
