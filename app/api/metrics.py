"""Prometheus metrics of one application, in a registry of its own (several can live in a process).

Counts what passes through the doors; the engine's own counters are read from the engine, not kept
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import Scope

from app.answer_run import AnswerRun
from app.api.collectors import EngineCollector, HeatCollector
from app.api.step_collector import StepCollector
from app.completion_run import CompletionRun
from app.events import AnswerCompleted, CoverageChanged
from app.hardware import HeatWatch
from app.types import Answer, Coverage
from backend.step_times import StepTimes
from backend.types import EngineCounters

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
_READ_SECONDS = (*_SECONDS, 600, 1800, 3600)
_SHARES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 1)
_STEP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """Metric families, all prefixed `fineprint_`."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "fineprint_http_requests_total",
            "Requests by method, route and status.",
            ("method", "route", "status"),
            registry=registry,
        )
        self._request_seconds = Histogram(
            "fineprint_http_request_seconds",
            "Time until the whole response was sent.",
            ("route",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._answers = Counter(
            "fineprint_answers_total",
            "Finished answers by how they ended.",
            ("outcome",),
            registry=registry,
        )
        self._ttft = Histogram(
            "fineprint_answer_ttft_seconds",
            "Arrival of a question to the first token shown.",
            buckets=_SECONDS,
            registry=registry,
        )
        self._ttft_by_kind = Histogram(
            "fineprint_answer_first_token_seconds",
            "Arrival of a question to the first token shown. any: of every answer; grounded: the "
            "first after the documents had been read whole; warm: they had been read before, and "
            "nothing was read for this answer.",
            ("kind",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._answer_step = Histogram(
            "fineprint_answer_seconds_per_token",
            "Answers: mean time between two tokens of the model's words, in the engine.",
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        self._coverage = Histogram(
            "fineprint_answer_coverage_ratio",
            "Share of the documents' tokens that had been read when the answer ended.",
            buckets=_SHARES,
            registry=registry,
        )
        self._read_seconds = Histogram(
            "fineprint_document_read_seconds",
            "Reading of one document ahead of questions. warm: all its KV was there already.",
            ("kind",),
            buckets=_READ_SECONDS,
            registry=registry,
        )
        self._queue_seconds = Histogram(
            "fineprint_answer_queue_seconds",
            "Time a question waited.",
            buckets=_SECONDS,
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
        self._completion_tokens = Counter(
            "fineprint_answer_completion_tokens_total", "Tokens generated.", registry=registry
        )
        self._uploads = Counter(
            "fineprint_uploads_total",
            "Uploads by result: new, duplicate or refused.",
            ("result",),
            registry=registry,
        )
        self._waiting = Gauge(
            "fineprint_answers_waiting", "Questions in the queue.", registry=registry
        )
        self._running = Gauge(
            "fineprint_answers_running", "Questions being answered.", registry=registry
        )
        self._documents = Gauge("fineprint_documents", "Documents stored.", registry=registry)
        self._completions = Counter(
            "fineprint_completions_total",
            "Plain generations of /v1 by how they ended.",
            ("outcome",),
            registry=registry,
        )
        self._completion_ttft = Histogram(
            "fineprint_completion_ttft_seconds",
            "Plain generations: arrival to the first token. engine: from the engine's queue to the "
            "end of the first decoding step; gateway: from the request's arrival at the route to "
            "the token in the hands of the reply.",
            ("level",),
            buckets=_SECONDS,
            registry=registry,
        )
        self._completion_step = Histogram(
            "fineprint_completion_seconds_per_token",
            "Plain generations: mean time between two tokens of one answer, in the engine.",
            buckets=_STEP_SECONDS,
            registry=registry,
        )
        self._completion_tokens_in = Counter(
            "fineprint_completion_prompt_tokens_total",
            "Prompt tokens of plain generations.",
            registry=registry,
        )
        self._completion_tokens_out = Counter(
            "fineprint_completion_generated_tokens_total",
            "Tokens generated by plain generations.",
            registry=registry,
        )

    def watch(self, waiting: Callable[[], int], running: Callable[[], int]) -> None:
        """Reads the two gauges from their owner whenever metrics are asked for."""
        self._waiting.set_function(waiting)
        self._running.set_function(running)

    def watch_engine(self, counters: Callable[[], EngineCounters]) -> None:
        """Shows the engine's own counters, read whenever metrics are asked for."""
        self._registry.register(EngineCollector(counters))

    def watch_steps(self, times: Callable[[], StepTimes | None]) -> None:
        """Shows how long the engine's steps take, read whenever metrics are asked for."""
        self._registry.register(StepCollector(times))

    def watch_heat(self, heat: HeatWatch) -> None:
        """Shows temperatures and limits, by the last look before each scrape."""
        self._registry.register(HeatCollector(heat))

    def observe_reading(self, seconds: float, computed_tokens: int) -> None:
        """Counts a document that was read: how long it took, and how many tokens went through the
        model for it."""
        self._read_seconds.labels("cold" if computed_tokens else "warm").observe(seconds)

    def observe_completion(self, run: CompletionRun) -> None:
        """Counts a run of plain generation that is over."""
        self._completions.labels(run.outcome).inc()
        if run.first_token_s is not None:
            self._completion_ttft.labels("gateway").observe(run.first_token_s)
        for usage, timings in run.finished_choices():
            self._completion_tokens_in.inc(usage.prompt_tokens)
            self._completion_tokens_out.inc(usage.completion_tokens)
            if usage.completion_tokens:
                self._completion_ttft.labels("engine").observe(timings.ttft_ms / 1000)
            if usage.completion_tokens > 1:
                step = timings.decode_ms / (usage.completion_tokens - 1)
                self._completion_step.observe(step / 1000)

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts one request under its route's pattern, so that ids make no new series."""
        route = _pattern(scope)
        self._requests.labels(scope["method"], route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def observe_upload(self, result: str) -> None:
        """`result` is new, duplicate or refused."""
        self._uploads.labels(result).inc()

    def observe_answer(self, run: AnswerRun) -> None:
        """Counts a run that is over."""
        outcome = run.outcome
        if not isinstance(outcome, AnswerCompleted):
            self._answers.labels(run.state).inc()
            return
        answer = outcome.answer
        self._answers.labels("cancelled" if run.state == "cancelled" else answer.status).inc()
        self._ttft.observe(answer.timings.ttft_ms / 1000)
        for kind, ms in _first_tokens(run, answer):
            self._ttft_by_kind.labels(kind).observe(ms / 1000)
        if answer.usage.completion_tokens > 1:
            step = answer.timings.decode_ms / (answer.usage.completion_tokens - 1)
            self._answer_step.observe(step / 1000)
        self._coverage.observe(_share(answer.coverage))
        self._queue_seconds.observe(answer.timings.queue_ms / 1000)
        self._read_tokens.inc(answer.usage.read_tokens)
        self._cached_tokens.inc(answer.usage.cached_tokens)
        self._completion_tokens.inc(answer.usage.completion_tokens)

    def exposition(self, documents: int) -> bytes:
        """The text format of Prometheus. `documents` is counted by the caller (a database read)."""
        self._documents.set(documents)
        return generate_latest(self._registry)


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


def _pattern(scope: Scope) -> str:
    route: Any = scope.get("route")
    return getattr(route, "path", None) or "other"
