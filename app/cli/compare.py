"""`fineprint compare`. Reads two files; needs neither a model nor a database. The table is made in
`app.cli.comparison_table`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, emit, reporting


def command(
    old: Annotated[Path, typer.Argument(metavar="OLD", show_default=False)],
    new: Annotated[Path, typer.Argument(metavar="NEW", show_default=False)],
    as_json: JsonOption = False,
) -> None:
    """Compare two versions of a contract, clause by clause, figures first."""
    import dataclasses

    from app.comparisons import compare_files

    with reporting(as_json):
        result = compare_files(old, new)
    if as_json:
        emit({"object": "comparison", **dataclasses.asdict(result)})
        return
    from app.cli.comparison_table import show

    show(result)
