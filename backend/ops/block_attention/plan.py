"""Where the keys of every block of a launch come from and at which positions they stand.

A plan is made once for a launch and serves all layers. It knows no tensors of a model: only rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

SEGMENT_ROWS = 128
"""Every run of key rows starts at a multiple of this and is padded to one with zeros, so that no
tile of a kernel (at most this many keys) reads a row of another document."""


@dataclass(frozen=True, slots=True)
class BlockRead:
    """One block: the tokens [first, last) of the launch.

    In view of every token of the block are the first `seen` rows of prefix list `prefix` (sinks
    and anchors) and the `lead` tokens before `first`; inside the block attention is causal.
    Positions count up from 0 in that order.
    """

    first: int
    last: int
    prefix: int = 0
    seen: int = 0
    lead: int = 0

    @property
    def scores(self) -> int:
        """Scores that are not masked, per query head."""
        length = self.last - self.first
        return length * (self.seen + self.lead) + length * (length + 1) // 2


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """The key rows of a launch, one after another.

    `source` [rows]: row of `cat(extra, k)`, -1 for padding; `position` [rows]; `table`
    [blocks, 7]: first token, tokens, position of the first token, first prefix row, prefix rows,
    first own row, lead. All int32 on the plan's device. `longest` is the most tokens of a block.
    """

    blocks: tuple[BlockRead, ...]
    prefixes: tuple[torch.Tensor, ...]
    extra_rows: int
    tokens: int
    longest: int
    positions: int
    source: torch.Tensor
    position: torch.Tensor
    table: torch.Tensor

    @property
    def scores(self) -> int:
        """Scores of the whole launch that are not masked, per query head."""
        return sum(block.scores for block in self.blocks)


def plan_reads(
    blocks: Sequence[BlockRead],
    prefixes: Sequence[torch.Tensor] = (),
    *,
    extra_rows: int = 0,
    device: torch.device | str = "cpu",
) -> ReadPlan:
    """The plan of a launch whose blocks follow one another from token 0 on.

    `prefixes`: lists of rows of `cat(extra, k)`, where `extra` has `extra_rows` rows (keys that are
    no tokens of this launch). Blocks that see a longer and a shorter part of one list share its
    rows. Raises ValueError for ranges that don't fit.
    """
    tokens = _check(blocks, prefixes, extra_rows)
    sources: list[torch.Tensor] = []
    positions: list[torch.Tensor] = []
    rows = 0

    def add(source: torch.Tensor, first_position: int) -> int:
        nonlocal rows
        start, count = rows, len(source)
        padding = -count % SEGMENT_ROWS
        sources.extend((source.to(torch.int32), torch.full((padding,), -1, dtype=torch.int32)))
        last = first_position + count + padding
        positions.append(torch.arange(first_position, last, dtype=torch.int32))
        rows += count + padding
        return start

    listed = [rows_.cpu() for rows_ in prefixes]
    starts = [add(rows_, 0) for rows_ in listed]
    table = []
    for block in blocks:
        lead = extra_rows + block.first - block.lead
        own = add(torch.arange(lead, extra_rows + block.last), block.seen)
        prefix = starts[block.prefix] if block.seen else 0
        position = block.seen + block.lead
        length = block.last - block.first
        table.append((block.first, length, position, prefix, block.seen, own, block.lead))
    return ReadPlan(
        blocks=tuple(blocks),
        prefixes=tuple(listed),
        extra_rows=extra_rows,
        tokens=tokens,
        longest=max(block.last - block.first for block in blocks),
        # All rows of a list are rotated, also those that no block sees.
        positions=max(
            *(len(rows_) for rows_ in listed),
            *(block.seen + block.lead + block.last - block.first for block in blocks),
            0,
        ),
        source=torch.cat(sources).to(device),
        # Padding may stand past the last position: it is never rotated.
        position=torch.cat(positions).to(device),
        table=torch.tensor(table, dtype=torch.int32).to(device),
    )


def _check(blocks: Sequence[BlockRead], prefixes: Sequence[torch.Tensor], extra_rows: int) -> int:
    if not blocks:
        raise ValueError("a plan needs at least one block")
    end = 0
    for block in blocks:
        if block.first != end or block.last <= block.first:
            raise ValueError(f"{block} should start at token {end} and hold at least one token")
        if not 0 <= block.lead <= block.first:
            raise ValueError(f"{block}: there are no {block.lead} tokens before {block.first}")
        if block.seen and not 0 <= block.prefix < len(prefixes):
            raise ValueError(f"{block}: there are {len(prefixes)} prefix lists")
        if not 0 <= block.seen <= (len(prefixes[block.prefix]) if block.seen else 0):
            raise ValueError(f"{block}: its prefix list has {len(prefixes[block.prefix])} rows")
        end = block.last
    for rows in prefixes:
        if rows.dim() != 1 or rows.is_floating_point():
            raise ValueError("a prefix list is a one-dimensional tensor of row numbers")
        if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < extra_rows + end:
            raise ValueError(f"a prefix list names rows outside [0, {extra_rows + end})")
    return end
