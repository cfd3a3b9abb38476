"""Whether everything that answers depend on is there: database, disk, engine. Knows no HTTP."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from app.errors import AppError
from app.services import Services

FREE_BYTES_NEEDED = 200_000_000
"""Room for one upload of the default limit."""


@dataclass(frozen=True, slots=True)
class Check:
    """One dependency. `detail` says what is wrong, or is "ok"."""

    name: str
    ok: bool
    detail: str = "ok"


def readiness(services: Services) -> tuple[Check, ...]:
    """Every dependency, looked at now."""
    return (_database(services), _storage(services), _engine(services))


def _database(services: Services) -> Check:
    try:
        services.library.open_jobs()
    except AppError as error:
        return Check("database", False, error.message)
    return Check("database", True)


def _storage(services: Services) -> Check:
    folder = services.settings.data_dir
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        return Check("storage", False, f"{folder}: {error.strerror}")
    if free < FREE_BYTES_NEEDED:
        return Check("storage", False, f"only {free // 1_000_000} MB are free at {folder}")
    return Check("storage", True)


def _engine(services: Services) -> Check:
    if not services.engine.alive:
        return Check("engine", False, services.engine.problem)
    return Check("engine", True)
