"""The page pool: one preallocated tensor and a free list.

Layout: `[page, layer, K or V, kv_head, *cell]`, so that K (and V) of one page and head are
contiguous; of latents (see `KVShape`) there are keys only. A cell is [token, channel] in 16 and 32
bit (a multiple of 128 bytes for head sizes of 64 and more in 16 bit), and a row of bytes in the
packed formats (see `kvstore.formats`).

Knows nothing of blocks, documents or eviction. Not thread-safe: the engine's thread owns it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from kvstore.errors import IntegrityError, PoolExhausted
from kvstore.formats.plain import PlainFormat
from kvstore.formats.types import PageFormat, Part
from kvstore.types import PAGE_TOKENS, KVShape, PageTable

_PARTS: tuple[Part, Part] = (0, 1)


def page_bytes(shape: KVShape, form: PageFormat) -> int:
    """Bytes of one page, scales and all."""
    return shape.layers * shape.parts * shape.kv_heads * form.cell(shape.head_dim).bytes


class PagePool:
    """`pages` pages of KV on one device.

    Memory is reserved at once; on a CPU the operating system backs it when a page is first
    written.
    """

    def __init__(
        self,
        shape: KVShape,
        pages: int,
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
        form: PageFormat | None = None,
    ) -> None:
        """KV goes in and comes out in `dtype`, and lies in the pages in `form`; None leaves it as
        it is."""
        if pages < 1:
            raise PoolExhausted(1, 0, pages)
        self.shape = shape
        self.total = pages
        self.dtype = dtype
        self.format: PageFormat = form or PlainFormat(dtype)
        cell = self.format.cell(shape.head_dim)
        self._parts = _PARTS[: shape.parts]
        self.data = torch.empty(
            (pages, shape.layers, shape.parts, shape.kv_heads, *cell.shape),
            dtype=cell.dtype,
            device=device,
        )
        # Popped from the end, so that pages are handed out in ascending order at first.
        self._free = list(range(pages - 1, -1, -1))
        self._taken = [False] * pages

    @property
    def free(self) -> int:
        """Pages that can be allocated now."""
        return len(self._free)

    @property
    def page_bytes(self) -> int:
        """Bytes of one page."""
        return self.data.nbytes // self.total

    def allocate(self, count: int) -> tuple[int, ...]:
        """Take `count` pages.

        Raises PoolExhausted, taking none, when fewer are free.
        """
        if count > len(self._free):
            raise PoolExhausted(count, self.total - len(self._free), self.total)
        pages = tuple(self._free.pop() for _ in range(count))
        for page in pages:
            self._taken[page] = True
        return pages

    def release(self, pages: Sequence[int]) -> None:
        """Give the pages back. Raises IntegrityError for one that is free."""
        for page in pages:
            if not self._taken[page]:
                raise IntegrityError(f"page {page} is released twice")
            self._taken[page] = False
            self._free.append(page)

    def write(
        self, pages: Sequence[int], layer: int, keys: torch.Tensor, values: torch.Tensor
    ) -> None:
        """Store one layer's KV of consecutive tokens.

        `keys`, `values`: [tokens, kv_heads, head_dim], keys before rotation; of latents `values`
        are not looked at. Tokens fill `pages` in order; the rest of the last page is filled with
        the last token.
        """
        device = self.data.device
        used = -(-keys.shape[0] // PAGE_TOKENS)
        places = torch.arange(used * PAGE_TOKENS, device=device).clamp_(max=keys.shape[0] - 1)
        index = torch.tensor(pages[:used], device=device)
        self._store(index, places.view(used, PAGE_TOKENS), layer, keys, values)

    def write_tokens(
        self,
        pages: torch.Tensor,
        slots: torch.Tensor,
        layer: int,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """Store one layer's KV of tokens of many blocks: token i at (`pages[i]`, `slots[i]`), both
        [tokens] on the pool's device. A page's tokens stand in a row, from its first on. `keys`,
        `values` as for `write`."""
        if self.format.plain:
            for part in self._parts:
                rows = self.format.encode((keys, values)[part], part)
                self.data[:, layer, part][pages, :, slots] = rows
            return
        # Scales need whole pages: each row of `places` has the tokens of one, the last repeated.
        firsts = (slots == 0).nonzero().view(-1, 1)
        ends = torch.cat((firsts[1:], firsts.new_tensor([[len(slots)]])))
        within = torch.arange(PAGE_TOKENS, device=slots.device)
        places = torch.minimum(firsts + within, ends - 1)
        self._store(pages[firsts.view(-1)], places, layer, keys, values)

    def _store(
        self,
        pages: torch.Tensor,
        places: torch.Tensor,
        layer: int,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """Fill whole pages with the tokens `places` [pages, 64] of `keys` and `values`."""
        for part in self._parts:
            rows = (keys, values)[part][places].transpose(1, 2)
            self.data[pages, layer, part] = self.format.encode(rows, part)

    def gather(self, table: PageTable) -> tuple[torch.Tensor, torch.Tensor]:
        """KV of a page list.

        Returns keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim]; the
        values of latents are a view of the keys, `latent` wide.
        """
        device = self.data.device
        index = torch.tensor([ref.page for ref in table.refs], device=device)
        keep = None
        if any(ref.first != 0 or ref.count != PAGE_TOKENS for ref in table.refs):
            keep = torch.cat(
                [
                    torch.arange(ref.first, ref.first + ref.count) + slot * PAGE_TOKENS
                    for slot, ref in enumerate(table.refs)
                ]
            ).to(device)
        return self._pair([self._decoded(index, keep, part) for part in self._parts])

    def _pair(self, parts: Sequence[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values of what is stored."""
        keys = parts[0]
        return keys, keys[..., : self.shape.latent] if self.shape.latent else parts[1]

    def _decoded(self, pages: torch.Tensor, keep: torch.Tensor | None, part: Part) -> torch.Tensor:
        """Keys or values of `pages`, of which the tokens `keep` are wanted, counted over all."""
        layers, heads, width = self.shape.layers, self.shape.kv_heads, self.shape.head_dim
        tokens = len(pages) * PAGE_TOKENS if keep is None else len(keep)
        out = self.data.new_empty((layers, heads, tokens, width), dtype=self.dtype)
        # On a CPU a layer at a time stays in the cache; on a GPU each launch costs.
        step = 1 if self.data.device.type == "cpu" else layers
        for first in range(0, layers, step):
            cells = self.data[:, first : first + step, part].index_select(0, pages)
            rows = self.format.decode(cells, part, width, self.dtype)
            rows = rows.permute(1, 2, 0, 3, 4).flatten(2, 3)
            out[first : first + step] = rows if keep is None else rows.index_select(2, keep)
        return out

    def gather_tokens(
        self, locations: Sequence[tuple[int, int]]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """KV of single tokens, each given as (page, token in the page).

        Returns keys (before rotation) and values as `gather` does.
        """
        pages, slots = torch.tensor(locations, device=self.data.device).unbind(1)
        return self._pair(
            [
                self.format.decode_tokens(
                    self.data[:, :, part], pages, slots, part, self.shape.head_dim, self.dtype
                ).permute(1, 2, 0, 3)
                for part in self._parts
            ]
        )

    def copy_pages(self, pages: Sequence[int], tokens: int) -> torch.Tensor:
        """A copy of pages that hold `tokens` tokens, as bytes [pages, bytes of a page] on the
        pool's device. Behind the tokens there is nothing of what the pages held before."""
        index = torch.tensor(pages, device=self.data.device)
        copy = self.data.index_select(0, index)
        rest = tokens % PAGE_TOKENS
        if rest and self.format.plain:
            copy[-1, ..., rest:, :] = 0
        return copy.view(torch.uint8).flatten(1)

    def fill_pages(self, pages: Sequence[int], raw: torch.Tensor) -> None:
        """Fill pages with what `copy_pages` gave, wherever it is now."""
        index = torch.tensor(pages, device=self.data.device)
        typed = raw.to(self.data.device).view(self.data.dtype)
        self.data[index] = typed.view(len(pages), *self.data.shape[1:])

    def export_pages(self, pages: Sequence[int], tokens: int) -> torch.Tensor:
        """The same copy on the CPU."""
        return self.copy_pages(pages, tokens).cpu()

    def import_pages(self, pages: Sequence[int], raw: bytearray) -> None:
        """Fill pages with what `export_pages` gave."""
        self.fill_pages(pages, torch.frombuffer(raw, dtype=torch.uint8).view(len(pages), -1))

    def check_integrity(self) -> None:
        """Raise IntegrityError unless each page is either taken or free once."""
        if len(set(self._free)) != len(self._free):
            raise IntegrityError("a page is in the free list twice")
        free = frozenset(self._free)
        for page in range(self.total):
            if self._taken[page] == (page in free):
                raise IntegrityError(f"page {page} is neither free nor taken, or both")
