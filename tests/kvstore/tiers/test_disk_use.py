"""Which documents the disk drops first, and what happens when a block can't be copied there."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from kvstore.errors import BadKVFile
from kvstore.keys import block_key
from kvstore.store import KVStore
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.document_file import DocumentFile
from kvstore.tiers.types import DocumentLayout, Stamp
from kvstore.types import PAGE_TOKENS, KVShape

SHAPE = KVShape(layers=1, kv_heads=1, head_dim=4)
STAMP = Stamp("model", "float32", 1 * 2 * PAGE_TOKENS * 4 * 4)
ROOM = 3 * 9_000
"""Three documents of one block, with their headers."""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[KVStore]:
    made = KVStore(SHAPE, 16, torch.float32)
    made.attach(DiskTier(tmp_path, STAMP, ROOM))
    yield made
    assert made.disk is not None
    made.disk.close()


def take_in(store: KVStore, number: int) -> bytes:
    """A document of one block is read and written; its key."""
    ids = tuple(range(number * 1000, number * 1000 + PAGE_TOKENS))
    key = block_key(model="m", kv_format="f", owner="o", sinks=(), token_ids=ids)
    layout = DocumentLayout(f"d{number}", (key,), ((0, len(ids)),), ids)
    store.enrol(layout.document, layout.keys, layout)
    pages = store.reserve(len(ids))
    values = torch.rand((len(ids), 1, 4), generator=torch.Generator().manual_seed(number))
    store.pool.write(pages, 0, values, -values)
    store.commit(key, ids, pages)
    while store.spill():
        pass
    assert store.disk is not None and store.disk.settle()
    return key


def test_a_document_that_is_asked_from_memory_stays_on_the_disk(store: KVStore) -> None:
    asked = take_in(store, 0)
    others = []
    for number in range(1, 5):
        store.hold(asked)
        store.unhold(asked)
        others.append(take_in(store, number))
    assert store.disk is not None
    assert store.disk.contains(asked)
    assert not store.disk.contains(others[0]), "there was no room for all"


def test_a_block_that_cannot_be_copied_is_left_out(
    store: KVStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("no memory for the copy")

    with monkeypatch.context() as patch:
        patch.setattr(store.pool, "export_pages", full)
        lost = take_in(store, 0)
    assert store.disk is not None
    assert not store.disk.contains(lost)
    assert store.disk.counters.unsaved["copy"] == 1
    assert store.disk.contains(take_in(store, 1)), "the next one is kept"
    store.check_integrity()


@pytest.mark.parametrize("harm", ["damaged", "deleted"])
def test_a_block_whose_copy_fails_is_saved_from_memory(store: KVStore, harm: str) -> None:
    """A second document shares the block, and the first one's file goes before it was copied."""
    disk = store.disk
    assert disk is not None
    key = take_in(store, 0)
    woken = threading.Event()
    disk._wake = woken.set
    ids = store.block(key).token_ids
    read = DocumentFile.read

    def gone(file: DocumentFile, index: int) -> tuple[bytearray, array[int]]:
        if harm == "damaged":
            raise BadKVFile(file.data, "missing", "it is gone")
        disk.forget("d0")
        return read(file, index)

    layout = DocumentLayout("other", (key,), ((0, len(ids)),), ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DocumentFile, "read", gone)
        store.enrol(layout.document, layout.keys, layout)
        assert disk.settle()
    assert not disk.contains(key)
    assert woken.is_set(), "the engine must come and save it"
    while store.spill():
        pass
    assert disk.settle()
    assert disk.contains(key)
    store.check_integrity()


def test_a_squeeze_of_memory_ends_neither_of_the_threads(
    store: KVStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = store.disk
    assert disk is not None
    kept = take_in(store, 0)

    def squeezed(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(DocumentFile, "write", squeezed)
        lost = take_in(store, 1)
    assert not disk.contains(lost) and disk.counters.unsaved["error"] == 1
    with monkeypatch.context() as patch:
        patch.setattr(DocumentFile, "read", squeezed)
        disk.request([kept])
        assert disk.settle()
    later = take_in(store, 2)
    assert disk.contains(later), "the writer lives"
    assert disk.take(kept, tuple(range(PAGE_TOKENS))) is not None, (
        "the reader lives, and nothing was thrown away"
    )
