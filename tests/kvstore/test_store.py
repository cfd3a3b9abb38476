"""Blocks by content: reuse, eviction, holds and books that add up."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstore.errors import BlockEvicted, IntegrityError, PoolExhausted
from kvstore.keys import block_key
from kvstore.store import KVStore, block_pages, page_table
from kvstore.types import PAGE_TOKENS, Block, KVShape, PageRef

SHAPE = KVShape(layers=1, kv_heads=1, head_dim=4)


def make_store(pages: int) -> KVStore:
    return KVStore(SHAPE, pages, torch.float32)


def put(store: KVStore, name: str, tokens: int) -> Block:
    ids = tuple(range(tokens))
    return store.commit(name.encode(), ids, store.reserve(tokens))


def test_least_recently_used_goes_first() -> None:
    store = make_store(3)
    for name in "abc":
        put(store, name, PAGE_TOKENS)
    assert store.lookup(b"a", range(PAGE_TOKENS)) is not None
    put(store, "d", PAGE_TOKENS)
    assert [store.contains(name) for name in (b"a", b"b", b"c", b"d")] == [True, False, True, True]
    assert store.counters.evicted == 1
    store.check_integrity()


def test_held_blocks_stay() -> None:
    store = make_store(2)
    put(store, "a", PAGE_TOKENS)
    put(store, "b", PAGE_TOKENS)
    store.hold(b"a")
    with pytest.raises(PoolExhausted):
        store.reserve(2 * PAGE_TOKENS)
    assert store.contains(b"b"), "a refused reservation evicts nothing"
    put(store, "c", 10)
    assert store.contains(b"a")
    assert not store.contains(b"b")
    store.hold(b"a")
    assert not store.forget(b"a")
    store.unhold(b"a")
    assert store.contains(b"a"), "somebody else holds it still"
    store.unhold(b"a")
    assert not store.contains(b"a"), "forgotten while it was held"
    assert store.forget(b"a")
    with pytest.raises(IntegrityError):
        store.unhold(b"a")
    store.check_integrity()


def test_a_block_that_is_gone_is_told_from_a_full_pool() -> None:
    with pytest.raises(BlockEvicted, match="2 KV pages"):
        make_store(2).block(b"nowhere")


def test_shared_blocks_outlive_one_of_their_documents() -> None:
    store = make_store(4)
    for name in "abc":
        put(store, name, PAGE_TOKENS)
    store.enrol("old", (b"a", b"b", b"b"))
    store.enrol("new", (b"b", b"c"))
    store.forget_document("old")
    assert [store.contains(name) for name in (b"a", b"b", b"c")] == [False, True, True]
    store.check_integrity()
    store.enrol("new", (b"c",))
    store.forget_document("new")
    assert [store.contains(name) for name in (b"b", b"c")] == [True, False]
    store.forget_document("never enrolled")
    store.check_integrity()


def test_a_block_forgotten_while_held_stays_for_a_new_document() -> None:
    store = make_store(1)
    put(store, "a", PAGE_TOKENS)
    store.enrol("old", (b"a",))
    store.hold(b"a")
    store.forget_document("old")
    store.enrol("new", (b"a",))
    store.unhold(b"a")
    assert store.contains(b"a")
    store.check_integrity()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("efh"), st.integers(0, 2), st.sets(st.integers(0, 4)))))
def test_what_a_document_is_made_of_is_there_until_the_last_is_forgotten(
    steps: list[tuple[str, int, set[int]]],
) -> None:
    store = make_store(5)
    documents: dict[str, set[bytes]] = {}
    held: list[bytes] = []
    for action, number, chosen in steps:
        name = f"d{number}"
        if action == "e":
            keys = {str(one).encode() for one in chosen}
            for key in keys:
                if not store.contains(key):
                    put(store, key.decode(), PAGE_TOKENS)
            store.enrol(name, keys)
            documents[name] = keys
        elif action == "f":
            store.forget_document(name)
            documents.pop(name, None)
        elif held:
            store.unhold(held.pop())
        else:
            held = [key for key in documents.get(name, set()) if store.contains(key)]
            for key in held:
                store.hold(key)
        store.check_integrity()
        assert all(store.contains(key) for keys in documents.values() for key in keys)


def test_other_tokens_under_the_same_key_are_a_miss() -> None:
    store = make_store(2)
    put(store, "a", 5)
    assert store.lookup(b"a", (9, 9, 9, 9, 9)) is None
    assert store.lookup(b"a", range(5)) is not None
    assert (store.counters.hits, store.counters.misses) == (1, 1)


def test_second_commit_of_the_same_content_gives_its_pages_back() -> None:
    store = make_store(4)
    first = put(store, "a", 70)
    assert put(store, "a", 70) is first
    assert store.pool.free == 2
    store.check_integrity()


def test_abandoned_pages_return() -> None:
    store = make_store(2)
    store.abandon(store.reserve(100))
    assert store.pool.free == 2


def test_page_list_is_rounded_outwards_without_repeats() -> None:
    block = Block(b"k", tuple(range(150)), (7, 3, 5))
    assert block_pages(block, 70, 80) == (PageRef(3, 0, 64),)
    assert block_pages(block, 60, 150) == (PageRef(7, 0, 64), PageRef(3, 0, 64), PageRef(5, 0, 22))
    table = page_table([(block, 64, 128), (block, 0, 100)])
    assert [ref.page for ref in table.refs] == [3, 7]


def test_everything_counts_in_the_key() -> None:
    base = {
        "model": "m", "kv_format": "f", "owner": "o", "sinks": (1, 2), "token_ids": (3, 4),
    }  # fmt: skip
    changed = [
        base,
        {**base, "model": "n"},
        {**base, "kv_format": "g"},
        {**base, "owner": "p"},
        {**base, "sinks": (1,), "token_ids": (2, 3, 4)},
        {**base, "token_ids": (4, 3)},
        {**base, "context": b"x"},
        {**base, "model": "mf", "kv_format": ""},
    ]
    assert len({block_key(**case) for case in changed}) == len(changed)  # type: ignore[arg-type]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(1, 200)), max_size=40))
def test_no_page_is_lost(steps: list[tuple[int, int]]) -> None:
    store = make_store(6)
    for name, tokens in steps:
        try:
            put(store, f"{name}:{tokens}", tokens)
        except PoolExhausted:
            assert False, "nothing is held, so everything fits"  # noqa: B011
        store.check_integrity()
