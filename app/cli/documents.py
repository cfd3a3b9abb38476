"""`fineprint documents`: what is in the library. Works beside a running server."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from app.cli.reporting import DataDirOption, JsonOption, emit, reporting

if TYPE_CHECKING:
    from app.documents import DocumentRecord
    from app.library import Library

commands = typer.Typer(help="List, show and delete documents.", no_args_is_help=True)

DocumentArgument = Annotated[
    str, typer.Argument(metavar="ID", help="As `documents list` shows it.", show_default=False)
]


@commands.command("list")
def list_documents(
    limit: Annotated[int, typer.Option(min=1, max=100, help="Documents at most.")] = 100,
    after: Annotated[
        str | None, typer.Option(help="Id of the last document seen.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Documents, the newest first."""
    with reporting(as_json), _opened(data_dir) as library:
        page = library.list(limit, after, "desc")
    if as_json:
        emit(
            {
                "object": "list",
                "data": [record_fields(record) for record in page.data],
                "has_more": page.has_more,
                "total": page.total,
            }
        )
        return
    for record in page.data:
        typer.echo(f"{record.id}  {record.status:<11}  {record.total_tokens:>9,}  {record.name}")
    typer.echo(f"{page.total} documents" + (", more with --after" if page.has_more else ""))


@commands.command("show")
def show_document(
    document_id: DocumentArgument, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """State, size and warnings of one document."""
    with reporting(as_json), _opened(data_dir) as library:
        fields = record_fields(library.get(document_id))
    if as_json:
        emit(fields)
        return
    for name, value in fields.items():
        typer.echo(f"{name}: {value}")


@commands.command("delete")
def delete_document(
    document_id: DocumentArgument, as_json: JsonOption = False, data_dir: DataDirOption = None
) -> None:
    """Remove a document, its file and everything computed from it."""
    with reporting(as_json), _opened(data_dir) as library:
        library.delete(document_id)
    if as_json:
        emit({"id": document_id, "object": "document", "deleted": True})
        return
    typer.echo(f"deleted {document_id}")


def record_fields(record: DocumentRecord) -> dict[str, object]:
    """A record as JSON, with the time as text."""
    return {**dataclasses.asdict(record), "created_at": record.created_at.isoformat()}


@contextmanager
def _opened(data_dir: str | None) -> Iterator[Library]:
    # Here, not above: other commands must not wait for the database's libraries.
    from app.cli.catalogue import open_catalogue
    from app.settings import load_settings

    with open_catalogue(load_settings(data_dir=data_dir)) as library:
        yield library
