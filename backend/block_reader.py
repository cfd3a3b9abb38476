"""Gets a block's KV into the pool: from the disk if it is there, else by reading its tokens.

Knows no scheduling. Owned by the engine's thread.
"""

from __future__ import annotations

from backend.reading import DocumentReading
from backend.runner import Runner
from kvstore.store import KVStore


class BlockReader:
    """Store and runner together."""

    def __init__(self, store: KVStore, runner: Runner) -> None:
        self._store = store
        self._runner = runner

    def read(self, reading: DocumentReading, index: int) -> int:
        """Have the KV of block `index` in the pool. Returns the tokens that went through the model
        for it. Raises PoolExhausted."""
        token_ids, key = reading.tokens_of(index), reading.keys[index]
        if self._store.lookup(key, token_ids) is not None:
            reading.passed(index)
            return 0
        computed = 0
        if self._store.restore(key, token_ids) is None:
            self._compute(reading, index)
            computed = len(token_ids)
        reading.passed(index)
        reading.computed_tokens += computed
        reading.notify()
        return computed

    def _compute(self, reading: DocumentReading, index: int) -> None:
        token_ids = reading.tokens_of(index)
        for earlier in reading.needed_before(index):
            if not self._store.contains(reading.keys[earlier]):
                self._store.restore(reading.keys[earlier], reading.tokens_of(earlier))
        pages = self._store.reserve(len(token_ids))
        try:
            anchors = [
                (self._store.block(reading.keys[block]).pages[page], slot)
                for block, page, slot in map(reading.locate, reading.anchors_before(index))
            ]
            self._runner.read_block(token_ids, reading.document.sinks, anchors, pages)
        except BaseException:
            self._store.abandon(pages)
            raise
        self._store.commit(reading.keys[index], token_ids, pages)
