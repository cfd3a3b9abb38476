"""The services of one process, opened together and closed in order. Does not know who uses them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.conversations import Conversations
from app.db.schema import upgrade
from app.db.session import Database, make_folder
from app.errors import BadSettings
from app.gate import Gate
from app.hardware import HeatWatch, open_heat_watch
from app.ingest import Ingestor
from app.jobs import JobQueue
from app.library import Library
from app.loading import Loader
from app.locks import serve_lock
from app.models import resolve
from app.runner import JobRunner
from app.settings import Settings
from app.storage import FileStore
from app.thread_turns import turns_of
from app.workers import Worker

if TYPE_CHECKING:
    from app.engines import AnyEngine
    from app.remote.engine import RemoteEngine
    from app.remote.servers import Servers
    from backend.engine import Engine
    from backend.engine_config import EngineConfig

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Services:
    """What the doors (CLI, REST) need to do their work."""

    settings: Settings
    engine: AnyEngine
    library: Library
    conversations: Conversations
    database: Database
    gate: Gate = field(default_factory=Gate)


@contextmanager
def open_services(
    settings: Settings, *, engine: AnyEngine | None = None, serve: bool = False
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
            stack.enter_context(turns_of(settings.thread_turn_s))
        opened = stack.enter_context(closing(_engine_of(settings))) if engine is None else engine
        make_folder(settings.data_dir)
        database = Database(settings.database, busy_timeout_s=settings.busy_timeout_s)
        with closing(database):
            upgrade(database)
            with _working(settings, database, opened, serve) as services:
                yield services


@contextmanager
def _working(
    settings: Settings, database: Database, engine: AnyEngine, serve: bool
) -> Iterator[Services]:
    files = FileStore(
        settings.files_dir,
        max_bytes=settings.max_upload_bytes,
        reserve_bytes=settings.disk_reserve_mb * 1_000_000,
    )
    worker = Worker(database, heartbeat_s=settings.heartbeat_s)
    queue = JobQueue(database, worker, max_attempts=settings.ingest_attempts)
    ingestor = Ingestor(settings, database, files, queue, engine)
    # A single command does one thing and ends; only a server goes on for hours.
    heat = open_heat_watch(settings) if serve else HeatWatch()
    gate = Gate(heat)
    runner = JobRunner(
        ingestor, queue, worker, engine, resume=serve, may_begin=lambda: gate.may_begin
    )
    loader = Loader(settings, database, engine)
    library = Library(settings, database, files, queue, runner, loader, engine)
    conversations = Conversations(database, worker)
    runner.start()
    try:
        heat.start()
        if serve:
            library.sweep()
            engine.keep_documents(library.kv_keys())
        yield Services(settings, engine, library, conversations, database, gate)
    finally:
        gate.stop()
        runner.close()
        heat.close()


def _engine_of(settings: Settings) -> AnyEngine:
    return (
        open_remote_engine(settings)
        if settings.remote_servers
        else open_engine(settings, keep_kv=True)
    )


def open_remote_engine(settings: Settings) -> RemoteEngine:
    """The model servers that the settings name. Documents are tokenised by the tokenizer of the
    local model. A server that does not answer now is logged, and looked at again.

    Raises ModelUnavailable, UnknownModel, CheckpointError, BadSettings for an unreadable key."""
    from app.remote.engine import RemoteEngine
    from backend.loader import load_checkpoint

    checkpoint = load_checkpoint(resolve(settings))
    servers = open_servers(settings)
    engine = RemoteEngine(
        servers,
        checkpoint.tokenizer,
        checkpoint.fingerprint,
        context_tokens=settings.remote_context_tokens,
    )
    for problem in engine.check():
        _log.warning("model server not usable now: %s", problem)
    servers.watch()
    return engine


def open_servers(settings: Settings) -> Servers:
    """Connections to the model servers that the settings name; nothing is asked yet. Raises
    BadSettings for an unreadable key."""
    from app.remote.servers import Servers

    return Servers(
        settings.remote_servers,
        settings.remote_model or "",
        api_key=_key(settings.remote_key_file),
        timeout_s=settings.remote_timeout_s,
    )


def _key(path: Path | None) -> str:
    if path is None:
        return "none"
    try:
        return path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"FINEPRINT_REMOTE_KEY_FILE: {path} is not readable: {error}") from error


def open_engine(settings: Settings, *, keep_kv: bool = False) -> Engine:
    """The engine with the model that the settings name. `keep_kv`: what it reads is kept in the
    data folder, and found there; without it (benchmarks) it starts with nothing.

    Raises ModelUnavailable, UnknownModel, CheckpointError, BackendError."""
    # Here, because torch takes seconds to import and most commands need no engine.
    from backend.engine import Engine

    return Engine.open(engine_config(settings, keep_kv=keep_kv))


def engine_config(settings: Settings, *, keep_kv: bool = False) -> EngineConfig:
    """What the settings say about the engine (see `open_engine`). Raises ModelUnavailable and
    UnknownModel."""
    import torch

    from backend.engine_config import EngineConfig
    from backend.ops.tuning import FOLDER_NAME

    device = settings.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    chosen: dict[str, Any] = {
        "threads": settings.threads,
        "block_tokens": settings.block_tokens,
        "step_every": settings.step_every,
        "few_rows": settings.few_rows,
        "device_draws": settings.device_draws,
        "kv_budget": None if settings.kv_budget_mb is None else settings.kv_budget_mb * 1_000_000,
        "kv_share": settings.kv_share,
        "host_budget": None if settings.kv_host_mb is None else settings.kv_host_mb * 1_000_000,
        "aged_format": None if settings.kv_aged_format == "none" else settings.kv_aged_format,
    }
    return EngineConfig(
        model=resolve(settings),
        device=device,
        precision=settings.precision,
        linear_format=settings.linear_format,
        reading=settings.reading,
        kv_format=settings.kv_format,
        packed_kernels=settings.kv_packed_kernels,
        disk_folder=settings.kv_dir if keep_kv else None,
        disk_budget=settings.kv_disk_bytes if keep_kv else 0,
        tuning_folder=settings.cache_dir / FOLDER_NAME,
        **{name: value for name, value in chosen.items() if value is not None},
    )
