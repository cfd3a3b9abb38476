"""Pages for the contexts of requests under way: what each sees, then its question and answer.

A context begins with a copy of its sinks, anchors and evidence (a few thousand tokens: 0.1 ms of a
GPU's time, and the copy stays when the store evicts a block, whatever format the store keeps). Keys
stay unrotated. The list of every context has a row of its own in one table on the device, so that a
step names contexts by their rows. Evidence may stand apart, in pages as the store packs them (see
`backend.paged.packed`). It knows no model.
"""

from __future__ import annotations

import torch

from backend.errors import BackendError
from backend.paged.packed import PackedArena
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, PageTable

KV = tuple[torch.Tensor, torch.Tensor]
"""Keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim]."""

SCRATCH_ROW = 0
"""The list of a row that stands for nothing: all its pages are one page that nobody reads."""


Evidence = tuple[PagePool, PageTable]
"""Pages of a store that attention is to read as they are."""


class PagedContext:
    """KV of one request in pages, `length` tokens of it filled. Tokens from position `own_start` on
    stand in the pages from `own_page` on; before that there may be pages in the arena's packed pool
    (`packed`), which stand between the others."""

    def __init__(self, arena: Arena, row: int, pages: tuple[int, ...], length: int) -> None:
        """Use `Arena.open`."""
        self.length = length
        self.row = row
        self.pages = pages
        self.packed: tuple[int, ...] = ()
        self.own_page = self.own_start = 0
        self._arena: Arena | None = arena

    @property
    def capacity(self) -> int:
        """Tokens that the pages have room for."""
        return self.own_start + (len(self.pages) - self.own_page) * PAGE_TOKENS

    def pages_of(self, tokens: int) -> int:
        """How many of `pages` there are to read when the context has so many tokens."""
        return self.own_page - (self.own_start - tokens) // PAGE_TOKENS

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
        packed: PackedArena | None = None,
    ) -> None:
        """Room for `contexts` contexts at a time, each of at most `context_pages` pages. The pool
        keeps KV as it is; with `packed`, which has as many contexts, evidence may stand there."""
        self.pool = pool
        self.packed = packed
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
    def bytes(self) -> int:
        """Of all pages."""
        return self.pool.data.nbytes + (0 if self.packed is None else self.packed.pool.data.nbytes)

    @property
    def longest(self) -> int:
        """Tokens of the longest context that has room while there is no other."""
        pages = min(self.pool.total - 1, self.context_pages)
        if self.packed is not None:
            pages += min(self.packed.pool.total, self.packed.context_pages)
        return pages * PAGE_TOKENS

    def full_for(self, tokens: int) -> bool:
        """Whether a context of so many tokens has to wait until others are closed. False for one
        that would never have room. How many of them are packed evidence is not known before it is
        opened, so with packed pages both pools are taken together."""
        pages = -(-tokens // PAGE_TOKENS)
        free = self.pool.free + (0 if self.packed is None else self.packed.pool.free)
        return tokens <= self.longest and (not self._rows or pages > free)

    def open(self, prefix: KV, room: int, evidence: Evidence | None = None) -> PagedContext | None:
        """A context of the prefix, and of the evidence behind it, with room for as many tokens
        more; None when the arena has no room. Only an arena with packed pages takes evidence."""
        tokens = prefix[0].shape[2]
        if evidence is not None and evidence[1].refs:
            return self._open_packed(prefix, room, *evidence)
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

    def _open_packed(
        self, prefix: KV, room: int, source: PagePool, table: PageTable
    ) -> PagedContext | None:
        if self.packed is None:
            raise BackendError("this arena has no packed pages")
        tokens = prefix[0].shape[2]
        own_page = -(-tokens // PAGE_TOKENS)
        count = own_page - (-room // PAGE_TOKENS)
        fits = count <= min(self.pool.free, self.context_pages)
        if not self._rows or not fits or not self.packed.fits(len(table.refs)):
            return None
        length = tokens + table.tokens
        context = PagedContext(self, self._rows.pop(), self.pool.allocate(count), length)
        context.own_page, context.own_start = own_page, length
        try:
            self._fill(context, prefix)
            context.packed = self.packed.copy(context.row, source, table, tokens)
        except BaseException:
            context.close()
            raise
        return context

    def _fill(self, context: PagedContext, prefix: KV) -> None:
        tokens = prefix[0].shape[2]
        refs = []
        for place, page in enumerate(context.pages):
            start, count = place * PAGE_TOKENS, PAGE_TOKENS
            if place >= context.own_page:
                start += context.own_start - context.own_page * PAGE_TOKENS
            else:
                count = min(PAGE_TOKENS, tokens - start)
            refs.append((page, 0, count, start))
        listed = torch.tensor(refs, dtype=torch.int32).view(-1, 4).to(self.table.device)
        self.table[context.row, : len(refs)] = listed
        whole, rest = divmod(tokens, PAGE_TOKENS)
        for part, source in enumerate(prefix):
            target = self.pool.data[:, :, part]
            if whole:
                paged = source[:, :, : whole * PAGE_TOKENS].unflatten(2, (whole, PAGE_TOKENS))
                target[listed[:whole, 0].long()] = paged.permute(2, 0, 1, 3, 4)
            if rest:
                target[context.pages[whole], :, :, :rest] = source[:, :, whole * PAGE_TOKENS :]

    def release(self, context: PagedContext) -> None:
        """Use `PagedContext.close`."""
        self.pool.release(context.pages)
        if self.packed is not None:
            self.packed.pool.release(context.packed)
        self._rows.append(context.row)
