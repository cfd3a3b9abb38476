"""The memory tier: blocks that the pool evicted stay in host memory, as they were or in a smaller
format.

As they were, they come back to the last bit. With a format of its own the tier *ages* what it
keeps: a block is recoded when it is evicted and decoded into the pool's format when it comes back.
Such a block is not what the model computed (see docs/benchmarks/kv-formats.md for what that costs
in quality), so

- it is marked (`Kept.exact`) and never written to disk, where it would be taken for exact;
- it is aged once: its copy stays here while it is in the pool, and if the copy had to go the block
  is read again after its next eviction instead of being rounded a second time;
- an exact copy on the disk is preferred, and a block that has one is not aged (see `KVStore`). On
  a CPU it is also the quicker: a block of 512 tokens of the default model took 6.5 ms from the
  system's cache of the file and 25 ms from int4, which had cost 58 ms when it was evicted
  (docs/adr/0006-memory-tier.md). Ageing is for what the disk doesn't have;
- whoever computes new KV from pages that are kept (chained reading) must not have this tier age.

Blocks are not checksummed, as they are not in the pool: CRC-32 runs at about 1 GB/s, slower than a
GPU reads the text of a block. Tokens are compared before a block comes back, as everywhere.

On a GPU's pool the memory is pinned and copies are queued behind the steps of its stream, which
also keeps them in order among themselves; nobody waits for them here. That has not run on a GPU
yet, so the tier is off there by default. Not thread-safe: the engine's thread owns it; `in` is safe
from any thread.
"""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kvstore.errors import IntegrityError
from kvstore.formats.types import PageFormat
from kvstore.pool import PagePool, page_bytes
from kvstore.types import PAGE_TOKENS, Block, MemoryCounters, PageRef, PageTable

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Kept:
    """A block on its way back: its pages as they lay in the tier, as bytes [pages, bytes of a page]
    on the pool's device, and whether they are what the model computed."""

    raw: torch.Tensor
    tokens: int
    exact: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    token_ids: tuple[int, ...]
    places: tuple[int, ...]


