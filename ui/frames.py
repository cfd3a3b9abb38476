"""Paces what is drawn while events come: not every event, but the last one before a pause."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator

from ui.events import StreamEvent


async def with_pauses(
    events: AsyncIterator[StreamEvent], seconds: float
) -> AsyncGenerator[StreamEvent | None, None]:
    """The events as they come, and None where after some of them none came for so many seconds."""
    coming = asyncio.ensure_future(anext(events, None))
    pause: float | None = None
    try:
        while True:
            done, _ = await asyncio.wait({coming}, timeout=pause)
            if not done:
                pause = None
                yield None
                continue
            event = coming.result()
            if event is None:
                return
            pause = seconds
            yield event
            coming = asyncio.ensure_future(anext(events, None))
    finally:
        coming.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await coming
