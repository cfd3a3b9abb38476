"""When the shelf begins documents: what is told of them then, and what finding them costs."""

from __future__ import annotations

from collections.abc import Collection

import torch

from backend.reading import DocumentReading
from backend.shelf import Shelf
from backend.types import DocumentTokens
from kvstore.room import Room
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape

PAGES = 64


class Asked:
    """A shelf over a store, and the documents for which it asked how much room there is. A block is
    a page."""

    def __init__(self) -> None:
        self.store = KVStore(KVShape(1, 1, 4), PAGES, torch.float32)
        self.shelf = Shelf(self._room)
        self.asked: list[list[str]] = []
        self._texts = 0

    def _room(self, documents: Collection[str]) -> Room:
        self.asked.append(list(documents))
        return self.store.room_for(documents)

    def know(self, key: str, pages: int, owner: str = "") -> DocumentReading:
        self._texts += 1
        blocks = tuple((at * PAGE_TOKENS, (at + 1) * PAGE_TOKENS) for at in range(pages))
        ids = tuple(1000 * self._texts + at for at in range(pages) for _ in range(PAGE_TOKENS))
        document = DocumentTokens(key, ids, blocks, owner=owner)
        reading = DocumentReading(document, "model", "format", self.store)
        self.store.enrol(key, reading.keys)
        return reading

    def give(self, key: str, pages: int, owner: str = "") -> DocumentReading:
        reading = self.know(key, pages, owner)
        reading.want()
        self.shelf.add(reading)
        return reading

    def put(self, reading: DocumentReading, index: int) -> None:
        ids = reading.tokens_of(index)
        self.store.commit(reading.keys[index], ids, self.store.reserve(len(ids)))
        reading.passed(index)

    def step(self) -> None:
        group = self.shelf.next_group(PAGE_TOKENS)
        assert group is not None
        for index in group.indexes:
            self.put(group.reading, index)


def test_a_document_is_being_read_from_its_turn_on() -> None:
    asked = Asked()
    given = [asked.give("first", 60), asked.give("one", 1), asked.give("waits", 60)]
    assert [one.progress().status for one in given] == ["queued"] * 3
    assert asked.shelf.next_group(PAGE_TOKENS) is not None
    told = [one.progress() for one in given]
    assert [state.status for state in told] == ["reading", "reading", "queued"]
    assert [state.read_tokens for state in told] == [0, 0, 0]


def test_room_is_asked_for_once_a_group_however_many_wait() -> None:
    asked = Asked()
    pinned = asked.know("pinned", 8)
    for index in range(8):
        asked.put(pinned, index)
    asked.store.pin("pinned", 3600)
    asked.give("first", 30, "a")
    asked.step()
    asked.step()
    assert not asked.asked, "nobody waits"
    for number in range(20):
        asked.give(f"waits{number}", 30, "bc"[number % 2])
    for _ in range(3):
        asked.step()
    assert asked.asked == [["first"]] * 3
