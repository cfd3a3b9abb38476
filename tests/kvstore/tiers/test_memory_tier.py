"""Evicted blocks in host memory: back to the last bit, or as their smaller format gives them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kvstore.errors import IntegrityError
from kvstore.formats import FORMATS, FormatName, Part, page_format
from kvstore.pool import PagePool, page_bytes
from kvstore.store import KVStore
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.memory import MemoryTier
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS, KVShape

SHAPE = KVShape(layers=3, kv_heads=2, head_dim=64)
PARTS: tuple[Part, Part] = (0, 1)
AGED: tuple[FormatName, ...] = ("bf16", "int8", "fp8_tokens32", "int4")


def make_store(
    pages: int, host_pages: int, form: FormatName = "auto", aged: FormatName | None = None
) -> KVStore:
    store = KVStore(SHAPE, pages, torch.float32, form=page_format(form, torch.float32))
    store.pool.data.view(torch.uint8).fill_(255)
    smaller = None if aged is None else page_format(aged, torch.float32)
    size = store.pool.page_bytes if smaller is None else page_bytes(SHAPE, smaller)
    store.attach_memory(MemoryTier(store.pool, host_pages * size, smaller))
    return store


def ids(number: int, tokens: int) -> tuple[int, ...]:
    return tuple(range(number * 1000, number * 1000 + tokens))


def put(store: KVStore, number: int, tokens: int = 150) -> bytes:
    """A block is read: three pages, the last one partly filled."""
    key = f"block {number}".encode()
    random = torch.Generator().manual_seed(number)
    pages = store.reserve(tokens)
    for layer in range(SHAPE.layers):
        keys, values = torch.randn((2, tokens, SHAPE.kv_heads, SHAPE.head_dim), generator=random)
        store.pool.write(pages, layer, keys, values)
    store.commit(key, ids(number, tokens), pages)
    return key


def content(store: KVStore, key: bytes) -> torch.Tensor:
    block = store.block(key)
    places = [(block.pages[at // 64], at % 64) for at in range(len(block.token_ids))]
    return torch.stack(store.pool.gather_tokens(places))


def evict(store: KVStore) -> None:
    """Everything that nobody holds."""
    store.abandon(store.reserve(store.pool.total * PAGE_TOKENS))


def counted(store: KVStore) -> tuple[int, int]:
    """Blocks that came back, and that were kept."""
    assert store.memory is not None
    return store.memory.counters.hits, store.memory.counters.kept


@pytest.mark.parametrize("tokens", [1, 64, 150, 192])
@pytest.mark.parametrize("form", FORMATS)
def test_in_the_same_format_a_block_comes_back_to_the_last_bit(
    form: FormatName, tokens: int
) -> None:
    store = make_store(4, 8, form)
    key = put(store, 1, tokens)
    before = content(store, key)
    evict(store)
    assert not store.contains(key) and store.available(key)
    store.pool.data.view(torch.uint8).fill_(255)
    block = store.restore(key, ids(1, tokens))
    assert block is not None and block.exact
    assert torch.equal(content(store, key), before)
    assert counted(store) == (1, 1)
    store.check_integrity()


@pytest.mark.parametrize(
    ("form", "aged"), [*(("auto", aged) for aged in AGED), ("bf16", "int8"), ("int8", "int4")]
)
def test_an_aged_block_is_what_its_format_gives_back_and_no_worse_the_next_time(
    form: FormatName, aged: FormatName
) -> None:
    store = make_store(4, 8, form, aged)
    key = put(store, 1)
    before = content(store, key)
    seen = []
    for _ in range(3):
        evict(store)
        block = store.restore(key, ids(1, 150))
        assert block is not None and not block.exact
        seen.append(content(store, key))
    pool = page_format(form, torch.float32)
    smaller = page_format(aged, torch.float32)
    for part in PARTS:
        # As pages: [layers, heads, pages, 64, channels], the last page filled with the last token.
        rows = torch.cat((before[part], before[part][:, :, -1:].expand(-1, -1, 42, -1)), 2)
        rows = rows.unflatten(2, (3, PAGE_TOKENS))
        for codec in (smaller, pool):
            rows = codec.decode(codec.encode(rows, part), part, SHAPE.head_dim, torch.float32)
        assert torch.equal(seen[0][part], rows.flatten(2, 3)[:, :, :150])
    assert not torch.equal(seen[0], before)
    assert torch.equal(seen[1], seen[0]) and torch.equal(seen[2], seen[0])
    assert counted(store) == (3, 1), "it was rounded once"


@pytest.mark.parametrize("aged", [None, "int8"])
def test_latents_come_back_too(aged: FormatName | None) -> None:
    shape = KVShape(layers=2, kv_heads=1, head_dim=96, latent=64)
    store = KVStore(shape, 4, torch.float32)
    form = None if aged is None else page_format(aged, torch.float32)
    store.attach_memory(MemoryTier(store.pool, 1 << 20, form))
    pages = store.reserve(100)
    rows = torch.randn((100, 1, 96), generator=torch.Generator().manual_seed(1))
    for layer in range(2):
        store.pool.write(pages, layer, rows, rows[..., :64])
    key = b"latent"
    store.commit(key, ids(1, 100), pages)
    places = [(pages[at // 64], at % 64) for at in range(100)]
    before = store.pool.gather_tokens(places)[0].clone()
    evict(store)
    block = store.restore(key, ids(1, 100))
    assert block is not None and block.exact == (aged is None)
    places = [(block.pages[at // 64], at % 64) for at in range(100)]
    after, values = store.pool.gather_tokens(places)
    largest = before.abs().amax(-1, keepdim=True)
    assert ((after - before).abs() <= (0 if aged is None else largest / 127)).all()
    assert torch.equal(values, after[..., :64])


def test_a_third_of_the_memory_holds_three_times_the_blocks() -> None:
    store = KVStore(SHAPE, 4, torch.bfloat16)
    budget = 24 * store.pool.page_bytes
    form = page_format("int4", torch.bfloat16)
    plain, aged = MemoryTier(store.pool, budget), MemoryTier(store.pool, budget, form)
    pages = [tier.counters.bytes_total // size for tier, size in (
        (plain, store.pool.page_bytes), (aged, page_bytes(SHAPE, form)),
    )]  # fmt: skip
    assert pages[0] == 24 and pages[1] >= 3.3 * 24


def test_an_aged_block_whose_copy_went_is_read_again_and_not_rounded_twice() -> None:
    store = make_store(6, 3, aged="int4")
    first = put(store, 1)
    evict(store)
    assert store.restore(first, ids(1, 150)) is not None
    put(store, 2)
    # Block 1 stays, block 2 goes and takes the tier's only place.
    store.hold(first)
    store.abandon(store.reserve(store.pool.free * PAGE_TOKENS + 150))
    store.unhold(first)
    assert store.memory is not None and first not in store.memory
    evict(store)
    assert store.memory.counters.unkept == {"aged": 1}
    assert store.restore(first, ids(1, 150)) is None
    assert store.counters.lost == {"evicted": 1}
    store.check_integrity()


def test_what_was_used_least_recently_is_dropped_first() -> None:
    store = make_store(3, 9)
    keys = [put(store, number) for number in range(4)]
    memory = store.memory
    assert memory is not None
    assert [key in memory for key in keys] == [True, True, True, False]
    assert store.restore(keys[0], ids(0, 150)) is not None
    put(store, 5)
    assert [key in memory for key in keys] == [True, False, True, True]
    assert memory.counters.dropped == {"budget": 1}
    store.check_integrity()


def test_room_for_a_block_on_its_way_back_may_cost_its_own_copy() -> None:
    store = make_store(3, 3)
    first = put(store, 1)
    before = content(store, first)
    second = put(store, 2)
    assert store.memory is not None and first in store.memory
    # To bring the first back the second must go, and to keep the second the first one's copy.
    assert store.restore(first, ids(1, 150)) is not None
    assert second in store.memory and first not in store.memory
    assert torch.equal(content(store, first), before)
    store.check_integrity()


def test_a_block_larger_than_the_tier_is_not_kept() -> None:
    store = make_store(3, 2)
    key = put(store, 1)
    evict(store)
    assert store.memory is not None and key not in store.memory
    assert store.memory.counters.unkept == {"size": 1}
    assert store.memory.counters.bytes_held == 0


def test_other_tokens_under_the_same_key_do_not_come_back() -> None:
    store = make_store(3, 3)
    key = put(store, 1)
    evict(store)
    assert store.restore(key, ids(2, 150)) is None
    assert store.counters.lost == {"refused": 1}
    assert store.restore(key, ids(1, 150)) is not None


def test_a_deleted_document_leaves_nothing_in_memory() -> None:
    store = make_store(6, 9)
    mine, shared = put(store, 1), put(store, 2)
    store.enrol("mine", (mine, shared))
    store.enrol("other", (shared,))
    evict(store)
    assert store.restore(mine, ids(1, 150)) is not None
    store.hold(mine)
    store.forget_document("mine")
    memory = store.memory
    assert memory is not None
    assert mine not in memory and shared in memory
    store.unhold(mine)
    assert not store.available(mine) and store.available(shared)
    assert memory.counters.dropped == {"forgotten": 1}
    assert store.counters.dropped == {"room": 2, "forgotten": 1}
    store.check_integrity()


def test_a_copy_that_fails_costs_the_block_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = make_store(3, 9)
    lost = put(store, 1)

    def full(*_: object) -> None:
        raise RuntimeError("can't allocate memory")

    with monkeypatch.context() as patch:
        patch.setattr(store.pool, "copy_pages", full)
        kept = put(store, 2)
    evict(store)
    memory = store.memory
    assert memory is not None
    assert lost not in memory and kept in memory
    assert memory.counters.unkept == {"copy": 1}
    store.check_integrity()


@pytest.mark.parametrize("aged", [None, "int4"])
def test_the_disk_gets_what_was_computed_and_nothing_that_aged(
    tmp_path: Path, aged: FormatName | None
) -> None:
    store = make_store(4, 9, aged=aged)
    disk = DiskTier(tmp_path, Stamp("m", "f", store.pool.page_bytes), 64 << 20)
    store.attach(disk)
    try:
        key = put(store, 1)
        evict(store)  # before any document asked for it to be written
        assert store.restore(key, ids(1, 150)) is not None
        store.enrol("d", (key,), DocumentLayout("d", (key,), ((0, 150),), ids(1, 150)))
        while store.spill():
            pass
        assert disk.settle()
        assert disk.contains(key) == (aged is None)
        evict(store)
        assert disk.settle()
        assert disk.contains(key) == (aged is None)
        assert disk.counters.unsaved == ({} if aged is None else {"aged": 1})
        store.check_integrity()
    finally:
        disk.close()


def test_an_exact_copy_on_the_disk_comes_before_an_aged_one(tmp_path: Path) -> None:
    store = make_store(4, 9, aged="int4")
    disk = DiskTier(tmp_path, Stamp("m", "f", store.pool.page_bytes), 64 << 20)
    store.attach(disk)
    memory = store.memory
    assert memory is not None
    try:
        key = put(store, 1)
        before = content(store, key)
        store.enrol("d", (key,), DocumentLayout("d", (key,), ((0, 150),), ids(1, 150)))
        evict(store)  # the disk has not written it yet, so it is aged as well
        assert disk.settle()
        assert key in memory and disk.contains(key)
        block = store.restore(key, ids(1, 150))
        assert block is not None and block.exact
        assert torch.equal(content(store, key), before)
        memory.forget(key)
        evict(store)
        assert key not in memory, "what the disk has is not aged"
        assert store.restore(key, ids(1, 150)) is not None
        disk.forget("d")
        evict(store)
        block = store.restore(key, ids(1, 150))
        assert block is not None and not block.exact, "the disk has lost it"
        assert store.counters.lost == {}
        store.check_integrity()
    finally:
        disk.close()


def test_memory_is_asked_before_the_disk(tmp_path: Path) -> None:
    store = make_store(4, 9)
    disk = DiskTier(tmp_path, Stamp("m", "f", store.pool.page_bytes), 64 << 20)
    store.attach(disk)
    try:
        keys = [put(store, number) for number in (1, 2)]
        for number, key in zip((1, 2), keys, strict=True):
            layout = DocumentLayout(str(number), (key,), ((0, 150),), ids(number, 150))
            store.enrol(layout.document, (key,), layout)
        evict(store)
        assert disk.settle()
        assert store.memory is not None
        store.memory.forget(keys[1])
        assert keys[0] in store.fetch(keys), "whatever the disk has by now"
        assert store.restore(keys[0], ids(1, 150)) is not None
        assert (counted(store)[0], disk.counters.hits) == (1, 0)
        evict(store)
        assert store.restore(keys[1], ids(2, 150)) is not None
        assert (counted(store)[0], disk.counters.hits) == (1, 1)
    finally:
        disk.close()


def test_the_disk_fetches_for_others_too_but_nothing_that_is_nearer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(6, 9)
    disk = DiskTier(tmp_path, Stamp("m", "f", store.pool.page_bytes), 64 << 20)
    store.attach(disk)
    try:
        keys = [put(store, number) for number in (1, 2, 3, 4)]
        assert [store.contains(key) for key in keys] == [False, False, True, True]
        assert store.memory is not None and keys[0] in store.memory
        store.memory.forget(keys[1])
        asked: list[bytes] = []
        monkeypatch.setattr(disk, "request", asked.extend)
        monkeypatch.setattr(disk, "contains", lambda _: True)
        assert store.fetch(keys[:1], keys) == keys[:1]
        assert asked == [keys[1]]
        assert store.fetch(keys[1:2]) == []
    finally:
        disk.close()


def test_a_tier_that_makes_no_sense_is_refused() -> None:
    pool = PagePool(SHAPE, 2, torch.float32, form=page_format("int4", torch.float32))
    with pytest.raises(ValueError, match="not get smaller"):
        MemoryTier(pool, 1 << 20, page_format("int8", torch.float32))
    with pytest.raises(ValueError, match="no page"):
        MemoryTier(pool, pool.page_bytes - 1)
    assert MemoryTier(pool, 1 << 20, page_format("int4", torch.float32)).exact


def test_books_that_do_not_agree_are_noticed() -> None:
    store = make_store(3, 9)
    put(store, 1)
    evict(store)
    memory = store.memory
    assert memory is not None
    memory.check_integrity()
    memory._free.append(memory._free[0])
    with pytest.raises(IntegrityError, match="two places"):
        memory.check_integrity()
