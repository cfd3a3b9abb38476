"""One card's tuning table, as it stands in its file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from backend.errors import BackendError

Choice = Mapping[str, int]
"""A kernel's constants by name."""


@dataclass(frozen=True, slots=True)
class Card:
    """A kind of GPU: its name as the driver says it, and its compute capability."""

    name: str
    capability: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Attempt:
    """Constants that were tried: their speed, or why there is none."""

    choice: Choice
    speed: float | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """The constants of one op for heads of one width (a power of two) in some dtypes.

    `attempts` are what they were chosen from, in `unit`, measured `on` an input; `source` names
    the command or record, and versions.
    """

    op: str
    width: int
    dtypes: tuple[str, ...]
    choice: Choice
    unit: str
    on: str
    source: str
    attempts: tuple[Attempt, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """All entries of one card."""

    card: Card
    entries: tuple[Entry, ...]

    @property
    def file_name(self) -> str:
        """NVIDIA H200 -> nvidia-h200.json"""
        return re.sub("[^a-z0-9]+", "-", self.card.name.lower()).strip("-") + ".json"

    def with_entries(self, newer: tuple[Entry, ...]) -> Table:
        """The table with `newer` in the place of entries for the same op, width and dtypes."""
        places = {(entry.op, entry.width, entry.dtypes) for entry in newer}
        kept = [e for e in self.entries if (e.op, e.width, e.dtypes) not in places]
        return replace(self, entries=(*kept, *newer))

    def text(self) -> str:
        """The content of its file: an attempt a line."""
        entries = ",\n".join(_entry_text(entry) for entry in self.entries)
        return f'{{"card": {_line(asdict(self.card))},\n"entries": [\n{entries}\n]}}\n'


def read_table(path: Path) -> Table:
    """The table in a file. Raises BackendError for one that is none."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        major, minor = raw["card"]["capability"]
        return Table(
            Card(str(raw["card"]["name"]), (int(major), int(minor))),
            tuple(_entry(one) for one in raw["entries"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackendError(
            f"{path} is no tuning table ({error!r}): remove it, or make it again with "
            "`fineprint bench kernels --tune`"
        ) from error


def _entry_text(entry: Entry) -> str:
    fields = asdict(entry)
    attempts = ",\n  ".join(_line(one) for one in fields.pop("attempts"))
    lines = [f" {_line(name)}: {_line(value)}" for name, value in fields.items()]
    return "{" + ",\n".join(lines)[1:] + f',\n "attempts": [\n  {attempts}]}}'


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _entry(raw: Mapping[str, Any]) -> Entry:
    return Entry(
        op=str(raw["op"]),
        width=int(raw["width"]),
        dtypes=tuple(str(name) for name in raw["dtypes"]),
        choice=_choice(raw["choice"]),
        unit=str(raw["unit"]),
        on=str(raw["on"]),
        source=str(raw["source"]),
        attempts=tuple(_attempt(one) for one in raw["attempts"]),
    )


def _attempt(raw: Mapping[str, Any]) -> Attempt:
    speed = raw["speed"]
    return Attempt(
        _choice(raw["choice"]), None if speed is None else float(speed), str(raw["problem"])
    )


def _choice(raw: Mapping[str, Any]) -> Choice:
    return {str(name): int(value) for name, value in raw.items()}
