"""Following an answer's run from the event loop: as an event stream, or until it is over."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import anyio
from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

from app.answer_run import AnswerRun
from app.api.routes import API_PREFIX
from app.api.schemas.answers import event_data

PING_SECONDS = 15
SHUTDOWN_GRACE_SECONDS = 1.0


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


async def finished_or_left(run: AnswerRun, request: Request) -> bool:
    """Waits until the run is over (True) or the client has gone (False)."""
    waker = _Waker()
    with run.followed(waker):
        gone = asyncio.ensure_future(_gone(request))
        try:
            while True:
                waker.event.clear()
                if run.finished or gone.done():
                    break
                news = asyncio.ensure_future(waker.event.wait())
                await asyncio.wait((news, gone), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
        finally:
            gone.cancel()
    return run.finished


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(
    run: AnswerRun, after: int, stopping: anyio.Event
) -> AsyncIterator[ServerSentEvent]:
    waker = _Waker()
    told = after
    stop = asyncio.ensure_future(stopping.wait())
    try:
        with run.followed(waker):
            while True:
                waker.event.clear()
                over = run.finished
                for event_id, event in run.events_after(told):
                    told = event_id
                    yield _message(str(event_id), event_data(event, run))
                if over:
                    return
                if stop.done():
                    yield _message(None, _STOPPING)
                    return
                news = asyncio.ensure_future(waker.event.wait())
                await asyncio.wait((news, stop), return_when=asyncio.FIRST_COMPLETED)
                news.cancel()
    finally:
        stop.cancel()


_STOPPING: dict[str, object] = {
    "type": "error",
    "code": "server_stopping",
    "message": "The server is stopping. Ask again when it is back.",
}


def _message(event_id: str | None, data: dict[str, object]) -> ServerSentEvent:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return ServerSentEvent(text, event=str(data["type"]), id=event_id, sep="\n")
