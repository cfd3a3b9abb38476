"""Where prompts are made ready: long ones a few at a time.

A request to /v1 may have megabytes of text, which is looked through for stored documents and turned
into tokens, with several times its size in memory. So that many such requests at once take neither
the memory nor every thread from others, they wait for a thread of their own, and one whose client
leaves waits no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from app.api.following import unless_left
from app.api.owner_threads import OwnerThreads
from app.errors import BadRequest

LONG_CHARS = 1_000_000
"""More than a window of 128K tokens holds of English."""
_THREADS = 2

Result = TypeVar("Result")


class PromptThreads:
    """For one event loop. `several`: whether one owner leaves a thread to others."""

    def __init__(self, *, several: bool) -> None:
        self._long = OwnerThreads(_THREADS, 1 if several else _THREADS)

    async def run(
        self, owner: str, texts: Sequence[str], request: Request, work: Callable[[], Result]
    ) -> Result:
        """What `work` over these texts gives, called in a thread. Raises BadRequest where the
        client has gone before its turn came."""
        if sum(map(len, texts)) <= LONG_CHARS:
            return await run_in_threadpool(work)
        done = await unless_left(self._long.run(owner, work), request)
        if done is None:
            raise BadRequest("The client closed the connection.", code="client_left")
        return done
