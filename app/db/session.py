"""Connections and transactions.

A `write` is one short transaction that holds the writer's lock from its start (SQLite: BEGIN
IMMEDIATE), so it can't fail half-way because another writer was quicker; a `read` sees one
snapshot and is never blocked by a writer (WAL).

Does not know the tables.
"""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from sqlalchemy import (
    Connection,
    CursorResult,
    Delete,
    Engine,
    Update,
    create_engine,
    event,
    func,
    select,
    text,
)
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from app.errors import AppError, DatabaseBusy, StorageFull

FULL_MARKS = ("database or disk is full", "No space left on device")
BUSY_MARKS = ("database is locked", "database table is locked")


class Database:
    """One database, for any number of threads.

    Raises DatabaseBusy when the lock can't be had within `busy_timeout_s` or the server can't be
    reached, StorageFull when the disk is full.
    """

    def __init__(self, url: str, *, busy_timeout_s: float = 30.0) -> None:
        self.url = make_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        if self.is_sqlite:
            if self.url.database:
                make_folder(Path(self.url.database).parent)
            connect_args: dict[str, Any] = {"timeout": busy_timeout_s}
        else:
            connect_args = {"connect_timeout": max(2, int(busy_timeout_s))}
        self.engine: Engine = create_engine(
            self.url,
            connect_args=connect_args,
            pool_size=16,
            max_overflow=48,
            pool_timeout=busy_timeout_s,
            pool_pre_ping=not self.is_sqlite,
        )
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin_sqlite)
        self._writer = self.engine.execution_options(immediate=True)
        self._reader = (
            self.engine
            if self.is_sqlite
            else self.engine.execution_options(isolation_level="REPEATABLE READ")
        )

    @contextmanager
    def read(self) -> Iterator[Session]:
        """A session on one snapshot. Write nothing in it: it is rolled back."""
        with _translated(self), Session(self._reader, autoflush=False) as session:
            yield session

    @contextmanager
    def write(self) -> Iterator[Session]:
        """A session that is committed at the end of the block, or rolled back whole."""
        with _translated(self), Session(self._writer) as session, session.begin():
            session.connection()  # begins, and waits for the lock, now
            yield session

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """A connection in a write transaction, for migrations."""
        with _translated(self), self._writer.begin() as connection:
            yield connection

    def lock(self, session: Session, name: str) -> None:
        """Wait for everyone else who locked `name`, until the transaction ends. SQLite has one
        writer at a time anyway."""
        if not self.is_sqlite:
            number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], signed=True)
            session.execute(select(func.pg_advisory_xact_lock(number)))

    def now(self, session: Session) -> float:
        """Seconds since 1970 by one clock for all processes: the server's, or this machine's for
        SQLite, which lives on one machine."""
        if self.is_sqlite:
            return time.time()
        return float(
            session.execute(text("SELECT extract(epoch FROM clock_timestamp())")).scalar_one()
        )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def changed(session: Session, statement: Update | Delete) -> int:
    """Execute; number of rows that matched."""
    return cast("CursorResult[Any]", session.execute(statement)).rowcount


def make_folder(path: Path) -> None:
    """Create a folder for our data, readable by its owner alone."""
    try:
        path.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise translate_os_error(error, path) from error


def translate_os_error(error: OSError, path: Path) -> AppError:
    """The AppError that says what to do about a failed write at `path`."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull(
            f"No space left at {path}. Free some space, or move the data with FINEPRINT_DATA_DIR."
        )
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return AppError(
            f"{path} can't be a folder: a file of that name is in the way. Choose another folder "
            "with FINEPRINT_DATA_DIR.",
            code="storage_failed",
        )
    return AppError(
        f"Can't write to {path} ({error.strerror}). Check its permissions, or choose another "
        "folder with FINEPRINT_DATA_DIR.",
        code="storage_failed",
    )


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver must not begin transactions on its own: `_begin_sqlite` does.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA journal_mode=WAL")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    immediate = connection.get_execution_options().get("immediate", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")


@contextmanager
def _translated(database: Database) -> Iterator[None]:
    try:
        yield
    except OperationalError as error:
        translated = _translate(database, error)
        if translated is None:
            raise
        raise translated from error


def _translate(database: Database, error: DBAPIError) -> AppError | None:
    reason = str(error.orig)
    if any(mark in reason for mark in FULL_MARKS):
        return StorageFull(
            f"No space left for the database {database.url.render_as_string()}. Free some space "
            "and try again."
        )
    if any(mark in reason for mark in BUSY_MARKS):
        return DatabaseBusy("The database is busy with another process. Try again in a moment.")
    if not database.is_sqlite:
        return DatabaseBusy(
            f"Can't reach the database {database.url.render_as_string()}: {reason.strip()}"
        )
    return None
