"""Where prompts are made ready: long ones a few at a time.

A request to /v1 may have megabytes of text, which is looked through for stored documents and turned
into tokens, with several times its size in memory. A shorter one that may hold a document can wait
long too: the first of an owner's after a start read all of that owner's texts, and those that come
meanwhile wait for that. So that many such requests at once take neither the memory nor every thread
from others, both kinds wait for threads of their own, of which an owner has some, and one whose
client leaves waits no more. One that is not looked through for documents does not wait with those
that are.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
from fastapi import Request
from fastapi.concurrency import run_in_threadpool

from app.answer_ends import no_answer_within
from app.api.following import unless_left
from app.api.owner_threads import OwnerThreads
from app.errors import ClientLeft
from app.stored_texts import SHORTEST

LONG_CHARS = 1_000_000
"""More than a window of 128K tokens holds of English."""
_THREADS = 2
_HOLDING_THREADS = 16
"""For prompts that may hold a document."""
_OWN_HOLDING = 4
"""Of one owner, where there may be several."""

Result = TypeVar("Result")


class PromptThreads:
    """For one event loop. `several`: whether one owner leaves a thread to others."""

    def __init__(self, *, several: bool) -> None:
        self._long = OwnerThreads(_THREADS, 1 if several else _THREADS)
        self._holding = OwnerThreads(
            _HOLDING_THREADS, _OWN_HOLDING if several else _HOLDING_THREADS
        )

    async def run(
        self,
        owner: str,
        texts: Sequence[str],
        request: Request,
        work: Callable[[], Result],
        *,
        matched: Sequence[str] = (),
        arrived: float = 0.0,
        timeout_s: float | None = None,
    ) -> Result:
        """What `work` over these texts gives, called in a thread. `matched` are those of them that
        it looks through for documents. Raises ClientLeft where the client has gone before its turn
        came, TimedOut where `timeout_s` seconds from `arrived` (`time.perf_counter`) were over
        before that."""
        wait: Awaitable[Result | None]
        if sum(map(len, texts)) > LONG_CHARS:
            wait = unless_left(self._long.run(owner, work), request)
        elif any(len(text) >= SHORTEST for text in matched):
            wait = unless_left(self._holding.run(owner, work), request)
        else:
            wait = run_in_threadpool(work)
        left = None if timeout_s is None else max(0.0, arrived + timeout_s - time.perf_counter())
        done: Result | None = None
        with anyio.move_on_after(left) as clock:
            done = await wait
        if done is not None:
            return done
        if clock.cancelled_caught:
            raise no_answer_within(timeout_s or 0.0)
        raise ClientLeft
