"""The place in the line beside a stream, without a clock that matters: every look and every event
comes when the test lets it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import httpx
import pytest

from ui.client import Api
from ui.errors import ApiProblem
from ui.events import StreamEvent
from ui.place import with_place

ACCEPTED = StreamEvent("answer.accepted", {"id": "ans_1"}, 0)
CREATED = StreamEvent("answer.created", {"id": "ans_1"}, 1)


class Server:
    """A stream and the looks at the place; `None` ends the stream."""

    def __init__(self, *ahead: int | None) -> None:
        self.queue: asyncio.Queue[StreamEvent | None] = asyncio.Queue()
        self.ahead = list(ahead)
        self.asked: list[str] = []
        self.closed = False
        self.left = asyncio.Event()

    async def events(self) -> AsyncGenerator[StreamEvent, None]:
        try:
            while (event := await self.queue.get()) is not None:
                yield event
        finally:
            self.closed = True

    async def look(self, answer_id: str) -> int | None:
        self.asked.append(answer_id)
        if self.ahead:
            return self.ahead.pop(0)
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()
        raise AssertionError


def test_the_place_is_told_until_the_answer_begins() -> None:
    async def run() -> None:
        server = Server(2, None, 0)
        seen: list[object] = []
        server.queue.put_nowait(ACCEPTED)
        async for event in with_place(server.events(), server.look, every_s=0.001):
            seen.append(event.data["ahead"] if event.name == "answer.waiting" else event)
            if len(seen) == 4:
                server.queue.put_nowait(CREATED)
            elif event is CREATED:
                await asyncio.sleep(0.02)
                asked = len(server.asked)
                server.queue.put_nowait(StreamEvent("answer.delta", {}, 2))
            elif event.name == "answer.delta":
                assert len(server.asked) == asked, "its place is of no interest any more"
                server.queue.put_nowait(None)
        assert seen[:5] == [ACCEPTED, 2, None, 0, CREATED] and len(seen) == 6
        assert set(server.asked) == {"ans_1"} and server.closed

    asyncio.run(run())


def test_a_look_that_hangs_delays_no_event_and_is_left() -> None:
    async def run() -> None:
        server = Server()
        server.queue.put_nowait(ACCEPTED)
        told = with_place(server.events(), server.look, every_s=0.001)
        assert await anext(told) == ACCEPTED
        coming = asyncio.ensure_future(anext(told))
        while not server.asked:
            await asyncio.sleep(0.001)
        server.queue.put_nowait(CREATED)
        assert await coming == CREATED
        assert server.left.is_set()
        await told.aclose()

    asyncio.run(run())


def test_leaving_while_it_waits_leaves_the_stream_and_the_look() -> None:
    async def run() -> None:
        server = Server(1)
        server.queue.put_nowait(ACCEPTED)
        events = server.events()
        told = with_place(events, server.look, every_s=0.001)
        assert [await anext(told), (await anext(told)).data] == [ACCEPTED, {"ahead": 1}]
        await told.aclose()
        await events.aclose()
        assert server.closed

    asyncio.run(run())


def test_what_goes_wrong_in_the_stream_comes_through() -> None:
    async def broken() -> AsyncGenerator[StreamEvent, None]:
        yield ACCEPTED
        raise ApiProblem("gone", "It is gone.", 404)

    async def run() -> None:
        server = Server()
        async for event in with_place(broken(), server.look, every_s=0.001):
            assert event is ACCEPTED

    with pytest.raises(ApiProblem, match="gone"):
        asyncio.run(run())


def test_the_place_is_asked_of_the_answer() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/api/v1/answers/ans_1"
        return httpx.Response(200, json={"id": "ans_1", "ahead": 3})

    async def run() -> int | None:
        api = Api("http://test/api/v1", httpx.MockTransport(answer))
        try:
            return await api.ahead("ans_1")
        finally:
            await api.close()

    assert asyncio.run(run()) == 3
