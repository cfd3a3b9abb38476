"""Errors of the KV store.

KVStoreError
├── PoolExhausted     more pages asked for than can be freed
│   └── BlockEvicted  a block that is needed beside others had to make room for them
├── PinRefused        a document can't be pinned: not known, too large, or no time given
├── BadKVFile         a file of pages is damaged, cut, foreign or gone: its text is read again
├── KVFolderBusy      another process uses the folder of pages
└── IntegrityError    the store's own books don't agree: a bug, never a user error
"""

from __future__ import annotations

from pathlib import Path


class KVStoreError(Exception):
    """Root of all errors of this package."""


class PoolExhausted(KVStoreError):
    """`needed` pages can't be had: the pool holds `total` and `in_use` of them are in use."""

    def __init__(self, needed: int, in_use: int, total: int) -> None:
        super().__init__(
            f"{needed} KV pages are needed, but {in_use} of the pool's {total} are in use; "
            "raise the KV budget or ask about fewer documents at once"
        )
        self.needed = needed
        self.in_use = in_use
        self.total = total


class BlockEvicted(PoolExhausted):
    """Blocks that are needed together don't fit in the pool's `total` pages at once."""

    def __init__(self, total: int) -> None:
        KVStoreError.__init__(
            self,
            f"Blocks that are needed together do not fit in the pool's {total} KV pages at once; "
            "raise the KV budget or ask about less at once",
        )
        self.needed, self.in_use, self.total = total + 1, total, total


class PinRefused(KVStoreError):
    """The document can't be pinned; the message says why and what to do."""


class BadKVFile(KVStoreError):
    """The file is not used. `reason` is one word for the counters: manifest, version, missing,
    truncated, foreign, checksum, tokens or unreadable."""

    def __init__(self, path: Path, reason: str, detail: str) -> None:
        super().__init__(f"the KV file {path} is refused ({reason}): {detail}")
        self.reason = reason


class KVFolderBusy(KVStoreError):
    """Another process keeps its pages in this folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(f"another process keeps its KV pages in {folder}")


class IntegrityError(KVStoreError):
    """Reference counts and free list contradict each other."""
