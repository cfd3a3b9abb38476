"""A data folder in one file and back: the database as of one moment, the originals, and what was
derived from them.

SQLite only; PostgreSQL has its own tools. Originals and derived files are only ever added whole or
removed, so a copy made while the server works holds everything its database snapshot names; when a
document is deleted meanwhile, the copy is made anew.
"""

from __future__ import annotations

import shutil
import sqlite3
import tarfile
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from app.db.session import make_folder, translate_os_error
from app.errors import BadRequest, Conflict, Corrupted, NotFound, Unavailable
from app.geometry import NAME as BOXES
from app.locks import serve_lock
from app.owners import section_of
from app.settings import Settings
from app.storage import atomic_write, sha256_file

DATABASE = "fineprint.sqlite"
FOLDERS = ("files", "derived")
ROUNDS = 5


def backup(settings: Settings, target: Path) -> int:
    """Write everything to the tar file `target`; bytes written. Works beside a running server.

    Raises NotFound (no database yet), BadRequest (PostgreSQL), StorageFull.
    """
    source = _sqlite_file(settings)
    if not source.is_file():
        raise NotFound(f"There is no database at {source} to back up.", code="no_database")
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="backup-", dir=settings.data_dir) as scratch:
            snapshot = Path(scratch) / DATABASE
            _copy_database(source, snapshot)
            with atomic_write(target) as file, tarfile.open(fileobj=file, mode="w") as archive:
                archive.add(snapshot, DATABASE)
                whole = all(
                    _add(archive, settings.data_dir, name) for name in _named_files(snapshot)
                )
        if whole:
            return target.stat().st_size
    target.unlink()
    raise Unavailable("Documents are being deleted all the time. Try again in a moment.")


def restore(settings: Settings, source: Path, *, replace: bool = False) -> Path | None:
    """Put a backup in place of the data folder's content. What was there is moved to a folder
    inside it, which is returned (None when there was nothing).

    Raises AlreadyServing, Conflict (there is data and `replace` is not given), Corrupted.
    """
    database = _sqlite_file(settings)
    if not source.is_file():
        raise NotFound(f"There is no file {source}.", code="file_not_found")
    make_folder(settings.data_dir)
    with serve_lock(settings):
        if database.exists() and not replace:
            raise Conflict(
                f"{settings.data_dir} holds data. Restore into another folder with --data-dir, or "
                "pass --replace to put it aside first.",
                code="data_exists",
            )
        with tempfile.TemporaryDirectory(prefix="restore-", dir=settings.data_dir) as scratch:
            restored = Path(scratch)
            _unpack(source, restored)
            _check(restored)
            aside = _put_aside(settings, database)
            for name in (DATABASE, *FOLDERS):
                if (restored / name).exists():
                    shutil.move(restored / name, settings.data_dir / name)
    return aside


def _sqlite_file(settings: Settings) -> Path:
    if settings.database_url is not None:
        raise BadRequest(
            "The database is set by FINEPRINT_DATABASE_URL. Back it up with its own tools "
            "(pg_dump), together with the folder files in the data folder.",
            code="not_our_database",
        )
    return settings.data_dir / DATABASE


def _copy_database(source: Path, target: Path) -> None:
    with (
        closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as here,
        closing(sqlite3.connect(target)) as there,
    ):
        here.backup(there)
        there.execute("PRAGMA journal_mode=DELETE")  # one file, complete without a log


def _named_files(database: Path) -> list[Path]:
    """What the rows of a database need: originals, and a folder for each document with geometry."""
    with closing(sqlite3.connect(database)) as connection:
        files = connection.execute("SELECT DISTINCT owner, sha256 FROM documents").fetchall()
        derived = connection.execute(
            "SELECT DISTINCT document_id FROM versions WHERE has_boxes"
        ).fetchall()
    originals = [Path("files", section_of(owner), sha256[:2], sha256) for owner, sha256 in files]
    return originals + [Path("derived", document_id, BOXES) for (document_id,) in derived]


def _add(archive: tarfile.TarFile, folder: Path, name: Path) -> bool:
    """False: the file was deleted meanwhile."""
    try:
        archive.add(folder / name, str(name))
    except FileNotFoundError:
        return False
    return True


def _unpack(source: Path, folder: Path) -> None:
    try:
        with tarfile.open(source) as archive:
            archive.extractall(folder, filter="data")
    except (tarfile.TarError, EOFError) as error:
        raise Corrupted(f"{source} is not a whole backup ({error}).", code="bad_backup") from error
    except OSError as error:
        raise translate_os_error(error, folder) from error


def _check(folder: Path) -> None:
    """The database is sound, and everything it names is there unchanged."""
    database = folder / DATABASE
    if not database.is_file():
        raise Corrupted("The backup holds no database.", code="bad_backup")
    try:
        with closing(sqlite3.connect(database)) as connection:
            (verdict,) = connection.execute("PRAGMA integrity_check").fetchone()
        names = _named_files(database)
    except sqlite3.DatabaseError as error:
        raise Corrupted(
            f"The backup's database is damaged ({error}).", code="bad_backup"
        ) from error
    if verdict != "ok":
        raise Corrupted(f"The backup's database is damaged ({verdict}).", code="bad_backup")
    for name in names:
        if not (folder / name).is_file():
            raise Corrupted(f"The backup lacks {name}.", code="bad_backup")
        if name.parts[0] == "files" and sha256_file(folder / name) != name.name:
            raise Corrupted(f"{name} is damaged in the backup.", code="bad_backup")


def _put_aside(settings: Settings, database: Path) -> Path | None:
    names = [DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", *FOLDERS]
    present = [name for name in names if (settings.data_dir / name).exists()]
    if not database.exists() and not present:
        return None
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    aside = settings.data_dir / f"replaced-{stamp}"
    make_folder(aside)
    for name in present:
        shutil.move(settings.data_dir / name, aside / name)
    return aside
