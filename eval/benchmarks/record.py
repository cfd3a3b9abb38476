"""What every benchmark leaves behind: one JSON object with figures and their conditions."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from app.storage import atomic_write
from eval.environment import environment

Fields = dict[str, object]


def make_record(
    bench: str,
    *,
    device: str,
    config: Mapping[str, object],
    rounds: Sequence[Mapping[str, object]],
    results: Mapping[str, object],
) -> Fields:
    """The record of a finished run. `rounds` keeps every figure that the `results` summarise, both
    with six digits."""
    return {
        "bench": bench,
        "command": shlex.join(["fineprint", *sys.argv[1:]]),
        "environment": environment(device),
        "config": dict(config),
        "results": _short(results),
        "rounds": _short(rounds),
    }


def write_record(path: Path, record: Mapping[str, object]) -> None:
    """Writes the record, whole or not at all. Raises StorageFull."""
    with atomic_write(path) as file:
        file.write((json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())


def _short(value: object) -> object:
    """The value with numbers of six digits."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, Mapping):
        return {key: _short(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_short(part) for part in value]
    return value
