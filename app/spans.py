"""The timeline of one question or generation as a tree of spans, the shape in which tracing tools
show it. Pure: knows no tracing library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.attempts import request_ids
from app.timeline import Mark, Timeline, steps_of
from backend.step_times import RequestSteps

if TYPE_CHECKING:
    from app.answer_run import AnswerRun
    from app.completion_run import CompletionRun
    from app.engines import AnyEngine

_STRETCHES = (
    ("queue", "arrived", ("taken_up",)),
    ("search", "created", ("first_quote", "first_notice")),
    ("read", "read_begun", ("read_done",)),
    ("prefill", "admitted", ("first_token",)),
    ("decode", "first_token", ("last_token",)),
    ("reading_on", "framework", ("confirmed", "revised")),
    ("send", "first_byte", ("last_byte",)),
)
"""Name, the mark at which it begins, and those of which the first ends it."""


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took from `start` to `end`, seconds of `time.perf_counter`. The first span of
    a tree is the whole; all others are parts of it."""

    name: str
    start: float
    end: float
    attributes: Mapping[str, str | int | float]


def answer_spans(engine: AnyEngine, run: AnswerRun) -> tuple[Span, ...]:
    """Those of a question that is over. Neither question nor answer is told."""
    requests = steps_of(engine, request_ids(run.id))
    told = {"fineprint.state": run.state, "fineprint.documents": len(run.document_ids)}
    return spans_of("answer", run.id, run.timeline, requests, told)


def completion_spans(engine: AnyEngine, run: CompletionRun) -> tuple[Span, ...]:
    """Those of a generation that is over."""
    choices = range(len(run.prompts))
    requests = steps_of(engine, (run.choice_id(choice) for choice in choices))
    told = {"fineprint.state": run.outcome, "fineprint.choices": len(choices)}
    return spans_of("completion", run.id, run.timeline, requests, told)


def spans_of(
    name: str,
    run_id: str,
    timeline: Timeline,
    requests: Sequence[RequestSteps],
    attributes: Mapping[str, str | int | float],
) -> tuple[Span, ...]:
    """The whole under `name`, then its stretches, then the steps of the engine."""
    zero = timeline.zero
    marks = timeline.marks(requests)
    end = max(mark.at_ms + (mark.duration_ms or 0.0) for mark in marks)
    ids = {"fineprint.run_id": run_id, "fineprint.request_id": timeline.request_id}
    parts = (*_stretches(marks), *_steps(marks))
    return (
        Span(name, zero, zero + end / 1000, {**ids, **attributes}),
        *(
            Span(part, zero + at / 1000, zero + until / 1000, {**ids, "fineprint.level": level})
            for part, level, at, until in parts
        ),
    )


def _stretches(marks: Sequence[Mark]) -> Iterator[tuple[str, str, float, float]]:
    at: dict[str, Mark] = {}
    for mark in marks:
        if mark.duration_ms is None:
            at.setdefault(mark.name, mark)
    for name, first, lasts in _STRETCHES:
        ends = [at[last].at_ms for last in lasts if last in at]
        if first in at and ends and min(ends) >= at[first].at_ms:
            yield name, at[first].level, at[first].at_ms, min(ends)


def _steps(marks: Sequence[Mark]) -> Iterator[tuple[str, str, float, float]]:
    for mark in marks:
        if mark.duration_ms is not None:
            yield f"step.{mark.name}", mark.level, mark.at_ms, mark.at_ms + mark.duration_ms
