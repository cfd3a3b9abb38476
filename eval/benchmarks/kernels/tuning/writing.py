"""Tunes ops on this card, and keeps the result in the card's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import torch

from app.errors import BadParameter
from app.storage import atomic_write
from backend.ops.tuning import Card, Entry, Table, read_table
from eval.benchmarks.kernels.case import Setup
from eval.benchmarks.kernels.clock import time_ms
from eval.benchmarks.kernels.tuning import (
    block_attention,
    few_rows_linear,
    latent_block_attention,
    page_attention,
    row_ops,
)
from eval.benchmarks.kernels.tuning.loop import Tunable, tune

TUNABLES: Mapping[str, Callable[[Setup, torch.dtype], Iterator[Tunable]]] = {
    "block_attention": block_attention.tunables,
    "page_attention": page_attention.tunables,
    "page_attention_warps": page_attention.warp_tunables,
    "add_norm": row_ops.add_norms,
    "gated_unit": row_ops.gated_units,
    "latent_block_attention": latent_block_attention.tunables,
    "few_rows_linear": few_rows_linear.tunables,
}
"""Ops whose constants come from the tables, by name."""


def tune_ops(
    ops: Sequence[str],
    setup: Setup,
    card: Card,
    folder: Path,
    source: str,
    on_step: Callable[[str], None],
) -> tuple[Path, tuple[Entry, ...]]:
    """Tries all candidates of the named ops, or of all, on the card of `setup`, and writes what was
    found into the card's table in `folder`, where it replaces older entries. Written after each op
    and head size, so that an end half-way loses little.

    Raises BadParameter for an op that has no candidates, BackendError for a table that is none and
    when no candidate runs.
    """
    for op in ops:
        if op not in TUNABLES:
            raise BadParameter(f"Nothing to tune of {op!r}; there are {', '.join(TUNABLES)}")
    table = Table(card, ())
    path = folder / table.file_name
    if path.exists():
        table = Table(card, read_table(path).entries)
    found: list[Entry] = []
    for op in ops or TUNABLES:
        for tunable in TUNABLES[op](setup, torch.bfloat16):
            found.append(tune(tunable, partial(_timed, setup.device), source, on_step))
            table = table.with_entries((found[-1],))
            folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                file.write(table.text().encode())
    return path, tuple(found)


def _timed(device: torch.device, call: Callable[[], torch.Tensor]) -> float:
    return time_ms(call, device)
