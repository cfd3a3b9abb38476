"""The client's clock, and how late the client itself is.

A client that is busy sees answers later than they came. `LoopLag` measures that: it asks the event
loop to be woken every few milliseconds and notes by how much it was late.
"""

from __future__ import annotations

import asyncio
import time
from types import TracebackType

SAMPLE_S = 0.02


class Clock:
    """Milliseconds since it was made, monotonic."""

    def __init__(self) -> None:
        self._origin = time.perf_counter()

    def now_ms(self) -> float:
        """Now."""
        return (time.perf_counter() - self._origin) * 1000


class LoopLag:
    """`async with LoopLag() as lag`: `lag.samples` are milliseconds of lateness."""

    def __init__(self) -> None:
        self.samples: list[float] = []
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> LoopLag:
        self._task = asyncio.create_task(self._measure())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _measure(self) -> None:
        while True:
            asked = time.perf_counter()
            await asyncio.sleep(SAMPLE_S)
            self.samples.append((time.perf_counter() - asked - SAMPLE_S) * 1000)
