"""How a run ends that does not simply finish: cancelled, out of time, stopped with the server, or
failed. Words and codes only; who ends it is `app.answers`."""

from __future__ import annotations

import dataclasses
import time

from app.answer_run import CANCELLED, TIMEOUT, AnswerRun
from app.errors import Conflict, TimedOut, Unavailable
from app.events import AnswerFailed
from app.types import Answer


def stopped(run: AnswerRun) -> AnswerFailed:
    """The last event of a run that was stopped before it had an answer."""
    reason = run.stopped_for or CANCELLED
    if reason == TIMEOUT:
        return AnswerFailed.of(no_answer_within(run.timeout_s or 0.0))
    if reason == CANCELLED:
        return AnswerFailed.of(Conflict("The answer was cancelled.", code=reason))
    stopping = "The server is stopping. Ask again when it is back."
    return AnswerFailed.of(Unavailable(stopping, code=reason))


def no_answer_within(seconds: float) -> TimedOut:
    """The error of a request for which nothing was there in time."""
    return TimedOut(
        f"There was no answer within {seconds:g} seconds. Allow more time (timeout_s), or ask "
        "again when less is going on."
    )


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
