"""The timeline of an answer as the REST API shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from app.answer_run import AnswerRun, RunState
from app.api.schemas.answers import TimingsPublic
from app.api.schemas.common import Public
from app.events import AnswerCompleted
from app.timeline import Level
from backend.step_times import RequestSteps


class MarkPublic(Public):
    """`at_ms` counts from the arrival of the request; a step of the engine has a `duration_ms`."""

    level: Level
    name: str
    at_ms: float
    duration_ms: float | None


class TimelinePublic(Public):
    """Marks in order of time. `request_id` is that of the request that asked (`X-Request-ID`),
    `tokens_ms` when the model's tokens were there, one entry for each decoding step. `timings` are
    the durations of the finished answer, null before."""

    object: Literal["timeline"] = "timeline"
    answer_id: str
    request_id: str
    state: RunState
    marks: list[MarkPublic]
    tokens_ms: list[float]
    timings: TimingsPublic | None

    @classmethod
    def of(cls, run: AnswerRun, requests: Sequence[RequestSteps] = ()) -> TimelinePublic:
        """The run as it is now; `requests` are those that it made of the engine."""
        outcome = run.outcome
        answer = outcome.answer if isinstance(outcome, AnswerCompleted) else None
        return cls(
            answer_id=run.id,
            request_id=run.timeline.request_id,
            state=run.state,
            marks=[MarkPublic.model_validate(mark) for mark in run.timeline.marks(requests)],
            tokens_ms=list(run.timeline.tokens_ms(requests)),
            timings=TimingsPublic.model_validate(answer.timings) if answer else None,
        )
