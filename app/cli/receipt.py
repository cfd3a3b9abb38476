"""`fineprint receipt`. Reads one file; needs neither a model nor a database. The table is made in
`app.cli.receipt_table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, emit, reporting


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Say what reading a file gives: pages, figures found and kept, and what was left out."""
    import dataclasses

    from app.receipts import receipt_of_file

    with reporting(as_json):
        result = receipt_of_file(file)
    if as_json:
        fields = dataclasses.asdict(result)
        counted = fields.pop("receipt")
        emit({"object": "receipt", **fields, **counted})
        return
    from app.cli.receipt_table import show

    show(result)
