"""The page lists of a batch of requests, as the kernel reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

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


def page_lists(
    tables: Sequence[PageTable], rows: Sequence[int], device: torch.device | str = "cpu"
) -> PageLists:
    """Lists of a batch: one table and a number of query rows for each request.

    Raises ValueError for an empty batch, for tokens outside a page, and for more query rows than
    tokens.
    """
    if not tables or len(tables) != len(rows):
        raise ValueError(f"{len(tables)} page lists and {len(rows)} numbers of query rows")
    refs: list[tuple[int, int, int, int]] = []
    requests: list[tuple[int, int, int, int, int]] = []
    row = 0
    for table, count in zip(tables, rows, strict=True):
        if not 0 < count <= table.tokens:
            raise ValueError(f"{count} query rows on a list of {table.tokens} tokens")
        requests.append((len(refs), len(table.refs), row, count, table.tokens))
        position = 0
        for ref in table.refs:
            if not 0 <= ref.first < ref.first + ref.count <= PAGE_TOKENS:
                raise ValueError(f"{ref} names tokens outside [0, {PAGE_TOKENS})")
            refs.append((ref.page, ref.first, ref.count, position))
            position += ref.count
        row += count
    return PageLists(
        refs=torch.tensor(refs, dtype=torch.int32).to(device),
        requests=torch.tensor(requests, dtype=torch.int32).to(device),
        rows=row,
        most_rows=max(rows),
        most_pages=max(len(table.refs) for table in tables),
        # A page's rotation starts before its first token in use, so queries turn a little further.
        positions=max(table.tokens for table in tables) + PAGE_TOKENS,
    )
