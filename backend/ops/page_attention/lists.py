"""The page lists of a batch of requests, as the kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from kvstore.formats.packed import PackedFormat
from kvstore.types import PAGE_TOKENS, PageTable


@dataclass(frozen=True, slots=True)
class PageLists:
    """Page lists one after another, all int32 on one device.

    `refs` [pages, 4]: page, first token of it, tokens, position of the first token; `requests`
    [requests, 5 or more]: first page of the list, pages, first query row, query rows, tokens of the
    list. Positions count up from 0 in the order of a list. The last tokens of a list are those of
    the query rows: row r of n stands at position tokens - n + r and sees up to itself. What refs
    name beyond the tokens of a list is not there.
    """

    refs: torch.Tensor
    requests: torch.Tensor
    rows: int
    most_rows: int
    most_pages: int
    positions: int


@dataclass(frozen=True, slots=True)
class PackedPages:
    """Further pages of the same requests, in a pool of a packed format.

    `data` [page, layer, K or V, kv_head, bytes]. `refs` are as those of `PageLists`, `requests`
    [requests, 5 or more] too, but for a list that may have no page. The pages of both lists of a
    request together hold its tokens, each position once.
    """

    data: torch.Tensor
    form: PackedFormat
    refs: torch.Tensor
    requests: torch.Tensor
    most_pages: int


def page_lists(
    tables: Sequence[PageTable], rows: Sequence[int], device: torch.device | str = "cpu"
) -> PageLists:
    """Lists of a batch: one table and a number of query rows for each request.

    Raises ValueError for an empty batch, for tokens outside a page, and for more query rows than
    tokens.
    """
    nothing = PageTable(())
    plain, _ = _laid_out([(table, nothing, nothing) for table in tables], rows)
    return plain.on(device)


def mixed_lists(
    tables: Sequence[tuple[PageTable, PageTable, PageTable]],
    rows: Sequence[int],
    data: torch.Tensor,
    form: PackedFormat,
) -> tuple[PageLists, PackedPages]:
    """Lists that are packed in their middle, as a question's: sinks, evidence, the question itself.

    Of each request the pages before the packed ones, those (of `data`, packed in `form`; there may
    be none), and the pages after them, which hold the query rows at least. Raises ValueError as
    `page_lists` does.
    """
    for (_, _, after), count in zip(tables, rows, strict=False):
        if count > after.tokens:
            raise ValueError(f"{count} query rows behind packed pages, which have {after.tokens}")
    plain, packed = _laid_out(tables, rows)
    lists, others = plain.on(data.device), packed.on(data.device)
    return lists, PackedPages(data, form, others.refs, others.requests, others.most_pages)


def _laid_out(
    tables: Sequence[tuple[PageTable, PageTable, PageTable]], rows: Sequence[int]
) -> tuple[_Lists, _Lists]:
    if not tables or len(tables) != len(rows):
        raise ValueError(f"{len(tables)} page lists and {len(rows)} numbers of query rows")
    plain, packed = _Lists([], []), _Lists([], [])
    row = 0
    for pieces, count in zip(tables, rows, strict=True):
        tokens = sum(piece.tokens for piece in pieces)
        if not 0 < count <= tokens:
            raise ValueError(f"{count} query rows on a list of {tokens} tokens")
        firsts = len(plain.refs), len(packed.refs)
        position = 0
        for piece, lists in zip(pieces, (plain, packed, plain), strict=True):
            position = lists.append(piece, position)
        for lists, first in zip((plain, packed), firsts, strict=True):
            lists.requests.append((first, len(lists.refs) - first, row, count, tokens))
        row += count
    return plain, packed


@dataclass(frozen=True, slots=True)
class _Lists:
    """Lists that are being laid out."""

    refs: list[tuple[int, int, int, int]]
    requests: list[tuple[int, int, int, int, int]]

    def append(self, table: PageTable, position: int) -> int:
        """Pages from `position` on; returns the position behind them."""
        for ref in table.refs:
            if not 0 <= ref.first < ref.first + ref.count <= PAGE_TOKENS:
                raise ValueError(f"{ref} names tokens outside [0, {PAGE_TOKENS})")
            self.refs.append((ref.page, ref.first, ref.count, position))
            position += ref.count
        return position

    def on(self, device: torch.device | str) -> PageLists:
        """Their tensors."""
        return PageLists(
            refs=torch.tensor(self.refs, dtype=torch.int32).view(-1, 4).to(device),
            requests=torch.tensor(self.requests, dtype=torch.int32).to(device),
            rows=sum(request[3] for request in self.requests),
            most_rows=max(request[3] for request in self.requests),
            most_pages=max(request[1] for request in self.requests),
            # A page's rotation starts before its first token in use, so queries turn a little
            # further.
            positions=max(request[4] for request in self.requests) + PAGE_TOKENS,
        )
