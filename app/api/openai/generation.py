"""A run of plain generation on its way out: whole or streamed, for both kinds of completion."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

import anyio
from fastapi import Request, Response
from fastapi.responses import JSONResponse

from app.api.following import ready_or_left, turns
from app.api.openai.delivery import DONE, PATIENCE_SECONDS, STOPPING, Chunk, ChunkStream
from app.api.openai.envelope import error_body
from app.api.openai.replies import Reply
from app.api.problems import app_problem
from app.completion_run import CompletionRun
from app.errors import ClientLeft, Unavailable


async def send_generation(reply: Reply, request: Request, *, stream: bool) -> Response:
    """The reply to `request`. The run ends with it, whoever ends first."""
    run = reply.run
    try:
        if not stream:
            return await _whole(reply, request)
        await ready_or_left(run, request, lambda: _has_begun(run), PATIENCE_SECONDS)
        if run.timed_out:
            # Its end is on its way, and says what the status is.
            await ready_or_left(run, request, lambda: _has_begun(run))
        _raise_failure(run)
    except BaseException:
        run.cancel()
        raise
    return ChunkStream(lambda stopping: _chunks(reply, stopping), run.cancel)


async def _whole(reply: Reply, request: Request) -> Response:
    run = reply.run
    if not await ready_or_left(run, request, lambda: run.finished):
        run.cancel()
        return app_problem(ClientLeft())
    _raise_failure(run)
    return JSONResponse(reply.whole())


def _has_begun(run: CompletionRun) -> bool:
    return bool(run.events_after(0))


def _raise_failure(run: CompletionRun) -> None:
    """Raises what a choice failed by; Unavailable when the server's stopping ended it."""
    if run.failure is not None:
        raise run.failure
    if run.cancelled and run.finished and run.outcome == "cancelled":
        raise Unavailable("The server is stopping. Try again when it is back.")


async def _chunks(reply: Reply, stopping: anyio.Event) -> AsyncIterator[Chunk]:
    run = reply.run
    told = 0
    async with contextlib.aclosing(turns(run, stopping)) as steps:
        async for turn in steps:
            for item in run.events_after(told):
                told += 1
                ended = item.event.finish_reason
                in_time = run.timed_out and run.failure is None
                if ended == "error" or (ended == "cancelled" and not in_time):
                    yield _failure(run)
                    return
                for chunk in reply.chunks(item):
                    yield chunk
            if turn == "stopping":
                yield STOPPING
                return
    if reply.ends_with_usage:
        yield reply.usage_chunk()
    yield DONE


def _failure(run: CompletionRun) -> Chunk:
    failed = run.failure
    return STOPPING if failed is None else error_body(failed.status, failed.code, failed.message)
