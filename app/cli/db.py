"""`fineprint db`: bring the database up to date, save it, bring it back."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from app.cli.reporting import DataDirOption, JsonOption, emit, note, reporting

commands = typer.Typer(help="Upgrade, back up and restore the data.", no_args_is_help=True)


@commands.command("upgrade")
def upgrade_command(as_json: JsonOption = False, data_dir: DataDirOption = None) -> None:
    """Create the database or bring its schema to this program's version."""
    from app.db.schema import current, upgrade
    from app.db.session import Database
    from app.settings import load_settings

    with reporting(as_json):
        settings = load_settings(data_dir=data_dir)
        database = Database(settings.database, busy_timeout_s=settings.busy_timeout_s)
        with closing(database):
            before = current(database)
            upgrade(database)
            after = current(database)
    if as_json:
        emit({"from": before, "to": after})
        return
    typer.echo(f"database at {after}" + ("" if before == after else f" (was {before})"))


@commands.command("backup")
def backup_command(
    target: Annotated[Path, typer.Argument(metavar="FILE.tar", show_default=False)],
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Save database and files to one tar file, also while a server runs."""
    from app.backup import backup
    from app.settings import load_settings

    with reporting(as_json):
        size = backup(load_settings(data_dir=data_dir), target.absolute())
    if as_json:
        emit({"file": str(target), "bytes": size})
        return
    typer.echo(f"{target}: {size:,} bytes")


@commands.command("restore")
def restore_command(
    source: Annotated[Path, typer.Argument(metavar="FILE.tar", show_default=False)],
    replace: Annotated[
        bool, typer.Option("--replace", help="Put data that is there aside.", show_default=False)
    ] = False,
    as_json: JsonOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Bring a backup back, with the server stopped."""
    from app.backup import restore
    from app.settings import load_settings

    with reporting(as_json):
        settings = load_settings(data_dir=data_dir)
        aside = restore(settings, source.absolute(), replace=replace)
    if as_json:
        emit(
            {"data_dir": str(settings.data_dir), "replaced": None if aside is None else str(aside)}
        )
        return
    if aside is not None:
        note(f"what was there is now in {aside}")
    typer.echo(f"restored {source} to {settings.data_dir}")
