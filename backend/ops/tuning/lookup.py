"""Finds a kernel's constants for a card among the tables: the process's own, then the shipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

from backend.errors import BackendError
from backend.ops.tuning.table import Card, Choice, Entry, Table, read_table

_T = TypeVar("_T")
_D = TypeVar("_D")

SHIPPED = Path(__file__).parent / "tables"
FOLDER_NAME = "tuning"
"""Of the tables that are made on a machine, in its cache folder."""

_own: list[Path] = []
_tried: dict[str, Choice] = {}


def use_tables(folder: Path) -> None:
    """From now on this process asks the tables in `folder`, which need not exist, before the
    shipped ones. Tables are read when the first kernel asks."""
    _own[:] = [folder]
    _tables.cache_clear()
    find_entry.cache_clear()


@contextmanager
def trying(op: str, choice: Choice) -> Iterator[None]:
    """Inside, `op` gets these constants whatever tables say: for measuring candidates, one at a
    time in a process."""
    _tried[op] = choice
    try:
        yield
    finally:
        del _tried[op]


def tuned(
    op: str,
    width: int,
    dtype: torch.dtype,
    device: torch.device,
    make: Callable[..., _T],
    default: _D,
) -> _T | _D:
    """What `make` gives for the constants of the entry that `find_entry` finds for `device`, or
    `default` where there is none; while `trying` is on, for those. Raises BackendError for
    constants of a table that `make` refuses."""
    if op in _tried:
        return make(**_tried[op])
    card = card_of(device)
    entry = None if card is None else find_entry(op, width, dtype, card)
    if entry is None:
        return default
    try:
        return make(**entry.choice)
    except (TypeError, ValueError) as error:
        raise BackendError(
            f"A tuning table in {_places()} has {dict(entry.choice)} for {op} at width {width} "
            f"({error}): remove it, or make it again with `fineprint bench kernels --tune`"
        ) from error


def card_of(device: torch.device) -> Card | None:
    """The card of a CUDA device; None for others, which have no tables."""
    if device.type != "cuda":
        return None
    properties = torch.cuda.get_device_properties(device)
    return Card(properties.name, (properties.major, properties.minor))


@cache
def find_entry(op: str, width: int, dtype: torch.dtype, card: Card) -> Entry | None:
    """The entry for this card, else that of another card of the same compute capability: it has
    the same shared memory and instructions, so that the kernel runs, if not at its best. None when
    no such card was tuned. Raises BackendError for a file that is no table."""
    name = str(dtype).removeprefix("torch.")
    fitting = [
        (table.card, entry)
        for table in _tables()
        for entry in table.entries
        if entry.op == op and entry.width == width and name in entry.dtypes
    ]
    same = [entry for known, entry in fitting if known.name == card.name]
    alike = [entry for known, entry in fitting if known.capability == card.capability]
    return next(iter((*same, *alike)), None)


def _places() -> str:
    return " or ".join(str(folder) for folder in (*_own, SHIPPED))


@cache
def _tables() -> tuple[Table, ...]:
    folders = (*_own, SHIPPED)
    return tuple(read_table(path) for folder in folders for path in sorted(folder.glob("*.json")))
