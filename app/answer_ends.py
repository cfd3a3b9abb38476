"""How a run ends that does not simply finish: cancelled, out of time, stopped with the server, or
failed. Words and codes only; who ends it is `app.answers`."""

from __future__ import annotations

import dataclasses
import time

from app.answer_run import CANCELLED, TIMEOUT, AnswerRun
from app.errors import AppError
from app.events import AnswerFailed
from app.types import Answer
from backend.errors import BackendError, EngineBusy, EngineClosed, RequestTooLarge
from retrieval.errors import ParseError, RetrievalError

_ENGINE_CODES: dict[type[BackendError], str] = {
    EngineBusy: "engine_busy",
    EngineClosed: "engine_closed",
    RequestTooLarge: "request_too_large",
}


def stopped(run: AnswerRun) -> AnswerFailed:
    """The last event of a run that was stopped before it had an answer."""
    reason = run.stopped_for or CANCELLED
    if reason == TIMEOUT:
        return AnswerFailed(
            reason,
            f"There was no answer within {run.timeout_s:g} seconds. Allow more time (timeout_s), "
            "or ask again when less is going on.",
        )
    if reason == CANCELLED:
        return AnswerFailed(reason, "The answer was cancelled.")
    return AnswerFailed(reason, "The server is stopping. Ask again when it is back.")


def as_stopped(answer: Answer, run: AnswerRun) -> Answer:
    """An answer that was cut short says why: its quotes stand, the rest is missing. A "not found"
    that was only waiting for the end of reading stays one."""
    reason = run.stopped_for
    if answer.finish_reason != CANCELLED or reason is None or reason == CANCELLED:
        return answer
    status = answer.status if answer.status == "not_found" else "partial"
    return dataclasses.replace(answer, status=status, finish_reason=reason)


def internal(run: AnswerRun) -> AnswerFailed:
    """The last event of a run that met a defect; its trace is in the log."""
    return AnswerFailed(
        "internal_error",
        f"Something went wrong on the server. The log has the details of {run.id}.",
    )


def code_of(error: AppError | RetrievalError | BackendError) -> str:
    """The code under which an error is told."""
    if isinstance(error, AppError | ParseError):
        return error.code
    if isinstance(error, BackendError):
        return _ENGINE_CODES.get(type(error), "engine_error")
    return "retrieval_error"


def since(start: float) -> float:
    """Milliseconds since a `time.perf_counter()`."""
    return (time.perf_counter() - start) * 1000


def with_waiting(answer: Answer, waited_ms: float, before_ms: float) -> Answer:
    """Counts the time before the question was taken up: readers time from its arrival."""
    timings = dataclasses.replace(
        answer.timings,
        queue_ms=answer.timings.queue_ms + waited_ms,
        ttft_ms=answer.timings.ttft_ms + before_ms,
        total_ms=answer.timings.total_ms + before_ms,
    )
    return dataclasses.replace(answer, timings=timings)
