"""Ends of jobs and answers that the database did not take when they came: kept here, and written
once it takes them.

Does not know what they are; whoever keeps them says how each is written.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import exc

from app.errors import AppError, DatabaseBusy, StorageFull

log = logging.getLogger(__name__)

AGAIN_S = 1.0
"""How often what is kept is written again."""
REFUSALS = 2
"""In one round. Each may take as long as the database is waited for, half a minute."""
GIVEN_UP_S = 86_400.0
"""An end that is not taken for a day never is; it stays open until the process ends."""


def may_pass(error: Exception) -> bool:
    """Whether the database may take the same later: it is locked, full or away."""
    away = exc.OperationalError | exc.InterfaceError | exc.InternalError | exc.TimeoutError
    return isinstance(error, DatabaseBusy | StorageFull | away)


@dataclass(frozen=True, slots=True, eq=False)
class _Kept:
    write: Callable[[], object]
    since: float


class Unwritten:
    """Thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[str, _Kept] = {}

    def __contains__(self, key: str) -> bool:
        with self._lock:
            return key in self._kept

    def keep(self, key: str, write: Callable[[], object]) -> None:
        """`write` raises what `may_pass`, and any other error for an end that nobody wants (any
        more)."""
        with self._lock:
            self._kept[key] = _Kept(write, self._clock())

    def write(self) -> None:
        """Try them, the oldest first, until the database did not take `REFUSALS`, which come last
        in the next round: one that it never takes keeps none of the others waiting."""
        with self._lock:
            round_ = tuple(self._kept.items())
        refused = 0
        for key, kept in round_:
            try:
                kept.write()
            except Exception as error:
                if may_pass(error) and not self._is_given_up(key, kept, error):
                    self._put_last(key)
                    refused += 1
                    if refused == REFUSALS:
                        return
                    continue
                if not may_pass(error):
                    known = isinstance(error, AppError)
                    log.warning("no end of %s: %s", key, error, exc_info=None if known else error)
            else:
                log.info("the end of %s is written now", key)
            self._remove(key, kept)

    def _is_given_up(self, key: str, kept: _Kept, error: Exception) -> bool:
        if self._clock() - kept.since < GIVEN_UP_S:
            return False
        hours = GIVEN_UP_S / 3600
        log.error("the end of %s is given up after %g hours", key, hours, exc_info=error)
        return True

    def _put_last(self, key: str) -> None:
        with self._lock:
            if key in self._kept:
                self._kept[key] = self._kept.pop(key)

    def _remove(self, key: str, kept: _Kept) -> None:
        with self._lock:
            if self._kept.get(key) is kept:
                del self._kept[key]
