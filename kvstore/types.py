"""Values that travel out of the KV store. Token ranges are half-open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

PAGE_TOKENS = 64
"""Tokens of one KV page."""


@dataclass(frozen=True, slots=True)
class KVShape:
    """What one token's KV looks like. Keys are stored before rotation.

    Where `latent` is not 0, the values of a head are the first `latent` channels of its keys and
    are not stored beside them (multi-head latent attention keeps 512 channels and 64 that are
    rotated, as one head of 576).
    """

    layers: int
    kv_heads: int
    head_dim: int
    latent: int = 0

    @property
    def parts(self) -> int:
        """Tensors that are kept for each head: keys and values, or keys alone."""
        return 1 if self.latent else 2


@dataclass(frozen=True, slots=True)
class Block:
    """A block that has been read: its tokens and the pages that hold their KV, in order.

    The last page is filled up to `len(token_ids) % PAGE_TOKENS` tokens (full when 0). `exact`: the
    pages are what the model computed, in the pool's format, and not a copy that was aged.
    """

    key: bytes
    token_ids: tuple[int, ...]
    pages: tuple[int, ...]
    exact: bool = True


@dataclass(frozen=True, slots=True)
class PageRef:
    """One page in a question's page list: tokens `[first, first + count)` of page `page`."""

    page: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class PageTable:
    """The page list of one question, in the order in which attention sees it."""

    refs: tuple[PageRef, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the whole list."""
        return sum(ref.count for ref in self.refs)


@dataclass(frozen=True, slots=True)
class StoreCounters:
    """Since the store was made: look-ups of blocks that found them in the pool and that didn't;
    blocks evicted for others' room; by reason, blocks that left the pool (`dropped`) and blocks
    that had to be read from their text (`lost`), see `kvstore.tally`."""

    hits: int
    misses: int
    evicted: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MemoryCounters:
    """The memory tier since it was made. `exact`: blocks come back to the last bit and not from a
    smaller format. Blocks that came back (`hits`) and that were `kept`; bytes of pages there now,
    and of the most there can be. By reason, copies `dropped` (`budget`: for others, `forgotten`:
    their documents were deleted) and evicted blocks that were not kept (`unkept`: `size`, larger
    than the tier; `aged`, rounded once already; `copy`, no memory for the copy)."""

    exact: bool = True
    hits: int = 0
    kept: int = 0
    bytes_held: int = 0
    bytes_total: int = 0
    dropped: Mapping[str, int] = field(default_factory=dict)
    unkept: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DiskCounters:
    """The disk tier since it was opened. Blocks that memory lacked and the disk had (`hits`) or
    had not (`misses`); bytes of pages written and read; bytes of files there now. `refused`: files
    and blocks that were not used, by reason (see `kvstore.errors.BadKVFile`); `unsaved`: blocks
    that were not written, by reason: `budget` (the document is larger than the disk's budget or
    made room for others), `error` (the disk failed), `pressure` (evicted before the disk had
    time), `copy` (no memory for the copy), `aged` (evicted, but not what the model computed)."""

    hits: int = 0
    misses: int = 0
    bytes_written: int = 0
    bytes_read: int = 0
    bytes_held: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)
    unsaved: Mapping[str, int] = field(default_factory=dict)
