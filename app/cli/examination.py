"""Whether this machine, the model and the data folder are fit for work. Changes nothing."""

from __future__ import annotations

import dataclasses
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

from app.db.schema import current, newest
from app.db.session import Database
from app.errors import AppError
from app.models import resolve
from app.settings import Settings

GIGABYTE = 1_000_000_000
MEMORY_NEEDED = 3 * GIGABYTE
"""The default model, its KV for a long contract and the parser's process."""
DISK_NEEDED = 1 * GIGABYTE
CPU_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16", "amx_int8")


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at. `detail` says what was found and, when not `ok`, what to do."""

    name: str
    ok: bool
    detail: str


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
    yield _model(settings)
    yield _database(settings)
    yield _port(settings)


def _torch() -> Finding:
    if torch.cuda.is_available():
        names = {torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())}
        return Finding("torch", True, f"{torch.__version__}, GPU: {', '.join(sorted(names))}")
    return Finding("torch", True, f"{torch.__version__}, no GPU: the CPU is used")


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


def _model(settings: Settings) -> Finding:
    try:
        return Finding("model", True, str(resolve(settings)))
    except AppError as error:
        return Finding("model", False, error.message)


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


def _port(settings: Settings) -> Finding:
    place = f"{settings.host}:{settings.port}"
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            advice = "Stop what uses it, or choose another with FINEPRINT_PORT."
            return Finding("port", False, f"{place}: {error.strerror}. {advice}")
    return Finding("port", True, f"{place} is free")
