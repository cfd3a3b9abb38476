"""The page pool: one preallocated tensor, a free list and reference counts.

Layout: `[page, layer, K or V, kv_head, token, channel]`, so that K (and V) of one page and head are
contiguous: 64 x head_dim elements, a multiple of 128 bytes for head sizes of 64 and more in 16 bit.

Knows nothing of blocks, documents or eviction. Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kvstore.errors import IntegrityError, PoolExhausted
from kvstore.types import PAGE_TOKENS, KVShape, PageTable


def page_bytes(shape: KVShape, dtype: torch.dtype) -> int:
    """Bytes of one page."""
    elements = shape.layers * 2 * shape.kv_heads * PAGE_TOKENS * shape.head_dim
    return elements * dtype.itemsize


class PagePool:
    """`pages` pages of KV on one device.

    Memory is reserved at once; on a CPU the operating system backs it when a page is first
    written.
    """

    def __init__(
        self, shape: KVShape, pages: int, dtype: torch.dtype, device: torch.device | str = "cpu"
    ) -> None:
        if pages < 1:
            raise PoolExhausted(1, 0, pages)
        self.shape = shape
        self.total = pages
        self.data = torch.empty(
            (pages, shape.layers, 2, shape.kv_heads, PAGE_TOKENS, shape.head_dim),
            dtype=dtype,
            device=device,
        )
        # Popped from the end, so that pages are handed out in ascending order at first.
        self._free = list(range(pages - 1, -1, -1))
        self._references = [0] * pages

    @property
    def free(self) -> int:
        """Pages that can be allocated now."""
        return len(self._free)

    @property
    def page_bytes(self) -> int:
        """Bytes of one page."""
        return self.data.nbytes // self.total

    def allocate(self, count: int) -> tuple[int, ...]:
        """Take `count` pages, each with one reference.

        Raises PoolExhausted, taking none, when fewer are free.
        """
        if count > len(self._free):
            raise PoolExhausted(count, self.total - len(self._free), self.total)
        pages = tuple(self._free.pop() for _ in range(count))
        for page in pages:
            self._references[page] = 1
        return pages

    def retain(self, pages: Sequence[int]) -> None:
        """Add a reference to each page."""
        for page in pages:
            if self._references[page] == 0:
                raise IntegrityError(f"page {page} is retained but free")
            self._references[page] += 1

    def release(self, pages: Sequence[int]) -> None:
        """Drop a reference of each page; a page without references is free again."""
        for page in pages:
            if self._references[page] == 0:
                raise IntegrityError(f"page {page} is released twice")
            self._references[page] -= 1
            if self._references[page] == 0:
                self._free.append(page)

    def write(
        self, pages: Sequence[int], layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Store one layer's KV of consecutive tokens.

        `keys`, `values`: [tokens, kv_heads, head_dim], keys before rotation. Tokens fill `pages` in
        order; the rest of the last page is left as it is.
        """
        tokens = keys.shape[0]
        whole = tokens // PAGE_TOKENS
        for slot, source in enumerate((keys, values)):
            if whole:
                index = torch.tensor(pages[:whole], device=self.data.device)
                paged = source[: whole * PAGE_TOKENS].unflatten(0, (whole, PAGE_TOKENS))
                self.data[index, layer, slot] = paged.transpose(1, 2).to(self.data.dtype)
            if rest := tokens - whole * PAGE_TOKENS:
                tail = source[whole * PAGE_TOKENS :].transpose(0, 1)
                self.data[pages[whole], layer, slot, :, :rest] = tail.to(self.data.dtype)

    def write_tokens(
        self,
        pages: torch.Tensor,
        slots: torch.Tensor,
        layer: int,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """Store one layer's KV of tokens of many blocks: token i at (`pages[i]`, `slots[i]`), both
        [tokens] on the pool's device. `keys`, `values` as for `write`."""
        for slot, source in enumerate((keys, values)):
            self.data[:, layer, slot][pages, :, slots] = source.to(self.data.dtype)

    def gather(self, table: PageTable) -> tuple[torch.Tensor, torch.Tensor]:
        """KV of a page list.

        Returns keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim].
        """
        index = torch.tensor([ref.page for ref in table.refs], device=self.data.device)
        picked = self.data.index_select(0, index)
        merged = picked.permute(2, 1, 3, 0, 4, 5).flatten(3, 4)
        if any(ref.first != 0 or ref.count != PAGE_TOKENS for ref in table.refs):
            keep = torch.cat(
                [
                    torch.arange(ref.first, ref.first + ref.count) + slot * PAGE_TOKENS
                    for slot, ref in enumerate(table.refs)
                ]
            ).to(self.data.device)
            merged = merged.index_select(3, keep)
        return merged[0], merged[1]

    def gather_tokens(
        self, locations: Sequence[tuple[int, int]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """KV of single tokens, each given as (page, token in the page).

        Returns keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim].
        """
        pages, slots = torch.tensor(locations, device=self.data.device).unbind(1)
        merged = self.data[pages, :, :, :, slots].permute(2, 1, 3, 0, 4)
        return merged[0], merged[1]

    def export_pages(self, pages: Sequence[int], tokens: int) -> torch.Tensor:
        """A copy of pages that hold `tokens` tokens, as bytes [pages, bytes of a page] on the CPU.
        What lies behind the tokens is zero, whatever the pages held before."""
        index = torch.tensor(pages, device=self.data.device)
        copy = self.data.index_select(0, index)
        if rest := tokens % PAGE_TOKENS:
            copy[-1, ..., rest:, :] = 0
        return copy.cpu().view(torch.uint8).flatten(1)

    def import_pages(self, pages: Sequence[int], raw: bytearray) -> None:
        """Fill pages with what `export_pages` gave."""
        index = torch.tensor(pages, device=self.data.device)
        typed = torch.frombuffer(raw, dtype=self.data.dtype)
        shaped = typed.view(len(pages), *self.data.shape[1:])
        self.data[index] = shaped.to(self.data.device)

    def check_integrity(self) -> None:
        """Raise IntegrityError unless each page is either free once or referenced."""
        if len(set(self._free)) != len(self._free):
            raise IntegrityError("a page is in the free list twice")
        free = frozenset(self._free)
        for page in range(self.total):
            if (self._references[page] == 0) != (page in free):
                raise IntegrityError(f"page {page} is neither free nor referenced, or both")
