"""Records of `fineprint bench`, as a report reads them. Measures nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval.errors import RunError
from eval.reports.facts import hardware, revision, versions
from eval.reports.types import Cell, Row, Table


@dataclass(frozen=True, slots=True)
class BenchRecord:
    """One file. `name` is the file's, `bench` says which benchmark made it."""

    name: str
    bench: str
    command: str
    environment: Mapping[str, Any]
    config: Mapping[str, Any]
    rounds: Sequence[Mapping[str, Any]]
    results: Mapping[str, Any]


def load_bench(path: Path) -> BenchRecord:
    """Reads one record. Raises RunError for a file that is none."""
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path} can't be read: {error.strerror}. Correct --bench.") from error
    except ValueError as error:
        raise RunError(f"{path} is no JSON: {error}. --bench takes a record of --out.") from error
    try:
        return BenchRecord(
            name=path.name,
            bench=str(body["bench"]),
            command=str(body["command"]),
            environment=dict(body["environment"]),
            config=dict(body["config"]),
            rounds=[dict(one) for one in body["rounds"]],
            results=dict(body["results"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(
            f"{path} is no record of fineprint bench (missing or odd: {error}). Make one with "
            "fineprint bench … --out FILE."
        ) from error


def bench_table(records: Sequence[BenchRecord]) -> Table:
    """What each benchmark was, one column a file."""
    facts = (
        ("benchmark", [record.bench for record in records]),
        ("command", [record.command for record in records]),
        ("rounds", [str(len(record.rounds)) for record in records]),
        ("clock", [str(record.config.get("clock") or "not stated") for record in records]),
        ("hardware", [hardware(record.environment) for record in records]),
        ("versions", [versions(record.environment) for record in records]),
        ("git revision", [revision(record.environment) for record in records]),
    )
    return Table(
        "Benchmarks",
        "record",
        tuple(record.name for record in records),
        tuple(Row(label, tuple(Cell(value) for value in values)) for label, values in facts),
        words=True,
        notes=("Figures are medians of the rounds; bars in charts reach over all rounds.",),
    )
