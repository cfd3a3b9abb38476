"""A caller's hold on a document that is being read."""

from __future__ import annotations

import time
from collections.abc import Callable

from backend.reading import DocumentReading
from backend.types import ReadProgress


class ReadTicket:
    """Progress, waiting and cancelling. Safe from any thread."""

    def __init__(self, reading: DocumentReading, wake: Callable[[], None]) -> None:
        self._reading = reading
        self._wake = wake

    def progress(self) -> ReadProgress:
        """Where reading stands."""
        return self._reading.progress()

    def wait(self, timeout: float | None = None) -> ReadProgress:
        """Wait until reading is done, cancelled or failed, or `timeout` seconds have passed."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._reading.changed:
            while (state := self._reading.progress()).status in ("queued", "reading"):
                left = 1.0 if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    break
                self._reading.changed.wait(min(left, 1.0))
        return state

    def cancel(self) -> None:
        """Read no further block of this document. What has been read stays."""
        self._reading.cancelled = True
        self._reading.notify()
        self._wake()
