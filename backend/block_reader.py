"""Gets blocks' KV into the pool: from the disk if it is there, else by reading their tokens.

Several blocks are read in one pass of the model. Knows no scheduling. Owned by the engine's thread.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from backend.block_group import GroupedBlock, Place
from backend.reading import DocumentReading
from backend.runner import Runner
from kvstore.errors import PoolExhausted
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS


class BlockReader:
    """Store and runner together."""

    def __init__(self, store: KVStore, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    def read(self, reading: DocumentReading, indexes: Sequence[int]) -> int:
        """Have the KV of these blocks in the pool, or of the first of them where there is no room
        for all at once. When blocks are chained, each must come after those that it sees. Returns
        the tokens that went through the model. Raises PoolExhausted."""
        reading.at_work = True
        try:
            return self._read(reading, indexes)
        finally:
            reading.at_work = False

    def _read(self, reading: DocumentReading, indexes: Sequence[int]) -> int:
        missing: dict[bytes, int] = {}
        for index in indexes:
            token_ids, key = reading.tokens_of(index), reading.keys[index]
            if key in missing:
                # The same text twice: it will be found in the pool.
                continue
            if self._store.lookup(key, token_ids) or self._store.restore(key, token_ids):
                reading.passed(index)
            else:
                missing[key] = index
        read = self._compute_what_fits(reading, tuple(missing.values()))
        computed = sum(len(reading.tokens_of(index)) for index in read)
        # First, since whoever is told "done" is told how many as well.
        reading.computed_tokens += computed
        for index in read:
            reading.passed(index)
        reading.notify()
        return computed

    def _compute_what_fits(
        self, reading: DocumentReading, group: tuple[int, ...]
    ) -> tuple[int, ...]:
        """Read the blocks, or the first of them. Returns those that were read."""
        if reading.document.anchors and not self._store.pool.format.plain:
            # An anchor is seen as its page holds it, in whatever groups blocks are read: so its
            # page must be there before the next block is.
            group = group[:1]
        while group:
            try:
                self._compute(reading, group)
                break
            except (PoolExhausted, torch.OutOfMemoryError):
                if len(group) == 1:
                    raise
            group = group[: len(group) // 2]
        return group

    def _compute(self, reading: DocumentReading, group: tuple[int, ...]) -> None:
        for earlier in reading.needed_before(max(group)):
            key = reading.keys[earlier]
            if earlier not in group and not self._store.contains(key):
                self._store.restore(key, reading.tokens_of(earlier))
        counts = [-(-len(reading.tokens_of(index)) // PAGE_TOKENS) for index in group]
        pages = self._store.reserve(sum(counts) * PAGE_TOKENS)
        ends = [sum(counts[: at + 1]) for at in range(len(counts))]
        own = {
            index: pages[end - count : end]
            for index, count, end in zip(group, counts, ends, strict=True)
        }
        try:
            self._run(reading, own)
        except BaseException:
            self._store.abandon(pages)
            raise
        if reading.ends_with(group):
            # "Done" is told when it is.
            self._runner.settle()
        for index in group:
            self._store.commit(reading.keys[index], reading.tokens_of(index), own[index])

    def _run(self, reading: DocumentReading, own: dict[int, tuple[int, ...]]) -> None:
        """Read blocks into their own pages."""
        anchors = self._places(reading, own)
        sinks = reading.document.sinks
        first = next(iter(own))
        if len(own) == 1 and len(reading.tokens_of(first)) > self._runner.longest_grouped:
            self._runner.read_block(reading.tokens_of(first), sinks, anchors, own[first])
            return
        blocks = [
            GroupedBlock(reading.tokens_of(index), pages, len(reading.anchors_before(index)))
            for index, pages in own.items()
        ]
        self._runner.read_blocks(blocks, sinks, anchors)

    def _places(self, reading: DocumentReading, own: dict[int, tuple[int, ...]]) -> list[Place]:
        """Where the anchors before the last of the blocks are, in document order."""
        places = []
        for block, page, slot in map(reading.locate, reading.anchors_before(max(own))):
            pages = own.get(block) or self._store.block(reading.keys[block]).pages
            places.append((pages[page], slot))
        return places
