"""`fineprint eval`: question sets, runs, reports. Each command's work is loaded when it is called."""

from __future__ import annotations

import typer

commands = typer.Typer(
    help="Measure answers on question sets, and compare runs.", no_args_is_help=True
)
