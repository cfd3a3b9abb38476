"""Pages for the contexts of requests under way: what each sees, then its question and answer.

A context begins with a copy of its sinks, anchors and evidence (a few thousand tokens: 0.1 ms of a
GPU's time, and the copy stays when the store evicts a block, whatever format the store keeps). Keys
stay unrotated. The list of every context has a row of its own in one table on the device, so that a
step names contexts by their rows. It knows no model.
"""

from __future__ import annotations

import torch

from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS

KV = tuple[torch.Tensor, torch.Tensor]
"""Keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim]."""

SCRATCH_ROW = 0
"""The list of a row that stands for nothing: all its pages are one page that nobody reads."""


class PagedContext:
    """KV of one request in pages, `length` tokens of it filled."""

    def __init__(self, arena: Arena, row: int, pages: tuple[int, ...], length: int) -> None:
        """Use `Arena.open`."""
        self.length = length
        self.row = row
        self.pages = pages
        self._arena: Arena | None = arena

    @property
    def capacity(self) -> int:
        """Tokens that the pages have room for."""
        return len(self.pages) * PAGE_TOKENS

    def take_back(self, count: int) -> None:
        """Forget the last `count` tokens."""
        self.length -= count

    def close(self) -> None:
        """Give the pages back; harmless the second time."""
        if self._arena is not None:
            self._arena.release(self)
            self._arena = None


class Arena:
    """A pool of pages in the model's own dtype, and the page lists of contexts.

    `table` [contexts + 1, pages of a context, 4] holds lists as `page_attention` reads them. Owned
    by the engine's thread.
    """

    def __init__(
        self,
        pool: PagePool,
        *,
        contexts: int = 64,
        context_pages: int = 1024,
    ) -> None:
        """Room for `contexts` contexts at a time, each of at most `context_pages` pages. The pool
        keeps KV as it is."""
        self.pool = pool
        # Step shapes are padded with rows that write here; products of what is read must be finite.
        (scratch,) = self.pool.allocate(1)
        self.pool.data[scratch] = 0
        self.context_pages = context_pages
        self.table = torch.zeros((contexts + 1, context_pages, 4), dtype=torch.int32)
        self.table[..., 0] = scratch
        self.table[..., 2] = PAGE_TOKENS
        self.table[..., 3] = torch.arange(context_pages, dtype=torch.int32) * PAGE_TOKENS
        self.table = self.table.to(pool.data.device)
        self._rows = list(range(contexts, SCRATCH_ROW, -1))

    @property
    def longest(self) -> int:
        """Tokens of the longest context that has room while there is no other."""
        return min(self.pool.total - 1, self.context_pages) * PAGE_TOKENS

    def full_for(self, tokens: int) -> bool:
        """Whether a context of so many tokens has to wait until others are closed. False for one
        that would never have room."""
        pages = -(-tokens // PAGE_TOKENS)
        return tokens <= self.longest and (not self._rows or pages > self.pool.free)

    def open(self, prefix: KV, room: int) -> PagedContext | None:
        """A context of the prefix with room for as many tokens more; None when the arena has no
        room."""
        tokens = prefix[0].shape[2]
        count = -(-(tokens + room) // PAGE_TOKENS)
        if not self._rows or count > min(self.pool.free, self.context_pages):
            return None
        context = PagedContext(self, self._rows.pop(), self.pool.allocate(count), tokens)
        try:
            self._fill(context, prefix)
        except BaseException:
            # No memory for the copy, say: the room is free again.
            context.close()
            raise
        return context

    def _fill(self, context: PagedContext, prefix: KV) -> None:
        pages = context.pages
        named = torch.tensor(pages, dtype=torch.int32).to(self.table.device)
        self.table[context.row, : len(pages), 0] = named
        whole, rest = divmod(context.length, PAGE_TOKENS)
        for part, source in enumerate(prefix):
            target = self.pool.data[:, :, part]
            if whole:
                paged = source[:, :, : whole * PAGE_TOKENS].unflatten(2, (whole, PAGE_TOKENS))
                target[named[:whole].long()] = paged.permute(2, 0, 1, 3, 4)
            if rest:
                target[pages[whole], :, :, :rest] = source[:, :, whole * PAGE_TOKENS :]

    def release(self, context: PagedContext) -> None:
        """Use `PagedContext.close`."""
        self.pool.release(context.pages)
        self._rows.append(context.row)
