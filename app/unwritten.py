"""Ends of jobs and answers that the database did not take when they came: kept here, and written
once it takes them.

Does not know what they are; whoever keeps them says how each is written.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sqlalchemy import exc

from app.errors import AppError, DatabaseBusy, StorageFull

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""How often what is kept is written again."""


def may_pass(error: Exception) -> bool:
    """Whether the database may take the same later: it is locked, full or away."""
    away = exc.OperationalError | exc.InterfaceError | exc.InternalError | exc.TimeoutError
    return isinstance(error, DatabaseBusy | StorageFull | away)


class Unwritten:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[str, Callable[[], object]] = {}

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._kept

    def keep(self, key: str, write: Callable[[], object]) -> None:
        """`write` raises what `may_pass`, and any other error for an end that nobody wants (any
        more)."""
        with self._lock:
            self._kept[key] = write

    def write(self) -> None:
        """Try them, the oldest first, up to the first one that the database does not take."""
        with self._lock:
            kept = tuple(self._kept.items())
        for key, write in kept:
            try:
                write()
            except Exception as error:
                if may_pass(error):
                    return
                known = isinstance(error, AppError)
                log.warning("no end of %s: %s", key, error, exc_info=None if known else error)
            else:
                log.info("the end of %s is written now", key)
            with self._lock:
                self._kept.pop(key, None)
