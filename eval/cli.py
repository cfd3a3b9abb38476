"""`fineprint eval`: question sets, runs, reports. A command's work is loaded when it is called."""

from __future__ import annotations

import typer

from eval.runs import command as run_command

commands = typer.Typer(
    help="Measure answers on question sets, and compare runs.", no_args_is_help=True
)
commands.command("run")(run_command.command)
