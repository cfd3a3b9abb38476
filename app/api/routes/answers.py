"""/answers: ask, follow, look up, cancel."""

from __future__ import annotations

import itertools
from typing import Annotated

from fastapi import APIRouter, Header, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse

from app.answer_run import AnswerRun
from app.answers import AnswerRuns
from app.api import problems
from app.api.deps import OwnerDep, RunsDep, ServicesDep
from app.api.following import event_stream, finished_or_left
from app.api.routes import API_PREFIX
from app.api.schemas.answers import AnswerCreate, AnswerPublic
from app.api.schemas.timeline import TimelinePublic
from app.attempts import request_ids
from app.errors import NotFound
from app.events import AnswerFailed
from app.questions import check_question
from app.services import Services
from app.timeline import steps_of

router = APIRouter(prefix=f"{API_PREFIX}/answers", tags=["answers"])

_STREAM = {"text/event-stream": {"schema": {"type": "string"}}}


@router.post(
    "",
    response_model=AnswerPublic,
    responses={200: {"content": _STREAM, "description": "The answer, or its event stream."}},
)
async def create_answer(
    body: AnswerCreate, request: Request, services: ServicesDep, owner: OwnerDep, runs: RunsDep
) -> Response:
    """Ask a question about documents whose text and index are ready.

    A client that leaves before a JSON reply cancels its answer. A stream's answer is cancelled when
    nobody has followed it for a moment (FINEPRINT_STREAM_GRACE_S seconds), in which `GET
    /answers/{id}/stream` can take it up.
    """
    run = await run_in_threadpool(_start, body, services, owner, runs)
    if body.stream or "text/event-stream" in request.headers.get("accept", ""):
        return event_stream(run, after=0)
    if not await finished_or_left(run, request):
        # It writes to the database.
        await run_in_threadpool(runs.cancel, run.id)
    outcome = run.outcome
    if isinstance(outcome, AnswerFailed):
        return problems.answer_problem(outcome)
    return JSONResponse(AnswerPublic.of(run).model_dump(mode="json"))


@router.get("/{answer_id}")
def get_answer(
    answer_id: str, services: ServicesDep, owner: OwnerDep, runs: RunsDep
) -> AnswerPublic:
    """An answer as it is now, or as it was saved."""
    try:
        run = runs.get(answer_id, owner=owner)
    except NotFound:
        return _saved(services, answer_id, owner)
    return AnswerPublic.of(run, runs.ahead(run))


@router.get(
    "/{answer_id}/stream",
    response_class=Response,
    responses={200: {"content": _STREAM, "description": "The events."}},
)
async def follow_answer(
    answer_id: str,
    owner: OwnerDep,
    runs: RunsDep,
    last_event_id: Annotated[int, Header(ge=0, description="Id of the last event seen.")] = 0,
) -> Response:
    """The events of an answer after `Last-Event-ID`, those to come included. Where there is none
    the last one is told again, so every stream ends with `answer.completed` or `error`."""
    return event_stream(runs.get(answer_id, owner=owner), after=last_event_id)


@router.get("/{answer_id}/timeline")
def answer_timeline(
    answer_id: str, services: ServicesDep, owner: OwnerDep, runs: RunsDep
) -> TimelinePublic:
    """When what happened to an answer, for as long as its stream can be taken up again."""
    run = runs.get(answer_id, owner=owner)
    return TimelinePublic.of(run, steps_of(services.engine, request_ids(run.id)))


@router.post("/{answer_id}/cancel", status_code=202)
def cancel_answer(answer_id: str, owner: OwnerDep, runs: RunsDep) -> AnswerPublic:
    """Stop an answer. One that is over stays as it is."""
    return AnswerPublic.of(runs.cancel(answer_id, owner=owner))


def _saved(services: Services, answer_id: str, owner: str) -> AnswerPublic:
    message = services.conversations.message(answer_id, owner=owner)
    conversation = services.conversations.get(message.conversation_id, owner=owner)
    messages = services.conversations.messages(conversation.id, owner=owner)
    for asked, given in itertools.pairwise(messages):
        if given.id == answer_id and given.role == "assistant":
            return AnswerPublic.of_saved(asked, given, conversation)
    raise NotFound(f"There is no answer {answer_id}.")


def _start(body: AnswerCreate, services: Services, owner: str, runs: AnswerRuns) -> AnswerRun:
    question = check_question(
        services,
        body.question,
        body.document_ids,
        body.conversation_id,
        until_read=body.until_read,
        owner=owner,
    )
    return runs.start(question, timeout_s=body.timeout_s)
