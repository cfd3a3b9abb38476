"""A document on its way into the KV store: its blocks' keys and what is still to be read."""

from __future__ import annotations

import hashlib
import threading
from array import array
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterable, Sequence

from backend.errors import RequestTooLarge
from backend.types import DocumentTokens, ReadProgress
from kvstore.keys import block_key
from kvstore.store import KVStore
from kvstore.tiers.types import DocumentLayout
from kvstore.types import PAGE_TOKENS


class DocumentReading:
    """One document known to the engine.

    `keys[i]` names the KV of block i; `pages` is what all of it takes in the pool. `wanted` says
    that all of it shall be read; without it only the blocks that a question needs are. A block on
    the disk counts as read. A wanted block is read once for this reading, even if a question's
    blocks push it out of the store afterwards: else the two could read each other out for ever.
    What is wanted is "queued" until it is `begun`, then "reading", and "done" once nothing is left
    of it; it never goes back, whatever has to make room. Counters change in the engine's thread;
    `progress` may be asked for from any.
    """

    def __init__(
        self, document: DocumentTokens, model: str, kv_format: str, store: KVStore
    ) -> None:
        self.document = document
        self.keys = _block_keys(document, model, kv_format)
        self.pages = _pages(document, self.keys)
        self.wanted = False
        self.begun = False
        self.cancelled = False
        self.error = ""
        self.computed_tokens = 0
        self.at_work = False
        self.arrival = 0
        self.changed = threading.Condition()
        self._starts = [first for first, _ in document.blocks]
        self._store = store
        self._left = deque(range(len(self.keys)))
        # A block that was found lacking, so that those before it are not looked up every time.
        self._lacking: int | None = None

    def want(self, first_blocks: Sequence[int] = ()) -> None:
        """All of it shall be read, `first_blocks` (and what they need) before the rest. Raises
        RequestTooLarge for a block that isn't there."""
        first: dict[int, None] = {}
        for index in first_blocks:
            if not 0 <= index < len(self.keys):
                raise RequestTooLarge(f"Block {index} is not among the {len(self.keys)} blocks")
            first.update(dict.fromkeys([*self.needed_before(index), index]))
        self._left = deque(dict.fromkeys([*first, *range(len(self.keys))]))
        self.wanted = True

    def next_left(self, tokens: int) -> tuple[int, ...]:
        """The wanted blocks to read next, see `fitting`; none when nothing is left."""
        while self._left and self._store.available(self.keys[self._left[0]]):
            self._left.popleft()
        # What a chained block sees may have gone: a question had no room otherwise.
        before = self.needed_before(self._left[0]) if self._left else []
        if gone := [index for index in before if not self._store.available(self.keys[index])]:
            return self.fitting(gone, tokens)
        left = (index for index in self._left if not self._store.available(self.keys[index]))
        return self.fitting(left, tokens)

    def nothing_left(self) -> bool:
        """Whether no wanted block is to be read any more. Once it is so it stays so; until then a
        block that is there now and goes before its turn is read again."""
        if self._lacking is not None and not self._store.available(self.keys[self._lacking]):
            return not self._left
        missing = (one for one in self._left if not self._store.available(self.keys[one]))
        self._lacking = next(missing, None)
        if self._lacking is None:
            self._left.clear()
        return not self._left

    def keep_recent(self) -> None:
        """Have its blocks make room after those of all documents that were used before."""
        self._store.use_document(self.document.key)

    def fitting(self, indexes: Iterable[int], tokens: int) -> tuple[int, ...]:
        """The first of the given blocks, up to `tokens` tokens together but at least one."""
        chosen: list[int] = []
        for index in indexes:
            first, last = self.document.blocks[index]
            tokens -= last - first
            if chosen and tokens < 0:
                break
            chosen.append(index)
        return tuple(chosen)

    def passed(self, index: int) -> None:
        """Block `index` needs no more reading here. One that was read for a question before this
        document is `begun` may be gone when it is."""
        if index == self._lacking:
            self._lacking = None
        if not self.begun or self.cancelled or self.error:
            return
        if self._left and self._left[0] == index:
            self._left.popleft()
        elif index in self._left:
            self._left.remove(index)

    def ends_with(self, indexes: Iterable[int]) -> bool:
        """Whether nothing that is wanted is left beside these blocks."""
        return self.wanted and set(self._left) <= set(indexes)

    def missing(self, indexes: range | list[int]) -> list[int]:
        """Those of the given blocks that have no KV in the pool."""
        return [index for index in indexes if not self._store.contains(self.keys[index])]

    def tokens_of(self, index: int) -> tuple[int, ...]:
        """Token ids of block `index`."""
        first, last = self.document.blocks[index]
        return self.document.token_ids[first:last]

    def size_of(self, indexes: Iterable[int]) -> int:
        """Tokens of these blocks together."""
        blocks = self.document.blocks
        return sum(blocks[index][1] - blocks[index][0] for index in indexes)

    def blocks_of(self, first: int, last: int) -> list[int]:
        """Indexes of the blocks that hold tokens of [first, last)."""
        if last <= 0 or first >= len(self.document.token_ids):
            return []
        return list(range(max(bisect_right(self._starts, first) - 1, 0),
                          bisect_left(self._starts, last)))  # fmt: skip

    def needed_before(self, index: int) -> list[int]:
        """Blocks whose KV must be there before block `index` can be read."""
        return list(range(index)) if self.document.anchors else []

    def anchors_before(self, index: int) -> list[int]:
        """Document positions of the anchors of all blocks before `index`."""
        return [place for anchors in self.document.anchors[:index] for place in anchors]

    def locate(self, position: int) -> tuple[int, int, int]:
        """(block, page in the block, token in the page) of a document position."""
        if not 0 <= position < len(self.document.token_ids):
            raise ValueError(f"position {position} is outside the document")
        index = bisect_right(self._starts, position) - 1
        page, slot = divmod(position - self._starts[index], PAGE_TOKENS)
        return index, page, slot

    def layout(self) -> DocumentLayout:
        """The document as the disk tier sees it."""
        document = self.document
        return DocumentLayout(
            document.key, self.keys, document.blocks, document.token_ids, document.sinks
        )

    def progress(self) -> ReadProgress:
        """Where reading stands; the tokens that are read are counted in the store itself, and are
        fewer again when blocks make room."""
        # One that waits may be all there, and is not when its turn comes: the engine's thread says.
        # Asked before the count, which would miss what is read while it goes on.
        over = self.wanted and not self._left
        read = sum(
            end - start
            for key, (start, end) in zip(self.keys, self.document.blocks, strict=True)
            if self._store.available(key)
        )
        total = len(self.document.token_ids)
        if over or (not self.wanted and read == total):
            status = "done"
        elif self.error:
            status = "failed"
        elif self.cancelled:
            status = "cancelled"
        else:
            begun = self.begun if self.wanted else self.computed_tokens > 0
            status = "reading" if begun else "queued"
        return ReadProgress(
            key=self.document.key,
            read_tokens=read,
            total_tokens=total,
            computed_tokens=self.computed_tokens,
            status=status,  # type: ignore[arg-type]
            error=self.error,
            at_work=self.at_work,
        )

    def notify(self) -> None:
        """Wake those who wait for progress."""
        with self.changed:
            self.changed.notify_all()


def _pages(document: DocumentTokens, keys: Iterable[bytes]) -> int:
    # A text that stands in two blocks is read once.
    sizes = {key: last - first for key, (first, last) in zip(keys, document.blocks, strict=True)}
    return sum(-(-size // PAGE_TOKENS) for size in sizes.values())


def _block_keys(document: DocumentTokens, model: str, kv_format: str) -> tuple[bytes, ...]:
    keys = []
    context = b""
    for index, (first, last) in enumerate(document.blocks):
        key = block_key(
            model=model,
            kv_format=kv_format,
            # No document has the empty owner, so what is shared meets only what is shared.
            owner="" if document.shared else document.owner,
            sinks=document.sinks,
            token_ids=document.token_ids[first:last],
            context=context,
        )
        keys.append(key)
        if document.anchors:
            # Chained: a block depends on all before it and on which of their tokens it sees.
            chosen = array("q", document.anchors[index]).tobytes()
            context = hashlib.sha256(context + key + chosen).digest()
    return tuple(keys)
