"""Threads for one kind of slow work, shared out among owners."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

Result = TypeVar("Result")


class OwnerThreads:
    """`total` threads, of which one owner has at most `each`; who finds none waits, in order of
    arrival. So an owner's long comparisons leave a thread for others'. For one event loop."""

    def __init__(self, total: int, each: int) -> None:
        self._all = anyio.CapacityLimiter(total)
        self._each = each
        self._of: dict[str, anyio.CapacityLimiter] = {}

    async def run(self, owner: str, work: Callable[[], Result]) -> Result:
        """What `work` gives, called in a thread. It is not stopped when the caller is."""
        own = self._of.get(owner)
        if own is None:
            # Forgotten when nobody uses it, so that owners who come and go leave nothing behind.
            self._of = {name: one for name, one in self._of.items() if _is_used(one)}
            own = self._of[owner] = anyio.CapacityLimiter(self._each)
        async with own:
            return await anyio.to_thread.run_sync(work, limiter=self._all)


def _is_used(limiter: anyio.CapacityLimiter) -> bool:
    now = limiter.statistics()
    return bool(now.borrowed_tokens or now.tasks_waiting)
