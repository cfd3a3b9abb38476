"""Whether this machine, the model and the data folder are fit for work. Changes nothing."""

from __future__ import annotations

import errno
import importlib.metadata
import platform
import shutil
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import torch

from app import locks
from app.cli.finding import GIGABYTE, Finding
from app.cli.gpu_findings import gpu_findings
from app.cli.lock_holder import holder
from app.db.schema import current, newest
from app.db.session import Database
from app.errors import AppError
from app.models import catalogue_model, resolve
from app.services import open_servers
from app.settings import Settings
from backend.errors import BackendError
from backend.loader import load_checkpoint

MEMORY_NEEDED = 3 * GIGABYTE
"""The default model, its KV for a long contract and the parser's process."""
KV_LOCK = "lock"
"""What `kvstore.tiers.folder` locks in the KV folder."""
DISK_NEEDED = 1 * GIGABYTE
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


def examine(settings: Settings) -> Iterator[Finding]:
    """Everything there is to look at, one after the other."""
    python = platform.python_version()
    yield Finding("python", sys.version_info >= (3, 11), f"{python} (3.11 or newer is needed)")
    yield Finding("sqlite", sqlite3.sqlite_version_info >= (3, 35), sqlite3.sqlite_version)
    yield _torch()
    yield Finding(
        "cpu", True, f"{_cores()} cores, {', '.join(_cpu_flags()) or 'no known features'}"
    )
    yield _memory()
    yield _disk(settings.data_dir)
    model, model_bytes = _model(settings)
    yield model
    yield from gpu_findings(settings, model_bytes)
    if settings.remote_servers:
        yield from _model_servers(settings)
    yield _database(settings)
    yield _kv_folder(settings)
    server, serving = _server(settings)
    yield server
    yield _port(settings, serving)


def _torch() -> Finding:
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        triton = ""
    found = f"torch {torch.__version__}, {f'triton {triton}' if triton else 'no triton'}"
    if torch.cuda.is_available() and not triton:
        return Finding("torch", False, f"{found}. The GPU needs it: pip install triton")
    return Finding("torch", True, found)


def _cores() -> int:
    return psutil.cpu_count(logical=False) or psutil.cpu_count() or 1


def _cpu_flags() -> list[str]:
    # Only Linux lists them here; elsewhere nothing is known and nothing depends on it.
    source = Path("/proc/cpuinfo")
    if not source.is_file():
        return []
    words = set(source.read_text(encoding="utf-8", errors="replace").split())
    return [flag for flag in CPU_FLAGS if flag in words]


def _memory() -> Finding:
    memory = psutil.virtual_memory()
    found = f"{memory.available / GIGABYTE:.1f} of {memory.total / GIGABYTE:.1f} GB free"
    if memory.available < MEMORY_NEEDED:
        return Finding("memory", False, f"{found}; {MEMORY_NEEDED / GIGABYTE:g} GB are needed.")
    return Finding("memory", True, found)


def _disk(folder: Path) -> Finding:
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    found = f"{free / GIGABYTE:.1f} GB free at {existing}"
    if free < DISK_NEEDED:
        advice = "Free some space, or choose another folder with FINEPRINT_DATA_DIR."
        return Finding("disk", False, f"{found}. {advice}")
    return Finding("disk", True, found)


def _model(settings: Settings) -> tuple[Finding, int]:
    """What is found of the model, and the bytes of its files."""
    try:
        path = resolve(settings)
        load_checkpoint(path)
    except AppError as error:
        return Finding("model", False, error.message), 0
    except BackendError as error:
        return Finding("model", False, str(error)), 0
    files = [path] if path.is_file() else list(path.glob("*.safetensors"))
    size = sum(file.stat().st_size for file in files)
    known = catalogue_model(settings.model) is not None
    how = "verified by its SHA-256" if known else "its files fit together"
    return Finding("model", True, f"{path}, {size / 1_000_000:,.0f} MB, {how}"), size


def _model_servers(settings: Settings) -> Iterator[Finding]:
    try:
        with closing(open_servers(settings)) as servers:
            problems = servers.check()
    except AppError as error:
        yield Finding("model servers", False, error.message)
        return
    if not problems:
        urls = ", ".join(settings.remote_servers)
        yield Finding("model servers", True, f"{settings.remote_model} at {urls}")
    for problem in problems:
        advice = "Start it, or change FINEPRINT_REMOTE_URLS or FINEPRINT_REMOTE_MODEL."
        yield Finding("model servers", False, f"{problem}. {advice}")


def _kv_folder(settings: Settings) -> Finding:
    path = settings.kv_dir / KV_LOCK
    try:
        held_by = holder(path)
    except OSError as error:
        advice = "Make the folder yours, or keep none on disk (FINEPRINT_KV_DISK_MB=0)."
        return Finding("kv folder", False, f"{path}: {error.strerror}. {advice}")
    if held_by is None:
        return Finding("kv folder", True, f"{settings.kv_dir}: nobody uses it now")
    return Finding(
        "kv folder",
        True,
        f"{settings.kv_dir}: {held_by} keeps pages there; what starts beside it keeps its own in "
        "memory alone",
    )


def _server(settings: Settings) -> tuple[Finding, bool]:
    """What is found, and whether a server runs on this data folder."""
    path = settings.data_dir / locks.NAME
    try:
        held_by = holder(path)
    except OSError as error:
        advice = "Make the folder yours, or choose another with FINEPRINT_DATA_DIR."
        return Finding("server", False, f"{path}: {error.strerror}. {advice}"), False
    if held_by is None:
        return Finding("server", True, f"none runs on {settings.data_dir}"), False
    return Finding("server", True, f"{held_by} serves {settings.data_dir}"), True


def _database(settings: Settings) -> Finding:
    if settings.database_url is None and not (settings.data_dir / "fineprint.sqlite").is_file():
        return Finding("database", True, f"none yet in {settings.data_dir}; the first use makes it")
    try:
        with closing(Database(settings.database, busy_timeout_s=5.0)) as database:
            at = current(database)
    except AppError as error:
        return Finding("database", False, error.message)
    if at != newest():
        return Finding("database", False, f"schema {at}, needed {newest()}: fineprint db upgrade")
    return Finding("database", True, f"schema {at}")


def _port(settings: Settings, serving: bool) -> Finding:
    place = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            if serving and error.errno == errno.EADDRINUSE:
                return Finding("port", True, f"{place} is in use, and a server runs")
            advice = "Stop what uses it, or choose another with FINEPRINT_PORT."
            return Finding("port", False, f"{place}: {error.strerror}. {advice}")
    return Finding("port", True, f"{place} is free")
