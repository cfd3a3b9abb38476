"""What `bench kernels --tune` does and shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from rich.table import Table

from app.cli.reporting import note
from app.errors import BadParameter
from backend.ops.tuning import Entry, card_of
from eval.benchmarks.kernels.case import SHAPES, Setup
from eval.benchmarks.kernels.tuning.writing import tune_ops
from eval.benchmarks.options import give_out
from eval.benchmarks.record import make_record
from eval.benchmarks.tables import make_table, render, show


def tune_card(
    device: torch.device,
    ops: Sequence[str],
    folder: Path,
    seed: int,
    *,
    as_json: bool,
    out: Path | None,
) -> None:
    """Tunes the named ops (all without names) and gives out the record. Raises BadParameter without
    a GPU."""
    card = card_of(device)
    if card is None:
        raise BadParameter(
            "--tune measures a GPU's kernels: give --device cuda on a machine with one"
        )
    import triton

    source = (
        f"fineprint bench kernels --tune; torch {torch.__version__}, triton {triton.__version__}"
    )
    setup = Setup(device, seed, SHAPES["cuda"])
    path, entries = tune_ops(ops, setup, card, folder, source, note)
    record = make_record(
        "tuning",
        device=str(device),
        config={"ops": list(ops), "seed": seed, "shapes": [one.label for one in setup.shapes]},
        rounds=[],
        results={"table": str(path), "entries": [asdict(entry) for entry in entries]},
    )
    note(f"table: {path}")
    give_out(record, render(_table(entries)), as_json=as_json, out=out)


def _table(entries: Sequence[Entry]) -> Table:
    rows = []
    for entry in entries:
        speeds = {tuple(one.choice.items()): one.speed for one in entry.attempts}
        chosen = ", ".join(f"{name} {value}" for name, value in entry.choice.items())
        best, before = speeds[tuple(entry.choice.items())], entry.attempts[0].speed
        failed = sum(speed is None for speed in speeds.values())
        rows.append(
            [entry.op, str(entry.width), chosen, show(best, 1), show(before, 1), entry.unit,
             f"{len(speeds)}, {failed} failed"]
        )  # fmt: skip
    columns = ["op", "width", "chosen", "speed", "in use before", "unit", "tried"]
    return make_table("constants for this card", columns, rows)
