"""Options that several benchmarks share, and how their results are given out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import emit, note

DeviceOption = Annotated[
    str | None, typer.Option("--device", help="auto, cpu or cuda[:n].", show_default=False)
]
PrecisionOption = Annotated[
    str | None,
    typer.Option("--precision", help="auto, float32, bfloat16 or int8.", show_default=False),
]
BlockOption = Annotated[
    int | None,
    typer.Option("--block-tokens", help="Tokens of one block of reading.", show_default=False),
]
BudgetOption = Annotated[
    int | None,
    typer.Option("--kv-budget", help="Memory for KV pages, in MB.", show_default=False),
]
ShapeOption = Annotated[
    str | None,
    typer.Option(
        "--shape",
        help="8b: random weights of that shape, on a GPU, with the model's tokenizer.",
        show_default=False,
    ),
]
LinearOption = Annotated[
    str | None,
    typer.Option(
        "--linear-format", help="dense or fp8: products of a layer on a GPU.", show_default=False
    ),
]
RoundsOption = Annotated[
    int, typer.Option("--rounds", min=1, help="Rounds; results are their medians.")
]
SeedOption = Annotated[int, typer.Option("--seed", min=0, help="Chooses texts and samples.")]
TextOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--text", help="Files whose sentences are used [the sample contracts].", show_default=False
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option("--out", help="Write the record to this file too.", show_default=False),
]


def give_out(record: Mapping[str, object], tables: str, *, as_json: bool, out: Path | None) -> None:
    """The record as JSON or the tables on stdout, and the record in a file when one is named."""
    if out is not None:
        from eval.benchmarks.record import write_record

        write_record(out, record)
        note(f"record: {out}")
    if as_json:
        emit(record)
    else:
        typer.echo(tables)
