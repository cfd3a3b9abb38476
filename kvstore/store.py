"""KVStore: blocks by content key over the page pool, least recently used evicted first, with a
disk tier behind it if one is attached.

Knows no model and no scheduling. Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Iterable, Sequence

import torch

from kvstore.errors import BlockEvicted, IntegrityError, PoolExhausted
from kvstore.formats.types import PageFormat
from kvstore.pool import PagePool
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.types import DocumentLayout
from kvstore.types import PAGE_TOKENS, Block, KVShape, PageRef, PageTable, StoreCounters

_log = logging.getLogger(__name__)


class KVStore:
    """Blocks that have been read, and the pages that hold them.

    A block that somebody holds (`hold`) is never dropped; one that was to be dropped meanwhile goes
    when it is let go. A document may say which blocks it is made of (`enrol`), so that those it
    shares outlive it. `reserve` evicts what nobody holds, the
    least recently used first, until the pages fit; `commit` makes a written block findable. With a
    disk, blocks of enrolled documents are copied there (`spill`) and come back by `restore`.
    """

    def __init__(
        self,
        shape: KVShape,
        pages: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        form: PageFormat | None = None,
    ) -> None:
        """See `PagePool`."""
        self.pool = PagePool(shape, pages, dtype, device, form)
        # Least recently used first.
        self._blocks: OrderedDict[bytes, Block] = OrderedDict()
        self._holds: dict[bytes, int] = {}
        self._doomed: set[bytes] = set()
        self._documents: dict[str, frozenset[bytes]] = {}
        # In how many documents a block stands.
        self._shares: Counter[bytes] = Counter()
        self._hits = 0
        self._misses = 0
        self._evicted = 0
        self._disk: DiskTier | None = None
        # Blocks whose documents lack them on the disk, longest there first.
        self._unsaved: OrderedDict[bytes, None] = OrderedDict()

    def attach(self, disk: DiskTier) -> None:
        """Keep blocks on this disk from now on. Its stamp must be of this pool's pages."""
        self._disk = disk

    @property
    def disk(self) -> DiskTier | None:
        """The disk tier, if there is one."""
        return self._disk

    @property
    def counters(self) -> StoreCounters:
        """Hits, misses and evictions so far."""
        return StoreCounters(self._hits, self._misses, self._evicted)

    def lookup(self, key: bytes, token_ids: Sequence[int]) -> Block | None:
        """The block of this key, now the most recently used, or None.

        A block whose tokens differ from `token_ids` is a miss, however its key came about.
        """
        block = self._blocks.get(key)
        if block is None or block.token_ids != tuple(token_ids):
            self._misses += 1
            return None
        self._blocks.move_to_end(key)
        self._hits += 1
        return block

    def block(self, key: bytes) -> Block:
        """The block of a key that was there; counts as neither hit nor use.

        Raises BlockEvicted when it had to make room meanwhile.
        """
        try:
            return self._blocks[key]
        except KeyError:
            raise BlockEvicted(self.pool.total) from None

    def contains(self, key: bytes) -> bool:
        """Whether the block is in the pool; counts as neither hit nor use."""
        return key in self._blocks

    def available(self, key: bytes) -> bool:
        """Whether the block needs no reading: it is in the pool or on the disk. Safe from any
        thread."""
        return key in self._blocks or (self._disk is not None and self._disk.contains(key))

    def fetch(self, keys: Sequence[bytes]) -> list[bytes]:
        """Have the disk fetch those of the blocks that it has. Returns those that can be worked on
        now: fetched already, or on no disk."""
        if self._disk is None:
            return list(keys)
        self._disk.request(keys)
        return [key for key in keys if self._disk.arrived(key) or not self._disk.contains(key)]

    def restore(self, key: bytes, token_ids: Sequence[int]) -> Block | None:
        """Bring the block back from the disk, waiting for it unless it was fetched. None when it is
        not there or not fit for use.

        Raises PoolExhausted when held blocks leave too few pages.
        """
        raw = None if self._disk is None else self._disk.take(key, token_ids)
        if raw is None:
            return None
        pages = self.reserve(len(token_ids))
        try:
            self.pool.import_pages(pages, raw)
        except BaseException:
            self.abandon(pages)
            raise
        return self.commit(key, token_ids, pages)

    def spill(self) -> bool:
        """Hand the disk a copy of one block that it lacks. False: none is left, or the disk has no
        room for it yet and calls its `wake` when it has."""
        if self._disk is None:
            return False
        for key in self._disk.uncopied():
            if key in self._blocks:
                self._unsaved[key] = None
        while self._unsaved:
            key = next(iter(self._unsaved))
            if self._save(key):
                return True
            if key in self._unsaved:
                return False
        return False

    def reserve(self, tokens: int) -> tuple[int, ...]:
        """Pages for `tokens` tokens, evicting as needed.

        Raises PoolExhausted, evicting nothing, when held blocks leave too few.
        """
        needed = -(-tokens // PAGE_TOKENS)
        evictable = sum(
            len(block.pages) for key, block in self._blocks.items() if not self._holds.get(key)
        )
        if needed > self.pool.free + evictable:
            raise PoolExhausted(
                needed, self.pool.total - self.pool.free - evictable, self.pool.total
            )
        for key in list(self._blocks):
            if self.pool.free >= needed:
                break
            if not self._holds.get(key):
                self._save_before_eviction(key)
                self._drop(key)
                self._evicted += 1
        return self.pool.allocate(needed)

    def commit(self, key: bytes, token_ids: Sequence[int], pages: tuple[int, ...]) -> Block:
        """Make reserved and fully written pages findable under `key`."""
        if key in self._blocks:
            # The same content was read twice at once: keep the first, give these pages back.
            self.pool.release(pages)
            return self._blocks[key]
        block = Block(key, tuple(token_ids), pages)
        self._blocks[key] = block
        if self._disk is not None and self._disk.lacks(key):
            self._unsaved[key] = None
        return block

    def abandon(self, pages: tuple[int, ...]) -> None:
        """Give back reserved pages that were not committed."""
        self.pool.release(pages)

    def hold(self, key: bytes) -> None:
        """Keep the block from eviction until `unhold`."""
        if key not in self._blocks:
            raise IntegrityError("a block is held that isn't there")
        self._holds[key] = self._holds.get(key, 0) + 1
        if self._disk is not None:
            self._disk.used(key)

    def unhold(self, key: bytes) -> None:
        """Undo one `hold`."""
        count = self._holds.get(key, 0)
        if count == 0:
            raise IntegrityError("a block is let go more often than it was held")
        if count == 1:
            del self._holds[key]
            if key in self._doomed:
                self._doomed.discard(key)
                self._drop(key)
        else:
            self._holds[key] = count - 1

    def forget(self, key: bytes) -> bool:
        """Drop the block, now or, when it is held, as soon as it is let go. Returns whether it is
        gone."""
        if self._holds.get(key):
            self._doomed.add(key)
            return False
        if key in self._blocks:
            self._drop(key)
        return True

    def enrol(
        self, document: str, keys: Iterable[bytes], layout: DocumentLayout | None = None
    ) -> None:
        """The document is made of these blocks, whether they are there yet or not. Enrolling it
        again replaces what it was made of. With a `layout` they are kept on the disk, if there is
        one."""
        self._documents.setdefault(document, frozenset())
        blocks = frozenset(keys)
        self._shares.update(blocks)
        self._shares.subtract(self._documents[document])
        self._shares = +self._shares
        self._documents[document] = blocks
        self._doomed -= blocks
        if self._disk is not None and layout is not None:
            self._disk.enrol(layout)
            for key in layout.keys:
                if key in self._blocks and self._disk.lacks(key):
                    self._unsaved[key] = None

    def forget_document(self, document: str) -> None:
        """Forget the document's blocks but for those that another document is made of, and its
        files on the disk. One that was not enrolled has no blocks here."""
        if self._disk is not None:
            self._disk.forget(document)
        for key in self._documents.pop(document, frozenset()):
            self._shares[key] -= 1
            if not self._shares[key]:
                del self._shares[key]
                self.forget(key)

    def check_integrity(self) -> None:
        """Raise IntegrityError unless pool, blocks and holds agree. No reservation may be open."""
        self.pool.check_integrity()
        held = sum(len(block.pages) for block in self._blocks.values())
        if held + self.pool.free != self.pool.total:
            raise IntegrityError(
                f"{self.pool.total} pages, {held} in blocks, {self.pool.free} free: some are lost"
            )
        for key in self._holds:
            if key not in self._blocks:
                raise IntegrityError("a held block is gone")
        if not self._doomed <= self._holds.keys():
            raise IntegrityError("a block that nobody holds waits to be dropped")
        if self._shares != Counter(key for keys in self._documents.values() for key in keys):
            raise IntegrityError("the shares of blocks don't agree with the documents")
        if not self._unsaved.keys() <= self._blocks.keys():
            raise IntegrityError("a block that is gone waits to be saved")
        if self._disk is not None:
            self._disk.check_integrity()

    def _drop(self, key: bytes) -> None:
        self._unsaved.pop(key, None)
        self.pool.release(self._blocks.pop(key).pages)

    def _save(self, key: bytes) -> bool:
        """Copy an unsaved block to the disk's queue. Otherwise it stays unsaved if the disk has no
        room, and is nobody's any more if not."""
        if self._disk is None or not self._disk.lacks(key):
            self._unsaved.pop(key, None)
            return False
        block = self._blocks[key]
        if not self._disk.room(len(block.pages) * self.pool.page_bytes):
            return False
        del self._unsaved[key]
        try:
            raw = self.pool.export_pages(block.pages, len(block.token_ids))
        except RuntimeError as error:
            # No memory for the copy, say. The block is read again after a restart; requests go on.
            _log.warning("a block is not kept on disk: %s", error)
            self._disk.missed("copy")
            return False
        self._disk.save(key, raw.numpy().data.cast("B"))
        return True

    def _save_before_eviction(self, key: bytes) -> None:
        if self._disk is not None and self._disk.lacks(key):
            self._unsaved[key] = None
            if not self._save(key):
                self._disk.missed("pressure")


def block_pages(block: Block, first: int, last: int) -> tuple[PageRef, ...]:
    """Page references of the block's tokens [first, last), rounded outwards to whole pages."""
    size = len(block.token_ids)
    refs = []
    for slot in range(first // PAGE_TOKENS, -(-min(last, size) // PAGE_TOKENS)):
        refs.append(PageRef(block.pages[slot], 0, min(PAGE_TOKENS, size - slot * PAGE_TOKENS)))
    return tuple(refs)


def page_table(parts: Sequence[tuple[Block, int, int]]) -> PageTable:
    """The page list of `(block, first, last)` parts in the given order. A page that an earlier
    part already holds is not repeated."""
    seen: set[int] = set()
    refs = []
    for block, first, last in parts:
        for ref in block_pages(block, first, last):
            if ref.page not in seen:
                seen.add(ref.page)
                refs.append(ref)
    return PageTable(tuple(refs))
