"""Prometheus metrics of one application, in a registry of its own (several can live in a process).

Counts what passes through the doors; the engine's own counters are read from the engine, not kept
here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import Scope

from app.api.answer_metrics import AnswerMetrics
from app.api.buckets import READ_SECONDS, SECONDS
from app.api.collectors import EngineCollector, HeatCollector
from app.api.completion_metrics import CompletionMetrics
from app.api.step_collector import StepCollector
from app.hardware import HeatWatch
from backend.step_times import StepTimes
from backend.types import EngineCounters

CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """Metric families, all prefixed `fineprint_`: `answers`, `completions`, and those of requests,
    uploads and documents."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self.answers = AnswerMetrics(registry)
        self.completions = CompletionMetrics(registry)
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
            buckets=SECONDS,
            registry=registry,
        )
        self._body_bytes = Gauge(
            "fineprint_http_body_bytes",
            "Bytes of the bodies of requests under way, uploads left out.",
            registry=registry,
        )
        self._uploads = Counter(
            "fineprint_uploads_total",
            "Uploads by result: new, duplicate or refused.",
            ("result",),
            registry=registry,
        )
        self._documents = Gauge("fineprint_documents", "Documents stored.", registry=registry)
        self._read_seconds = Histogram(
            "fineprint_document_read_seconds",
            "Reading of one document ahead of questions. warm: all its KV was there already.",
            ("kind",),
            buckets=READ_SECONDS,
            registry=registry,
        )

    def watch_engine(self, counters: Callable[[], EngineCounters]) -> None:
        """Shows the engine's own counters, read whenever metrics are asked for."""
        self._registry.register(EngineCollector(counters))

    def watch_bodies(self, held: Callable[[], int]) -> None:
        """Shows how many bytes of request bodies are held, asked for at each scrape."""
        self._body_bytes.set_function(held)

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

    def observe_request(self, scope: Scope, status: int, seconds: float) -> None:
        """Counts one request under its route's pattern, so that ids make no new series."""
        route = _pattern(scope)
        self._requests.labels(scope["method"], route, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def observe_upload(self, result: str) -> None:
        """`result` is new, duplicate or refused."""
        self._uploads.labels(result).inc()

    def exposition(self, documents: int | None) -> bytes:
        """The text format of Prometheus. `documents` is counted by the caller; None, which is shown
        as NaN, when the database can't be asked just now."""
        self._documents.set(math.nan if documents is None else documents)
        return generate_latest(self._registry)


def _pattern(scope: Scope) -> str:
    route: Any = scope.get("route")
    return getattr(route, "path", None) or "other"
