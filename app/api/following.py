"""Following a run from the event loop: as an event stream, or until it is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from typing import Literal, Protocol, TypeVar

import anyio
from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from app.answer_run import AnswerRun
from app.api.routes import API_PREFIX
from app.api.schemas.answers import event_data

PING_SECONDS = 15
SHUTDOWN_GRACE_SECONDS = 1.0


Turn = Literal["news", "over", "stopping"]
Result = TypeVar("Result")


class Followed(Protocol):
    """Something that goes on in other threads and tells its followers of every step."""

    @property
    def finished(self) -> bool:
        """Whether its last event is there."""

    def followed(self, notify: Callable[[], None]) -> contextlib.AbstractContextManager[None]:
        """Calls `notify` after every event, from any thread."""


class _Waker:
    """Wakes a coroutine from another thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.event = asyncio.Event()

    def __call__(self) -> None:
        # A loop that is closed has nobody left to wake.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self.event.set)


def event_stream(run: AnswerRun, after: int) -> EventSourceResponse:
    """The run's events with a larger id than `after`, those to come included."""
    stopping = anyio.Event()
    return EventSourceResponse(
        _events(run, after, stopping),
        ping=PING_SECONDS,
        ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
        sep="\n",
        headers={"Location": f"{API_PREFIX}/answers/{run.id}"},
        shutdown_event=stopping,
        shutdown_grace_period=SHUTDOWN_GRACE_SECONDS,
    )


async def finished_or_left(run: Followed, request: Request) -> bool:
    """Waits until the run is over (True) or the client has gone (False)."""
    return await ready_or_left(run, request, lambda: run.finished)


async def ready_or_left(
    run: Followed, request: Request, ready: Callable[[], bool], seconds: float | None = None
) -> bool:
    """Waits until `ready()`, which is asked after every event, or for `seconds` (True), or until
    the client has gone (False unless it was ready by then)."""
    waker = _Waker()
    with run.followed(waker), anyio.move_on_after(seconds):
        gone = asyncio.ensure_future(_gone(request))
        try:
            while True:
                waker.event.clear()
                if ready() or gone.done():
                    return ready()
                news = asyncio.ensure_future(waker.event.wait())
                try:
                    await asyncio.wait((news, gone), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
        finally:
            gone.cancel()
    return True


async def unless_left(work: Awaitable[Result], request: Request) -> Result | None:
    """What `work` gives; None where the client has gone while it waited. A thread that is at work
    already comes to its end, and what it gave is given."""
    gone = asyncio.ensure_future(_gone(request))
    scope = anyio.CancelScope()
    gone.add_done_callback(lambda one: None if one.cancelled() else scope.cancel())
    result: Result | None = None
    try:
        with scope:
            result = await work
    finally:
        gone.cancel()
    return result


async def turns(run: Followed, stopping: anyio.Event) -> AsyncGenerator[Turn, None]:
    """Yields "news" whenever there may be new events, "over" once all are there, or "stopping" when
    the server stops first; the latter two end it."""
    waker = _Waker()
    stop = asyncio.ensure_future(stopping.wait())
    try:
        with run.followed(waker):
            while True:
                waker.event.clear()
                if run.finished:
                    yield "over"
                    return
                yield "news"
                if stop.done():
                    yield "stopping"
                    return
                news = asyncio.ensure_future(waker.event.wait())
                try:
                    await asyncio.wait((news, stop), return_when=asyncio.FIRST_COMPLETED)
                finally:
                    news.cancel()
    finally:
        stop.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(
    run: AnswerRun, after: int, stopping: anyio.Event
) -> AsyncIterator[ServerSentEvent]:
    told = after
    silent = True
    async with contextlib.aclosing(turns(run, stopping)) as steps:
        async for turn in steps:
            news = run.events_after(told)
            if turn == "over" and silent and not news:
                # Who says that it has seen the end, or more than there is, is told the end again.
                news = run.events_after(0)[-1:]
            for event_id, event in news:
                told, silent = event_id, False
                yield _message(str(event_id), event_data(event, run))
            if turn == "stopping":
                yield _message(None, _STOPPING)


_STOPPING: dict[str, object] = {
    "type": "error",
    "code": "server_stopping",
    "message": "The server is stopping. Ask again when it is back.",
}


def _message(event_id: str | None, data: dict[str, object]) -> ServerSentEvent:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return ServerSentEvent(text, event=str(data["type"]), id=event_id, sep="\n")
