"""Lays a group of blocks out for one launch: its tokens, which rows each block sees, where their KV
goes.

It knows page numbers and rows but no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from backend.ops.block_attention import BlockRead, ReadPlan, plan_reads
from backend.ops.page_codec import page_rows
from kvstore.types import PAGE_TOKENS

Place = tuple[int, int]
"""(page, token in the page)."""


@dataclass(frozen=True, slots=True)
class GroupedBlock:
    """One block of a group: its tokens, the reserved pages that take its KV, and how many of the
    group's anchors it sees (the first ones)."""

    token_ids: Sequence[int]
    pages: Sequence[int]
    anchors: int = 0


@dataclass(frozen=True, slots=True)
class GroupLayout:
    """`token_ids` of all blocks in a row [n]; token i is stored at (`pages[i]`, `slots[i]`).
    `page_rows` says the same page by page (see `backend.ops.page_codec.page_rows`). `outside` are
    the anchors that lie in no block of the group: their KV must be in the pool, and stands behind
    the sinks among the plan's extra rows."""

    plan: ReadPlan
    outside: tuple[Place, ...]
    token_ids: torch.Tensor
    pages: torch.Tensor
    slots: torch.Tensor
    page_rows: torch.Tensor


def lay_out(
    blocks: Sequence[GroupedBlock],
    sinks: int,
    anchors: Sequence[Place],
    device: torch.device,
) -> GroupLayout:
    """The layout of blocks that see `sinks` tokens of one prefix and the first of `anchors`.

    An anchor may lie in the pages of a block of the group: a layer's keys of all blocks are there
    before any block attends.
    """
    starts: dict[int, int] = {}
    first = 0
    for block in blocks:
        starts.update((page, first + at * PAGE_TOKENS) for at, page in enumerate(block.pages))
        first += len(block.token_ids)
    outside = tuple(place for place in anchors if place[0] not in starts)
    extra = sinks + len(outside)
    numbers = iter(range(sinks, extra))
    rows = [
        extra + starts[page] + slot if page in starts else next(numbers) for page, slot in anchors
    ]
    return GroupLayout(
        plan=_plan(blocks, sinks, torch.tensor([*range(sinks), *rows]), extra, device),
        outside=outside,
        token_ids=torch.tensor([id_ for block in blocks for id_ in block.token_ids]).to(device),
        pages=torch.cat([_pages(block) for block in blocks]).to(device),
        slots=torch.cat([torch.arange(len(block.token_ids)) % PAGE_TOKENS for block in blocks]).to(
            device
        ),
        page_rows=page_rows([(len(block.token_ids), block.pages) for block in blocks], device),
    )


def _plan(
    blocks: Sequence[GroupedBlock],
    sinks: int,
    prefix: torch.Tensor,
    extra: int,
    device: torch.device,
) -> ReadPlan:
    reads = []
    first = 0
    for block in blocks:
        last = first + len(block.token_ids)
        reads.append(BlockRead(first, last, seen=sinks + block.anchors))
        first = last
    prefixes = [prefix] if len(prefix) else []
    return plan_reads(reads, prefixes, extra_rows=extra, device=device)


def _pages(block: GroupedBlock) -> torch.Tensor:
    pages = torch.tensor(block.pages).repeat_interleave(PAGE_TOKENS)
    return pages[: len(block.token_ids)]
