"""The `fineprint` command. Results go to stdout, everything else to stderr.

Commands of higher packages (the page, evaluation, benchmarks) are found through the entry-point
group "fineprint.commands", so that this package imports none of them.
"""

from __future__ import annotations

import importlib.metadata
from typing import Annotated

import typer

from app.cli import ask, compare, db, doctor, documents, keys, models, receipt, settings, terms

COMMANDS_GROUP = "fineprint.commands"


def main() -> None:
    """Entry point of the console script."""
    build()()


def build() -> typer.Typer:
    """The whole command, with those that other packages add."""
    program = typer.Typer(
        help="Read long contracts, ask questions, get answers with checked quotes.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        add_completion=False,
    )
    program.callback()(_options)
    program.command("ask")(ask.command)
    program.command("compare")(compare.command)
    program.command("doctor")(doctor.command)
    program.command("receipt")(receipt.command)
    program.command("settings")(settings.command)
    program.command("terms")(terms.command)
    program.add_typer(documents.commands, name="documents")
    program.add_typer(models.commands, name="models")
    program.add_typer(db.commands, name="db")
    program.add_typer(keys.commands, name="keys")
    for entry in sorted(
        importlib.metadata.entry_points(group=COMMANDS_GROUP), key=lambda entry: entry.name
    ):
        added = entry.load()
        if isinstance(added, typer.Typer):
            program.add_typer(added, name=entry.name)
        else:
            program.command(entry.name)(added)
    return program


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fineprint {importlib.metadata.version('fineprint')}")
        raise typer.Exit


def _options(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    return None
