"""`fineprint ask`. Its work is in `app.cli.asking`, loaded when it is needed: other commands must
not wait for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import DataDirOption, JsonOption, ModelOption, emit, reporting


def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", show_default=False)],
    question: Annotated[
        str, typer.Option("--question", "-q", help="What you want to know.", show_default=False)
    ],
    as_json: JsonOption = False,
    model: ModelOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Answer a question about one or more files."""
    from app.cli.asking import answer_fields, answer_files, show_account
    from app.logs import configure_logging
    from app.settings import load_settings

    with reporting(as_json):
        settings = load_settings(model=model, data_dir=data_dir)
        configure_logging(settings)
        answer = answer_files(settings, files, question, as_json=as_json)
    if as_json:
        emit(answer_fields(answer))
    else:
        show_account(answer)
