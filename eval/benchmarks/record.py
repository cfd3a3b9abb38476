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
    """The record of a finished run. `rounds` keeps every figure that the `results` summarise."""
    return {
        "bench": bench,
        "command": shlex.join(["fineprint", *sys.argv[1:]]),
        "environment": environment(device),
        "config": dict(config),
        "results": dict(results),
        "rounds": [dict(figures) for figures in rounds],
    }


def write_record(path: Path, record: Mapping[str, object]) -> None:
    """Writes the record, whole or not at all. Raises StorageFull."""
    with atomic_write(path) as file:
        file.write((json.dumps(record, ensure_ascii=False, indent=1) + "\n").encode())
