"""The services of one process, opened together and closed in order. Does not know who uses them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.conversations import Conversations
from app.db.schema import upgrade
from app.db.session import Database, make_folder
from app.ingest import Ingestor
from app.jobs import JobQueue
from app.library import Library
from app.loading import Loader
from app.locks import serve_lock
from app.models import resolve
from app.runner import JobRunner
from app.settings import Settings
from app.storage import FileStore
from app.workers import Worker

if TYPE_CHECKING:
    from backend.engine import Engine


@dataclass(frozen=True, slots=True)
class Services:
    """What the doors (CLI, REST) need to do their work."""

    settings: Settings
    engine: Engine
    library: Library
    conversations: Conversations
    database: Database


@contextmanager
def open_services(
    settings: Settings, *, engine: Engine | None = None, serve: bool = False
) -> Iterator[Services]:
    """Open database, files, engine and job threads; close them at the end of the block.

    The model is opened before anything is stored, so that a damaged one leaves no new database.
    `serve`: this is the one server of the data folder (AlreadyServing if there is another); it goes
    on with ingestions that a stopped process left. Without it (a single command beside a server or
    alone) only the caller's own documents are worked on. `engine`: use this one, and leave it open.
    """
    with ExitStack() as stack:
        if serve:
            # Before the model: a second server is told at once.
            make_folder(settings.data_dir)
            stack.enter_context(serve_lock(settings))
        opened = (
            stack.enter_context(closing(open_engine(settings, keep_kv=True)))
            if engine is None
            else engine
        )
        make_folder(settings.data_dir)
        database = Database(settings.database, busy_timeout_s=settings.busy_timeout_s)
        with closing(database):
            upgrade(database)
            with _working(settings, database, opened, serve) as services:
                yield services


@contextmanager
def _working(
    settings: Settings, database: Database, engine: Engine, serve: bool
) -> Iterator[Services]:
    files = FileStore(settings.files_dir, max_bytes=settings.max_upload_bytes)
    worker = Worker(database, heartbeat_s=settings.heartbeat_s)
    queue = JobQueue(database, worker, max_attempts=settings.ingest_attempts)
    ingestor = Ingestor(settings, database, files, queue, engine)
    runner = JobRunner(ingestor, queue, worker, engine, resume=serve)
    loader = Loader(settings, database, engine)
    library = Library(settings, database, files, queue, runner, loader, engine)
    conversations = Conversations(database, worker)
    runner.start()
    try:
        if serve:
            library.sweep()
            engine.keep_documents(library.kv_keys())
        yield Services(settings, engine, library, conversations, database)
    finally:
        runner.close()


def open_engine(settings: Settings, *, keep_kv: bool = False) -> Engine:
    """The engine with the model that the settings name. `keep_kv`: what it reads is kept in the
    data folder, and found there; without it (benchmarks) it starts with nothing.

    Raises ModelUnavailable, UnknownModel, CheckpointError, BackendError."""
    # Here, because torch takes seconds to import and most commands need no engine.
    import torch

    from backend.engine import Engine
    from backend.engine_config import EngineConfig

    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen = {
        "threads": settings.threads,
        "block_tokens": settings.block_tokens,
        "kv_budget": None if settings.kv_budget_mb is None else settings.kv_budget_mb * 1_000_000,
    }
    return Engine.open(
        EngineConfig(
            model=resolve(settings),
            device=device,
            precision=settings.precision,
            reading=settings.reading,
            kv_format=settings.kv_format,
            disk_folder=settings.kv_dir if keep_kv else None,
            disk_budget=settings.kv_disk_bytes if keep_kv else 0,
            **{name: value for name, value in chosen.items() if value is not None},
        )
    )
