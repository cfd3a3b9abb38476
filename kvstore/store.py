"""KVStore: blocks by content key over the page pool, with a memory tier and a disk tier behind it
where they are attached.

Knows no model and no scheduling. Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain

import torch

from kvstore.errors import BlockEvicted, IntegrityError, PinRefused, PoolExhausted
from kvstore.formats.types import PageFormat
from kvstore.pins import Clock, Pins
from kvstore.pool import PagePool
from kvstore.recency import Recency
from kvstore.room import Room
from kvstore.tally import Eviction, Tally
from kvstore.tiers.disk import DiskTier
from kvstore.tiers.memory import MemoryTier
from kvstore.tiers.types import DocumentLayout
from kvstore.types import PAGE_TOKENS, Block, KVShape, PageRef, PageTable, StoreCounters

_log = logging.getLogger(__name__)

PIN_SHARE = 0.5
"""Of the pool's pages, for all pinned documents together, so that the others have as much."""


class KVStore:
    """Blocks that have been read, and the pages that hold them.

    A block that somebody holds (`hold`) is never dropped; one that was to be dropped meanwhile goes
    when it is let go. A document may say which blocks it is made of (`enrol`), so that those it
    shares outlive it. `reserve` evicts what nobody holds until the pages fit, in the order of
    `kvstore.recency` and pinned documents (`pin`) last; `commit` makes a written block findable.
    Evicted blocks are kept in the memory tier; blocks of enrolled documents are copied to the disk
    (`spill`). They come back by `restore`.
    """

    def __init__(
        self,
        shape: KVShape,
        pages: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        form: PageFormat | None = None,
        clock: Clock = time.monotonic,
    ) -> None:
        """See `PagePool`; pins end by `clock`."""
        self.pool = PagePool(shape, pages, dtype, device, form)
        self._blocks: dict[bytes, Block] = {}
        self._order = Recency()
        self._holds: dict[bytes, int] = {}
        self._doomed: set[bytes] = set()
        self._pins = Pins(clock)
        # Pages of each block, of documents that came with a layout.
        self._sizes: dict[str, dict[bytes, int]] = {}
        self._tally = Tally()
        self._memory: MemoryTier | None = None
        self._disk: DiskTier | None = None
        # Blocks whose documents lack them on the disk, longest there first.
        self._unsaved: OrderedDict[bytes, None] = OrderedDict()

    def attach(self, disk: DiskTier) -> None:
        """Keep blocks on this disk from now on. Its stamp must be of this pool's pages."""
        self._disk = disk

    def attach_memory(self, memory: MemoryTier) -> None:
        """Keep evicted blocks in this memory from now on. It must be made for this pool."""
        self._memory = memory

    @property
    def disk(self) -> DiskTier | None:
        """The disk tier, if there is one."""
        return self._disk

    @property
    def memory(self) -> MemoryTier | None:
        """The memory tier, if there is one."""
        return self._memory

    @property
    def documents(self) -> tuple[str, ...]:
        """Names of the enrolled documents."""
        return self._order.documents

    @property
    def counters(self) -> StoreCounters:
        """What happened so far. Safe from any thread."""
        dropped = dict(self._tally.dropped)
        return StoreCounters(
            hits=self._tally.hits,
            misses=self._tally.misses,
            evicted=dropped.get("room", 0) + dropped.get("pinned", 0),
            dropped=dropped,
            lost=dict(self._tally.lost),
        )

    def lookup(self, key: bytes, token_ids: Sequence[int]) -> Block | None:
        """The block of this key, now the most recently used, or None.

        A block whose tokens differ from `token_ids` is a miss, however its key came about.
        """
        block = self._blocks.get(key)
        if block is None or block.token_ids != tuple(token_ids):
            self._tally.misses += 1
            return None
        self._order.use(key)
        self._tally.hits += 1
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
        """Whether the block needs no reading: it is in the pool or in a tier. Safe from any
        thread."""
        return key in self._blocks or self._in_memory(key) or self._on_disk(key)

    def fetch(self, keys: Sequence[bytes], wanted: Iterable[bytes] | None = None) -> list[bytes]:
        """Have the disk fetch those of the blocks that it is asked for, see `restore`; with
        `wanted` those of these instead that are not in the pool. It fetches nothing else from now
        on and drops what it has fetched of others. Returns those of `keys` that can be worked on
        now: in memory, fetched already, or not on the disk."""
        if self._disk is None:
            return list(keys)
        wanted = keys if wanted is None else wanted
        self._disk.request(
            key
            for key in wanted
            if key not in self._blocks and not self._in_memory(key, exact=True)
        )
        near = {key for key in keys if self._in_memory(key, exact=True)}
        return [
            key
            for key in keys
            if key in near or self._disk.arrived(key) or not self._disk.contains(key)
        ]

    def restore(self, key: bytes, token_ids: Sequence[int]) -> Block | None:
        """Bring the block back: from memory as it was, from the disk, waiting for it unless it was
        fetched, or from memory as it was aged. None, which is counted as lost, when it is in no
        tier or not fit for use.

        Raises PoolExhausted when held blocks leave too few pages.
        """
        seemed = self._in_memory(key) or self._on_disk(key)
        block = None
        if self._in_memory(key, exact=True):
            block = self._from_memory(key, token_ids)
        block = block or self._from_disk(key, token_ids) or self._from_memory(key, token_ids)
        if block is None:
            self._tally.lose(key, seemed)
        return block

    def spill(self) -> bool:
        """Hand the disk a copy of one block that it lacks. False: none is left, or the disk has no
        room for it yet and calls its `wake` when it has."""
        if self._disk is None:
            return False
        for key in self._disk.uncopied():
            self._want_saved(key)
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
        for key, reason in self._victims(needed):
            if self._memory is not None and (self._memory.exact or not self._on_disk(key)):
                self._memory.keep(self._blocks[key])
            self._save_before_eviction(key)
            self._drop(key, reason)
        return self.pool.allocate(needed)

    def commit(
        self, key: bytes, token_ids: Sequence[int], pages: tuple[int, ...], *, exact: bool = True
    ) -> Block:
        """Make reserved and fully written pages findable under `key`."""
        if key in self._blocks:
            # The same content was read twice at once: keep the first, give these pages back.
            self.pool.release(pages)
            return self._blocks[key]
        block = Block(key, tuple(token_ids), pages, exact)
        self._blocks[key] = block
        self._order.use(key)
        self._want_saved(key)
        return block

    def abandon(self, pages: tuple[int, ...]) -> None:
        """Give back reserved pages that were not committed."""
        self.pool.release(pages)

    def hold(self, key: bytes) -> None:
        """Keep the block from eviction until `unhold`."""
        if key not in self._blocks:
            raise IntegrityError("a block is held that isn't there")
        self._holds[key] = self._holds.get(key, 0) + 1
        if self._memory is not None:
            self._memory.used(key)
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
                self._drop(key, "forgotten")
        else:
            self._holds[key] = count - 1

    def forget(self, key: bytes) -> bool:
        """Drop the block and its copy in memory, now or, when it is held, as soon as it is let go.
        Returns whether it is gone."""
        if self._memory is not None:
            self._memory.forget(key)
        if self._holds.get(key):
            self._doomed.add(key)
            return False
        if key in self._blocks:
            self._drop(key, "forgotten")
        return True

    def enrol(
        self, document: str, keys: Iterable[bytes], layout: DocumentLayout | None = None
    ) -> None:
        """The document is made of these blocks, whether they are there yet or not. Enrolling it
        again replaces what it was made of. With a `layout` they are kept on the disk, if there is
        one."""
        blocks = frozenset(keys)
        self._order.enrol(document, blocks)
        self._doomed -= blocks
        if layout is None:
            self._sizes.pop(document, None)
            return
        self._sizes[document] = {
            key: -(-(last - first) // PAGE_TOKENS) for key, first, last in layout.distinct()
        }
        if self._disk is not None:
            self._disk.enrol(layout)
            for key in layout.keys:
                self._want_saved(key)

    def forget_document(self, document: str) -> None:
        """Forget the document's blocks but for those that another document is made of, its pin and
        its files on the disk. One that was not enrolled has no blocks here."""
        if self._disk is not None:
            self._disk.forget(document)
        self._pins.drop(document)
        self._sizes.pop(document, None)
        for key in self._order.forget(document):
            self.forget(key)

    def pin(self, document: str, ttl_s: float) -> None:
        """Evict the document's blocks after those of all others for `ttl_s` seconds from now, those
        too that come later. They still go when a request has no room otherwise, so no pin keeps
        anybody from an answer. Pinning reads nothing, and the tiers don't look at it.

        Raises PinRefused for a document that is not enrolled, a time that is none, and when the
        pinned documents would have more than `PIN_SHARE` of the pool.
        """
        if document not in self._order.documents:
            raise PinRefused("A document is pinned that was not given to the engine")
        pages: dict[bytes, int] = {}
        for name in {*self._pins.documents, document}:
            pages |= self._pages_of(name)
        allowed = int(self.pool.total * PIN_SHARE)
        if sum(pages.values()) > allowed:
            raise PinRefused(
                f"With this one the pinned documents have {sum(pages.values())} KV pages, and at "
                f"most {allowed} of the pool's {self.pool.total} may be pinned: wait until another "
                "pin ends or end it, or raise the KV budget"
            )
        self._pins.set(document, ttl_s)

    def unpin(self, document: str) -> None:
        """End the document's pin, if there is one."""
        self._pins.drop(document)

    def pinned_s(self, document: str) -> float:
        """Seconds until the document's pin ends; 0 when it has none."""
        return self._pins.left(document)

    def use_document(self, document: str) -> None:
        """The document makes room after all that were used before; neither hit nor miss."""
        self._order.use_document(document)

    def room_for(self, documents: Collection[str]) -> Room:
        """Pages that these documents can have together, if only blocks of others make room for
        them that are neither held nor pinned. A block that they share with others is theirs."""
        kept = set(self._holds)
        for name in self._pins.documents:
            kept |= self._order.blocks(name)
        if kept:
            for name in documents:
                kept -= self._order.blocks(name)
        here = [self._blocks[key] for key in kept if key in self._blocks]
        others: dict[str, dict[bytes, int]] = {}
        for block in here:
            for name in self._order.documents_of(block.key):
                others.setdefault(name, {})[block.key] = len(block.pages)
        return Room(self.pool.total - sum(len(block.pages) for block in here), others)

    def check_integrity(self) -> None:
        """Raise IntegrityError unless pool, blocks, holds and tiers agree. No reservation may be
        open."""
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
        self._order.check_integrity(frozenset(self._blocks))
        if not all(key in self._blocks and self._blocks[key].exact for key in self._unsaved):
            raise IntegrityError("a block waits to be saved that is gone or was aged")
        if self._memory is not None:
            self._memory.check_integrity()
        if self._disk is not None:
            self._disk.check_integrity()

    def _in_memory(self, key: bytes, *, exact: bool = False) -> bool:
        """`exact`: to the last bit."""
        memory = self._memory
        return memory is not None and key in memory and (memory.exact or not exact)

    def _on_disk(self, key: bytes) -> bool:
        return self._disk is not None and self._disk.contains(key)

    def _from_memory(self, key: bytes, token_ids: Sequence[int]) -> Block | None:
        # A copy, since the room that is made for it may cost the tier's own.
        kept = None if self._memory is None else self._memory.take(key, token_ids)
        if kept is None or self._memory is None:
            return None
        pages = self.reserve(len(token_ids))
        try:
            self._memory.fill(pages, kept)
        except BaseException:
            self.abandon(pages)
            raise
        return self.commit(key, token_ids, pages, exact=kept.exact)

    def _from_disk(self, key: bytes, token_ids: Sequence[int]) -> Block | None:
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

    def _victims(self, needed: int) -> list[tuple[bytes, Eviction]]:
        """The blocks to evict until `needed` pages are free, in their order. Raises PoolExhausted
        when all that may go is not enough."""
        pinned = {key for name in self._pins.documents for key in self._order.blocks(name)}
        chosen: list[tuple[bytes, Eviction]] = []
        room = self.pool.free
        order = chain(self._going(pinned, last=False), self._going(pinned, last=True))
        while room < needed:
            found = next(order, None)
            if found is None:
                raise PoolExhausted(needed, self.pool.total - room, self.pool.total)
            chosen.append(found)
            room += len(self._blocks[found[0]].pages)
        return chosen

    def _going(self, pinned: set[bytes], *, last: bool) -> Iterator[tuple[bytes, Eviction]]:
        """Blocks that nobody holds, least recently used first: the `last` ones to go, or those
        before them."""
        for key in self._order.least():
            if (key in pinned) == last and not self._holds.get(key):
                yield key, "pinned" if last else "room"

    def _pages_of(self, document: str) -> dict[bytes, int]:
        """Pages of the document's blocks; without a layout of those in the pool."""
        known = self._sizes.get(document)
        if known is not None:
            return known
        here = (self._blocks.get(key) for key in self._order.blocks(document))
        return {block.key: len(block.pages) for block in here if block is not None}

    def _drop(self, key: bytes, reason: Eviction) -> None:
        self._unsaved.pop(key, None)
        self._order.remove(key)
        self._tally.evict(key, reason)
        self.pool.release(self._blocks.pop(key).pages)

    def _want_saved(self, key: bytes) -> None:
        """Have the block written, if it is lacking on the disk and what the model computed."""
        block = self._blocks.get(key)
        if self._disk is not None and block is not None and block.exact and self._disk.lacks(key):
            self._unsaved[key] = None

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
        if self._disk is None or not self._disk.lacks(key):
            return
        if not self._blocks[key].exact:
            self._disk.missed("aged")
            return
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
