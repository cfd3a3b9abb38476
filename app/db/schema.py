"""The schema's history: bring a database to the newest state, or back. Does not know the rows."""

from __future__ import annotations

import threading
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util.exc import CommandError

from app.db.session import Database
from app.errors import Conflict

FOLDER = Path(__file__).parent / "migrations"

_alembic = threading.Lock()
"""Alembic keeps the running migration in module globals: one at a time in a process."""


def upgrade(database: Database, revision: str = "head") -> None:
    """Apply what is missing, in one transaction. Several processes may do this at once.

    Raises Conflict when the database was written by a newer program.
    """
    if revision == "head" and current(database) == newest():
        return
    _run(database, command.upgrade, revision)


def downgrade(database: Database, revision: str) -> None:
    """Take back everything after `revision` ("base": all tables and their data)."""
    _run(database, command.downgrade, revision)


def current(database: Database) -> str | None:
    """The revision the database is at; None when it is empty."""
    with database.read() as session:
        return MigrationContext.configure(session.connection()).get_current_revision()


def newest() -> str | None:
    """The revision this program needs."""
    return ScriptDirectory(str(FOLDER)).get_current_head()


def _run(database: Database, step: object, revision: str) -> None:
    config = Config()
    config.set_main_option("script_location", str(FOLDER).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    try:
        with _alembic, database.connection() as connection:
            config.attributes["connection"] = connection
            config.attributes["database"] = database
            step(config, revision)  # type: ignore[operator]
    except CommandError as error:
        raise Conflict(
            f"The database is at a state this program does not know ({error}). It was written by a "
            "newer version: start that one, or restore a backup.",
            code="database_too_new",
        ) from error
