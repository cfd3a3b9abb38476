"""Pages of contexts' evidence as the store packs them: copied byte by byte, decoded by attention.

Half the bytes of a copy in the model's own dtype, or a third, and as many less to read in every
step. What attention sees is the same as when pages are decoded first, but for the rounding of the
decoded numbers to the model's dtype, which is left out. It knows no model.
"""

from __future__ import annotations

import torch

from backend.errors import BackendError
from backend.ops.page_attention import PackedPages
from kvstore.formats.packed import PackedFormat
from kvstore.pool import PagePool
from kvstore.types import PageTable


class PackedArena:
    """A pool in a packed format, and the page lists of contexts in it.

    `table` [contexts + 1, pages of a context, 4] as that of `Arena`, with the same rows; a row's
    pages beyond those of its context stand for nothing. Owned by the engine's thread.
    """

    def __init__(self, pool: PagePool, *, contexts: int = 64, context_pages: int = 1024) -> None:
        """Raises BackendError for a pool that keeps pages as they are, or keys alone."""
        if not isinstance(pool.format, PackedFormat) or pool.data.shape[2] != 2:
            raise BackendError(f"{pool.format.name} pages are not read by the packed kernels")
        self.pool = pool
        self.form = pool.format
        self.contexts = contexts
        self.context_pages = context_pages
        self.table = torch.zeros((contexts + 1, context_pages, 4), dtype=torch.int32)
        self.table = self.table.to(pool.data.device)
        self._refs = self.table.view(-1, 4)

    def fits(self, pages: int) -> bool:
        """Whether there is room for a context of so many pages now."""
        return pages <= min(self.pool.free, self.context_pages)

    def copy(self, row: int, source: PagePool, evidence: PageTable, start: int) -> tuple[int, ...]:
        """Copy the pages of `evidence` out of `source` into the list of `row`, their tokens at
        positions from `start` on. Returns the copies.

        Raises PoolExhausted without room, and BackendError for pages of another format.
        """
        if source.format.name != self.form.name or source.shape != self.pool.shape:
            raise BackendError(f"{source.format.name} pages in an arena of {self.form.name}")
        pages = self.pool.allocate(len(evidence.refs))
        try:
            refs = []
            for page, ref in zip(pages, evidence.refs, strict=True):
                refs.append((page, ref.first, ref.count, start))
                start += ref.count
            device = self.pool.data.device
            named = torch.tensor(refs, dtype=torch.int32).to(device)
            self.table[row, : len(refs)] = named
            wanted = torch.tensor([ref.page for ref in evidence.refs]).to(device)
            self.pool.data.index_copy_(0, named[:, 0].long(), source.data.index_select(0, wanted))
        except BaseException:
            self.pool.release(pages)
            raise
        return pages

    def lists(self, requests: torch.Tensor, most_pages: int) -> PackedPages:
        """The lists of a step, `requests` as `page_attention` reads them."""
        return PackedPages(
            self.pool.data, self.form, self._refs, requests, min(most_pages, self.context_pages)
        )
