"""The place in the line of a question that waits: looked up while nothing of its answer has come.

The stream says nothing until the answer begins, so the place is asked for beside it, and told as an
event `answer.waiting` with `ahead`. Knows neither the API's addresses nor how a place is shown.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Any

from ui.events import StreamEvent

LOOK_S = 1.0
"""How long after the question, and after each look, the place is looked up."""


async def with_place(
    events: AsyncIterator[StreamEvent],
    look: Callable[[str], Awaitable[int | None]],
    *,
    every_s: float = LOOK_S,
) -> AsyncGenerator[StreamEvent, None]:
    """The events as they come; between `answer.accepted` and the next one what `look` says of the
    answer's id, how many are ahead (None: not known). A look delays no event."""
    coming = asyncio.ensure_future(anext(events, None))
    looking: asyncio.Future[int | None] | None = None
    answer_id = ""
    try:
        while True:
            pending: set[asyncio.Future[Any]] = {coming} if looking is None else {coming, looking}
            pause = every_s if answer_id and looking is None else None
            await asyncio.wait(pending, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                event = coming.result()
                if event is None:
                    return
                answer_id = event.data["id"] if event.name == "answer.accepted" else ""
                await _leave(looking)
                looking = None
                yield event
                coming = asyncio.ensure_future(anext(events, None))
            elif looking is None:
                looking = asyncio.ensure_future(look(answer_id))
            elif looking.done():
                yield StreamEvent("answer.waiting", {"ahead": looking.result()}, 0)
                looking = None
    finally:
        await _leave(looking)
        await _leave(coming)


async def _leave(task: asyncio.Future[Any] | None) -> None:
    """Nobody wants its result any more, whatever it is."""
    if task is not None:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task
