"""How commands speak: one JSON object or readable text on stdout, logs and errors on stderr, exit
status 0 (ok), 2 (the input is at fault) or 1 (something failed)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, NoReturn

import typer

from app.errors import AlreadyServing, AppError
from backend.errors import BackendError, RequestTooLarge
from retrieval.errors import ParseError, RetrievalError

BAD_INPUT = 2
FAILURE = 1
INTERRUPTED = 130

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout.", show_default=False)
]
DataDirOption = Annotated[
    str | None,
    typer.Option("--data-dir", help="Folder of database and files.", show_default=False),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", help="Catalogue name, checkpoint folder or .gguf file.", show_default=False
    ),
]


def emit(body: Mapping[str, object]) -> None:
    """Prints the one JSON object of a command."""
    typer.echo(json.dumps(body, ensure_ascii=False))


def note(message: str) -> None:
    """Says something to the person at the terminal, on stderr."""
    typer.echo(message, err=True)


@contextmanager
def reporting(as_json: bool) -> Iterator[None]:
    """Turns known errors into a message, for JSON readers into an object as well, and an exit
    status. Unknown ones keep their trace: they are defects."""
    try:
        yield
    except AppError as error:
        at_fault = error.status < 500 or isinstance(error, AlreadyServing)
        fail(as_json, error.code, error.message, BAD_INPUT if at_fault else FAILURE)
    except RetrievalError as error:
        code = error.code if isinstance(error, ParseError) else "retrieval_error"
        fail(as_json, code, str(error), BAD_INPUT)
    except BackendError as error:
        at_fault = isinstance(error, RequestTooLarge)
        fail(as_json, "engine_error", str(error), BAD_INPUT if at_fault else FAILURE)


def fail(as_json: bool, code: str, message: str, status: int = FAILURE) -> NoReturn:
    """Says what is wrong and ends the command."""
    if as_json:
        emit({"error": {"code": code, "message": message}})
    note(f"fineprint: {message}")
    raise typer.Exit(status)
