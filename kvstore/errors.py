"""Errors of the KV store.

KVStoreError
├── PoolExhausted     more pages asked for than can be freed
│   └── BlockEvicted  a block that is needed beside others had to make room for them
└── IntegrityError    the store's own books don't agree: a bug, never a user error
"""

from __future__ import annotations


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


class IntegrityError(KVStoreError):
    """Reference counts and free list contradict each other."""
