"""`fineprint eval`: question sets, runs, reports. A command's work is loaded when it is called."""

from __future__ import annotations

import typer

from eval.reports import command as report_command
from eval.runs import command as run_command
from eval.tasks.commands import convert, generate

commands = typer.Typer(
    help="Measure answers on question sets, and compare runs.", no_args_is_help=True
)
commands.command("run")(run_command.command)
commands.command("generate")(generate)
commands.command("convert")(convert)
commands.command("report")(report_command.command)
