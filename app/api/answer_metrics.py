"""Metric families of answers: how they ended, what they waited for, what was read for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.answer_run import AnswerRun
from app.api.buckets import SECONDS, SHARES, STEP_SECONDS
from app.events import AnswerCompleted, CoverageChanged
from app.types import Answer, Coverage


class AnswerMetrics:
    """Families prefixed `fineprint_answer`, in the registry given."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._ended = Counter(
            "fineprint_answers_total",
            "Finished answers by how they ended.",
            ("outcome",),
            registry=registry,
        )
        self._first_token = Histogram(
            "fineprint_answer_first_token_seconds",
            "Arrival of a question to the first token shown. any: of every answer; grounded: the "
            "first after the documents had been read whole; warm: they had been read before, and "
            "nothing was read for this answer.",
            ("kind",),
            buckets=SECONDS,
            registry=registry,
        )
        self._step = Histogram(
            "fineprint_answer_seconds_per_token",
            "Answers: mean time between two tokens of the model's words, in the engine.",
            buckets=STEP_SECONDS,
            registry=registry,
        )
        self._coverage = Histogram(
            "fineprint_answer_coverage_ratio",
            "Share of the documents' tokens that had been read when the answer ended.",
            buckets=SHARES,
            registry=registry,
        )
        self._queued = Histogram(
            "fineprint_answer_queue_seconds",
            "Time a question waited.",
            buckets=SECONDS,
            registry=registry,
        )
        self._read_tokens = Counter(
            "fineprint_answer_read_tokens_total",
            "Document tokens read while answering.",
            registry=registry,
        )
        self._cached_tokens = Counter(
            "fineprint_answer_cached_tokens_total",
            "Prompt tokens whose KV was already there.",
            registry=registry,
        )
        self._written_tokens = Counter(
            "fineprint_answer_completion_tokens_total", "Tokens generated.", registry=registry
        )
        self._waiting = Gauge(
            "fineprint_answers_waiting", "Questions in the queue.", registry=registry
        )
        self._running = Gauge(
            "fineprint_answers_running", "Questions being answered.", registry=registry
        )

    def watch(self, waiting: Callable[[], int], running: Callable[[], int]) -> None:
        """Reads the two gauges from their owner whenever metrics are asked for."""
        self._waiting.set_function(waiting)
        self._running.set_function(running)

    def observe(self, run: AnswerRun) -> None:
        """Counts a run that is over."""
        outcome = run.outcome
        if not isinstance(outcome, AnswerCompleted):
            self._ended.labels(run.state).inc()
            return
        answer = outcome.answer
        self._ended.labels("cancelled" if run.state == "cancelled" else answer.status).inc()
        for kind, ms in _first_tokens(run, answer):
            self._first_token.labels(kind).observe(ms / 1000)
        if answer.usage.completion_tokens > 1:
            step = answer.timings.decode_ms / (answer.usage.completion_tokens - 1)
            self._step.observe(step / 1000)
        self._coverage.observe(_share(answer.coverage))
        self._queued.observe(answer.timings.queue_ms / 1000)
        self._read_tokens.inc(answer.usage.read_tokens)
        self._cached_tokens.inc(answer.usage.cached_tokens)
        self._written_tokens.inc(answer.usage.completion_tokens)


def _first_tokens(run: AnswerRun, answer: Answer) -> Iterator[tuple[str, float]]:
    """Kind and milliseconds."""
    shown_ms = answer.timings.ttft_ms
    yield "any", shown_ms
    told = [one.coverage for _, one in run.events_after(0) if isinstance(one, CoverageChanged)]
    # The first is from before the first token.
    if told and _share(told[0]) >= 1:
        yield "grounded", shown_ms
        if not answer.usage.read_tokens:
            yield "warm", shown_ms
        return
    # A framework answer is settled as soon as its documents are read.
    yield from (
        ("grounded", mark.at_ms)
        for mark in run.timeline.marks()
        if mark.name in ("confirmed", "revised")
    )


def _share(coverage: Coverage) -> float:
    return coverage.read_tokens / coverage.total_tokens if coverage.total_tokens else 1.0
