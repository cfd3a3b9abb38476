"""Prometheus metrics of one application, in a registry of its own (several can live in a process).

Counts what passes through the doors; the engine's own counters are read from its progress, not
kept here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import Scope

from app.answer_run import AnswerRun
from app.events import AnswerCompleted

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


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

    def watch(self, waiting: Callable[[], int], running: Callable[[], int]) -> None:
        """Reads the two gauges from their owner whenever metrics are asked for."""
        self._waiting.set_function(waiting)
        self._running.set_function(running)

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
        self._queue_seconds.observe(answer.timings.queue_ms / 1000)
        self._read_tokens.inc(answer.usage.read_tokens)
        self._cached_tokens.inc(answer.usage.cached_tokens)
        self._completion_tokens.inc(answer.usage.completion_tokens)

    def exposition(self, documents: int) -> bytes:
        """The text format of Prometheus. `documents` is counted by the caller (a database read)."""
        self._documents.set(documents)
        return generate_latest(self._registry)


def _pattern(scope: Scope) -> str:
    route: Any = scope.get("route")
    return getattr(route, "path", None) or "other"
