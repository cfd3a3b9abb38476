"""Events with the pauses between them, without a clock: an event comes when the test lets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from ui.events import StreamEvent
from ui.frames import with_pauses


def named(name: str) -> StreamEvent:
    return StreamEvent(name, {}, 0)


class Source:
    """Events from a queue; a `None` in it ends them, an error is raised."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[StreamEvent | Exception | None] = asyncio.Queue()
        self.closed = False

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        try:
            while (item := await self.queue.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                yield item
        finally:
            self.closed = True


def test_a_pause_is_told_once_after_the_events_before_it() -> None:
    async def run() -> list[str]:
        source, seen = Source(), list[str]()
        for name in "ab":
            source.queue.put_nowait(named(name))
        async for event in with_pauses(source.events(), 0.01):
            seen.append(event.name if event else "pause")
            if seen[-1] == "pause":
                # Nothing more is told of this pause, however long it is.
                await asyncio.sleep(0.05)
                source.queue.put_nowait(named("c") if len(seen) == 3 else None)
        assert source.closed
        return seen

    assert asyncio.run(run()) == ["a", "b", "pause", "c", "pause"]


def test_what_goes_wrong_comes_through() -> None:
    async def run() -> None:
        source = Source()
        source.queue.put_nowait(ValueError("broken off"))
        async for _ in with_pauses(source.events(), 0.01):
            raise AssertionError("there was no event")

    with pytest.raises(ValueError, match="broken off"):
        asyncio.run(run())


def test_leaving_in_a_pause_leaves_the_events() -> None:
    async def run() -> bool:
        source = Source()
        events = source.events()
        source.queue.put_nowait(named("a"))
        paced = with_pauses(events, 0.01)
        assert await anext(paced) == named("a")
        assert await anext(paced) is None
        await paced.aclose()
        await events.aclose()
        return source.closed

    assert asyncio.run(run())
