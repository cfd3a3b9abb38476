"""The timeline of an answer as the REST API shows it."""

from __future__ import annotations

from typing import Literal

from app.answer_run import AnswerRun, RunState
from app.api.schemas.answers import TimingsPublic
from app.api.schemas.common import Public
from app.events import AnswerCompleted
from app.timeline import Level


class MarkPublic(Public):
    """`at_ms` counts from the arrival of the request."""

    level: Level
    name: str
    at_ms: float


class TimelinePublic(Public):
    """Marks in order of time. `timings` are the durations of the finished answer, null before."""

    object: Literal["timeline"] = "timeline"
    answer_id: str
    state: RunState
    marks: list[MarkPublic]
    timings: TimingsPublic | None

    @classmethod
    def of(cls, run: AnswerRun) -> TimelinePublic:
        """The run as it is now."""
        outcome = run.outcome
        answer = outcome.answer if isinstance(outcome, AnswerCompleted) else None
        return cls(
            answer_id=run.id,
            state=run.state,
            marks=[MarkPublic.model_validate(mark) for mark in run.timeline.marks()],
            timings=TimingsPublic.model_validate(answer.timings) if answer else None,
        )
