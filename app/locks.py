"""The lock that makes one `fineprint serve` the server of a data folder. Single commands need no
lock: the database keeps them apart."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from filelock import FileLock, Timeout

from app.errors import AlreadyServing
from app.settings import Settings

NAME = "serve.lock"


@contextmanager
def serve_lock(settings: Settings) -> Iterator[None]:
    """Be the only holder while the block runs. The operating system releases the lock of a process
    that was killed. Raises AlreadyServing."""
    lock = FileLock(settings.data_dir / NAME, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise AlreadyServing(
            f"Another `fineprint serve` uses {settings.data_dir}. Stop it, or give this one its "
            "own folder with FINEPRINT_DATA_DIR."
        ) from error
    try:
        yield
    finally:
        lock.release()