class MemoryTier:
    """Host pages for evicted blocks of one pool, the least recently used dropped first."""

    def __init__(self, pool: PagePool, budget: int, form: PageFormat | None = None) -> None:
        """At most `budget` bytes, which the operating system backs when they are first written
        unless they are pinned. `form` None keeps the pool's format.

        Raises RuntimeError when the memory can't be had, ValueError for a budget of no page or a
        format that is not smaller than the pool's.
        """
        self._pool = pool
        self._form = None if form is None or form.name == pool.format.name else form
        size = pool.page_bytes if self._form is None else page_bytes(pool.shape, self._form)
        if self._form is not None and size >= pool.page_bytes:
            raise ValueError(
                f"pages of {self._form.name} take {size} bytes and those of {pool.format.name} "
                f"{pool.page_bytes}: they would not get smaller by ageing"
            )
        if budget < size:
            raise ValueError(f"a budget of {budget} bytes holds no page of {size} bytes")
        pinned = pool.data.device.type == "cuda"
        self._pages = torch.empty(
            (budget // size, size), dtype=torch.uint8, device="cpu", pin_memory=pinned
        )
        self._free = list(range(len(self._pages) - 1, -1, -1))
        # Least recently used first.
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()
        self._hits = self._kept = 0
        self._dropped: Counter[str] = Counter()
        self._unkept: Counter[str] = Counter()

    def __contains__(self, key: bytes) -> bool:
        return key in self._entries

    @property
    def exact(self) -> bool:
        """Whether blocks come back to the last bit."""
        return self._form is None

    @property
    def counters(self) -> MemoryCounters:
        """Since the tier was made."""
        size = self._pages.shape[1]
        return MemoryCounters(
            exact=self.exact,
            hits=self._hits,
            kept=self._kept,
            bytes_held=(len(self._pages) - len(self._free)) * size,
            bytes_total=self._pages.numel(),
            dropped=dict(self._dropped),
            unkept=dict(self._unkept),
        )

    def keep(self, block: Block) -> bool:
        """Have the block here, as the most recently used. False: it can't be, and is counted."""
        if block.key in self._entries:
            self._entries.move_to_end(block.key)
            return True
        if not block.exact:
            self._unkept["aged"] += 1
            return False
        if len(block.pages) > len(self._pages):
            self._unkept["size"] += 1
            return False
        try:
            raw = self._recoded(block)
        except (RuntimeError, MemoryError) as error:
            # No memory for the copy, say. The block is read again if it is needed; requests go on.
            _log.warning("a block is not kept in host memory: %s", error)
            self._unkept["copy"] += 1
            return False
        while len(self._free) < len(block.pages):
            self._drop(next(iter(self._entries)), "budget")
        places = tuple(self._free.pop() for _ in block.pages)
        for place, page in zip(places, raw, strict=True):
            self._pages[place].copy_(page, non_blocking=True)
        self._entries[block.key] = _Entry(block.token_ids, places)
        self._kept += 1
        return True

    def take(self, key: bytes, token_ids: Sequence[int]) -> Kept | None:
        """A copy of the block, which stays here as the most recently used. None when it is not
        here or has other tokens."""
        entry = self._entries.get(key)
        if entry is None or entry.token_ids != tuple(token_ids):
            return None
        self._entries.move_to_end(key)
        self._hits += 1
        raw = torch.empty(
            (len(entry.places), self._pages.shape[1]),
            dtype=torch.uint8,
            device=self._pool.data.device,
        )
        for place, page in zip(entry.places, raw, strict=True):
            page.copy_(self._pages[place], non_blocking=True)
        return Kept(raw, len(entry.token_ids), self.exact)

    def fill(self, pages: Sequence[int], kept: Kept) -> None:
        """Fill pages of the pool with a block that was taken."""
        if self._form is None:
            self._pool.fill_pages(pages, kept.raw)
            return
        aged = self._beside(self._form, len(pages))
        aged.fill_pages(range(len(pages)), kept.raw)
        _transfer(aged, range(len(pages)), self._pool, pages, kept.tokens)

    def used(self, key: bytes) -> None:
        """The block serves somebody from the pool: its copy is not the one to drop first."""
        if key in self._entries:
            self._entries.move_to_end(key)

    def forget(self, key: bytes) -> None:
        """Drop the block, if it is here."""
        if key in self._entries:
            self._drop(key, "forgotten")

    def check_integrity(self) -> None:
        """Raise IntegrityError unless each page is either free once or of one block."""
        taken = [place for entry in self._entries.values() for place in entry.places]
        if sorted([*self._free, *taken]) != list(range(len(self._pages))):
            raise IntegrityError("a page of the memory tier is lost, or in two places")
        for entry in self._entries.values():
            if len(entry.places) != -(-len(entry.token_ids) // PAGE_TOKENS):
                raise IntegrityError("a block of the memory tier has not the pages of its tokens")

    def _drop(self, key: bytes, reason: str) -> None:
        self._free.extend(self._entries.pop(key).places)
        self._dropped[reason] += 1

    def _recoded(self, block: Block) -> torch.Tensor:
        """The block's pages in the tier's format, as bytes [pages, bytes of a page] on the pool's
        device."""
        tokens = len(block.token_ids)
        if self._form is None:
            return self._pool.copy_pages(block.pages, tokens)
        aged = self._beside(self._form, len(block.pages))
        _transfer(self._pool, block.pages, aged, range(len(block.pages)), tokens)
        return aged.copy_pages(range(len(block.pages)), tokens)

    def _beside(self, form: PageFormat, pages: int) -> PagePool:
        """A pool on the same device for one block on its way, so that what crosses to the host is
        small already."""
        pool = self._pool
        return PagePool(pool.shape, pages, pool.dtype, pool.data.device, form)


@torch.inference_mode()
def _transfer(
    source: PagePool, pages: Sequence[int], target: PagePool, into: Sequence[int], tokens: int
) -> None:
    """Copy a block of `tokens` tokens from one pool to another, through the dtype of both."""
    ends = [min(PAGE_TOKENS, tokens - slot * PAGE_TOKENS) for slot in range(len(pages))]
    refs = tuple(PageRef(page, 0, count) for page, count in zip(pages, ends, strict=True))
    keys, values = source.gather(PageTable(refs))
    for layer in range(source.shape.layers):
        target.write(into, layer, keys[layer].transpose(0, 1), values[layer].transpose(0, 1))
