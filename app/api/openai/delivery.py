"""Sends a run to its client as OpenAI streams it, and ends the run when the client leaves."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import anyio
import anyio.to_thread
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from app.api.following import PING_SECONDS, SHUTDOWN_GRACE_SECONDS
from app.api.openai.envelope import error_body

DONE = "[DONE]"
PATIENCE_SECONDS = 10.0
"""How long the status line of a stream waits for the first token: what fails before it is then a
status of its own rather than an error inside a stream that said 200."""
STOPPING = error_body(503, "server_stopping", "The server is stopping. Try again when it is back.")

Chunk = Mapping[str, Any] | str


class ChunkStream(EventSourceResponse):
    """Chunks as data-only events. Whatever ends the reply, be it before the first byte, calls
    `leave` (from a thread)."""

    def __init__(
        self,
        chunks: Callable[[anyio.Event], AsyncIterator[Chunk]],
        leave: Callable[[], object],
    ) -> None:
        """`chunks` is given an event that is set when the server stops."""
        stopping = anyio.Event()
        self._leave = leave
        super().__init__(
            _messages(chunks(stopping)),
            ping=PING_SECONDS,
            ping_message_factory=lambda: ServerSentEvent(comment="ping", sep="\n"),
            sep="\n",
            shutdown_event=stopping,
            shutdown_grace_period=SHUTDOWN_GRACE_SECONDS,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the chunks."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(self._leave)


async def _messages(chunks: AsyncIterator[Chunk]) -> AsyncIterator[ServerSentEvent]:
    async for chunk in chunks:
        text = chunk if isinstance(chunk, str) else _compact(chunk)
        yield ServerSentEvent(text, sep="\n")


def _compact(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))
