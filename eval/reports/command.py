"""`fineprint eval report`. Its work is loaded when it is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import JsonOption, emit, note, reporting


def command(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[DIR]...", help="Folders of fineprint eval run.", show_default=False
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where report.html and report.md go.")] = Path(
        "eval-report"
    ),
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Evaluation report",
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Run that others are compared with, by letter or name; default: the first.",
            show_default=False,
        ),
    ] = None,
    bench: Annotated[
        list[Path] | None,
        typer.Option(
            "--bench", help="Record of a benchmark (--out); may be repeated.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare runs and benchmarks on one page, with a table for Markdown beside it."""
    from eval.reports.writing import write_report

    with reporting(as_json):
        written = write_report(folders or [], bench or [], out=out, title=title, baseline=baseline)
    for warning in written.warnings:
        note(warning)
    if as_json:
        emit(written.fields())
    else:
        if written.runs:
            note(written.sentence or "No default is named: that takes two runs of our own modes.")
        typer.echo(f"{written.html}\n{written.markdown}")
