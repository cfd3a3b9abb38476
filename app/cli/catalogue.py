"""The library without an engine, for commands that look and tidy but read nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from app.db.schema import upgrade
from app.db.session import Database, make_folder
from app.ingest import Ingestor
from app.jobs import JobQueue
from app.library import Library
from app.loading import Loader
from app.runner import JobRunner
from app.settings import Settings
from app.storage import FileStore
from app.workers import Worker

if TYPE_CHECKING:
    from backend.engine import Engine


class _NothingRead:
    """Stands for the engine in a process that has none: there is no KV to forget."""

    def forget(self, key: str) -> None:
        return None


@contextmanager
def open_catalogue(settings: Settings) -> Iterator[Library]:
    """A library that lists, shows and deletes. It starts no work: don't add to it."""
    make_folder(settings.data_dir)
    database = Database(settings.database, busy_timeout_s=settings.busy_timeout_s)
    try:
        upgrade(database)
        engine = cast("Engine", _NothingRead())
        files = FileStore(settings.files_dir, max_bytes=settings.max_upload_bytes)
        worker = Worker(database, heartbeat_s=settings.heartbeat_s)
        queue = JobQueue(database, worker, max_attempts=settings.ingest_attempts)
        ingestor = Ingestor(settings, database, files, queue, engine)
        runner = JobRunner(ingestor, queue, worker, engine, resume=False)
        loader = Loader(settings, database, engine)
        yield Library(settings, database, files, queue, runner, loader, engine)
    finally:
        database.close()
