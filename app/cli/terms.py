"""`fineprint terms`. Reads one file; needs neither a model nor a database. The table is made in
`app.cli.terms_table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, emit, reporting


def command(
    file: Annotated[Path, typer.Argument(metavar="FILE", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """List the key terms of a contract, each with its place, or "not stated"."""
    import dataclasses

    from app.key_terms import terms_of_file

    with reporting(as_json):
        result = terms_of_file(file)
    if as_json:
        emit({"object": "key_terms", **dataclasses.asdict(result)})
        return
    from app.cli.terms_table import show

    show(result)
