"""Chat completions about documents: the product's answer in OpenAI's shape.

The run, its queue and its limits are those of POST /api/v1/answers; here its events become content,
annotations and usage. Parameters of sampling say nothing to it: the answer is made of quotes.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
from fastapi import Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from app.answer_ends import stopped
from app.answer_run import CANCELLED, AnswerRun
from app.answers import AnswerRuns
from app.api.following import ready_or_left, turns
from app.api.openai.delivery import DONE, PATIENCE_SECONDS, STOPPING, Chunk, ChunkStream
from app.api.openai.envelope import error_body
from app.api.openai.replies import usage_body
from app.api.openai.requests import ChatMessage, ChatRequest
from app.api.openai.served_model import ServedModel
from app.api.problems import answer_problem, app_problem
from app.api.schemas.answers import CitationPublic, CoveragePublic, TimingsPublic
from app.errors import BadRequest, ClientLeft
from app.events import AnswerCompleted, AnswerDelta, AnswerEvent, AnswerFailed
from app.questions import check_question
from app.services import Services
from app.types import Answer, Turn

_WHOLE = ("quote", "stop", "repetition")
_NOT_HERE = ("ignore_eos", "logprobs", "min_tokens", "stop")


async def answer_documents(
    body: ChatRequest,
    request: Request,
    services: Services,
    runs: AnswerRuns,
    model: ServedModel,
    owner: str,
) -> Response:
    """The answer to the last message about `body.document_ids` of `owner`, whole or as a stream. A
    client that leaves ends it: there is no coming back to a stream of /v1."""
    run = await run_in_threadpool(_start, body, services, runs, owner)

    def leave() -> None:
        if not run.finished:
            runs.cancel(run.id)

    reply = _Reply(run, body, model.id)
    try:
        if not body.stream:
            return await _whole(reply, request, leave)
        await ready_or_left(run, request, lambda: _has_begun(run), PATIENCE_SECONDS)
        run.expect_follower()
    except BaseException:
        leave()
        raise
    if isinstance(failed := run.outcome, AnswerFailed) and not run.text():
        return answer_problem(failed)
    return ChunkStream(lambda stopping: _chunks(reply, stopping), leave)


def _start(body: ChatRequest, services: Services, runs: AnswerRuns, owner: str) -> AnswerRun:
    for name in _NOT_HERE:
        if getattr(body, name):
            raise _refused(name)
    if body.n > 1:
        raise _refused("n")
    *before, last = body.messages
    if last.role != "user":
        raise BadRequest(
            "With document_ids the last message must be the user's question.",
            code="invalid_value",
            details={"param": "messages"},
        )
    question = check_question(services, last.content, body.document_ids or (), None, owner=owner)
    return runs.start(question, history=history_of(before), timeout_s=body.timeout_s)


def _refused(name: str) -> BadRequest:
    return BadRequest(
        f"{name} can't go with document_ids: the answer is made of the documents' own sentences, "
        "not sampled.",
        code="unsupported_parameter",
        details={"param": name},
    )


def history_of(messages: Sequence[ChatMessage]) -> tuple[Turn, ...]:
    """Earlier questions with the answers that followed them. Messages of other kinds, and questions
    without an answer, are no part of it."""
    told: list[Turn] = []
    question: str | None = None
    for message in messages:
        if message.role == "user":
            question = message.content
        elif message.role == "assistant" and question is not None:
            told.append(Turn(question, message.content))
            question = None
    return tuple(told)


def _has_begun(run: AnswerRun) -> bool:
    return run.finished or bool(run.text())


async def _whole(reply: _Reply, request: Request, leave: Callable[[], None]) -> Response:
    run = reply.run
    if not await ready_or_left(run, request, lambda: run.finished):
        await run_in_threadpool(leave)
        return app_problem(ClientLeft())
    outcome = run.outcome
    if isinstance(outcome, AnswerCompleted) and run.state != CANCELLED:
        return JSONResponse(reply.whole(outcome.answer))
    if isinstance(outcome, AnswerFailed):
        return answer_problem(outcome)
    return answer_problem(stopped(run))


async def _chunks(reply: _Reply, stopping: anyio.Event) -> AsyncIterator[Chunk]:
    told = 0
    async with contextlib.aclosing(turns(reply.run, stopping)) as steps:
        async for turn in steps:
            for event_id, event in reply.run.events_after(told):
                told = event_id
                if isinstance(event, AnswerFailed):
                    yield error_body(event.status, event.code, event.message)
                    return
                for chunk in reply.chunks(event):
                    yield chunk
            if turn == "stopping":
                yield STOPPING
                return
    yield DONE


class _Reply:
    """The events of one answer as OpenAI's objects."""

    def __init__(self, run: AnswerRun, body: ChatRequest, model: str) -> None:
        self.run = run
        self._usage_asked = body.stream_options is not None and body.stream_options.include_usage
        self._model = model
        self._created = int(time.time())
        self._begun = False

    def chunks(self, event: AnswerEvent) -> list[dict[str, Any]]:
        """The chunks that an event makes. The last one with a choice carries the annotations."""
        if isinstance(event, AnswerDelta):
            return [self._chunk({"content": event.text}, None)] if event.text else []
        if not isinstance(event, AnswerCompleted):
            return []
        answer = event.answer
        last = {"content": "", "annotations": file_citations(answer)}
        chunks = [self._chunk(last, _finish_reason(answer), fineprint=self._facts(answer))]
        if self._usage_asked:
            head = self._head("chat.completion.chunk")
            chunks.append({**head, "choices": [], "usage": _usage(answer)})
        return chunks

    def whole(self, answer: Answer) -> dict[str, Any]:
        """The reply that is sent at once."""
        message = {
            "role": "assistant",
            "content": answer.answer,
            "refusal": None,
            "annotations": file_citations(answer),
        }
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": _finish_reason(answer),
        }
        return {
            **self._head("chat.completion"),
            "choices": [choice],
            "usage": _usage(answer),
            "fineprint": self._facts(answer),
        }

    def _chunk(
        self, delta: dict[str, Any], finish_reason: str | None, **more: Any
    ) -> dict[str, Any]:
        if not self._begun:
            delta = {"role": "assistant", **delta}
            self._begun = True
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {**self._head("chat.completion.chunk"), "choices": [choice], **more}
        if self._usage_asked:
            chunk["usage"] = None
        return chunk

    def _head(self, kind: str) -> dict[str, Any]:
        return {
            "id": f"chatcmpl-{self.run.id.removeprefix('ans_')}",
            "object": kind,
            "created": self._created,
            "model": self._model,
        }

    def _facts(self, answer: Answer) -> dict[str, Any]:
        return {
            "status": answer.status,
            "coverage": CoveragePublic.model_validate(answer.coverage).model_dump(),
            "timings": TimingsPublic.model_validate(answer.timings).model_dump(),
            "answer_id": self.run.id,
            "conversation_id": self.run.conversation_id,
        }


def file_citations(answer: Answer) -> list[dict[str, Any]]:
    """The citations; `number` is that of the marker (`[1]`) in the text."""
    return [
        {
            "type": "file_citation",
            "number": number,
            **CitationPublic.model_validate(citation).model_dump(),
        }
        for number, citation in enumerate(answer.citations, start=1)
    ]


def _usage(answer: Answer) -> dict[str, Any]:
    usage = answer.usage
    return usage_body(
        usage.prompt_tokens,
        usage.completion_tokens,
        cached=usage.cached_tokens,
        read=usage.read_tokens,
    )


def _finish_reason(answer: Answer) -> str:
    """`stop` for whole answers alone: who takes a cut one for whole misses what was to come."""
    return "stop" if answer.finish_reason in _WHOLE else "length"
