"""Sends finished questions and generations to an OpenTelemetry collector, as spans.

Off unless the settings name a collector; the packages for it are an extra. A thread of its own
waits for the last byte and hands the spans to the library, which sends them in batches. Does not
know what a span stands for (`app.spans`).
"""

from __future__ import annotations

import importlib
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from app.errors import BadSettings
from app.spans import Span

logger = logging.getLogger(__name__)

PATIENCE_S = 2.0
"""How long a finished run is kept back for its last byte to go out."""
MOST_WAITING = 10_000
"""Runs that wait to be sent; what comes beyond them is dropped and logged."""

Spans = Callable[[], Sequence[Span]]


class Sent(Protocol):
    """Something whose last byte may still be on its way."""

    @property
    def sent(self) -> bool:
        """Whether it is out, or nobody waits for it."""


class Tracing:
    """Takes runs that are over. Thread-safe. Close it to send what is left."""

    def __init__(self, provider: Any) -> None:
        """`provider`: a `TracerProvider` of the library, which this one owns."""
        self._provider = provider
        self._tracer = provider.get_tracer("fineprint")
        self._trace_api = importlib.import_module("opentelemetry.trace")
        self._epoch = time.time() - time.perf_counter()
        self._waiting: queue.Queue[tuple[Sent, Spans] | None] = queue.Queue(MOST_WAITING)
        self._thread = threading.Thread(target=self._work, name="tracing", daemon=True)
        self._thread.start()

    def take(self, timeline: Sent, spans: Spans) -> None:
        """A run is over; `spans` is called once its last byte went out. Never blocks."""
        try:
            self._waiting.put_nowait((timeline, spans))
        except queue.Full:
            logger.warning("too many runs wait to be traced; one is left out")

    def close(self) -> None:
        """Sends what was taken and stops."""
        self._waiting.put(None)
        self._thread.join()
        self._provider.shutdown()

    def _work(self) -> None:
        while (taken := self._waiting.get()) is not None:
            timeline, spans = taken
            until = time.monotonic() + PATIENCE_S
            while not timeline.sent and time.monotonic() < until:
                time.sleep(0.01)
            try:
                self._send(spans())
            except Exception as error:
                # Whoever watches must not end because one run could not be told.
                logger.error("a run could not be traced", exc_info=error)

    def _send(self, spans: Sequence[Span]) -> None:
        whole, *parts = spans
        root = self._span(whole, None)
        inside = self._trace_api.set_span_in_context(root)
        for part in parts:
            self._span(part, inside).end(self._nanoseconds(part.end))
        root.end(self._nanoseconds(whole.end))

    def _span(self, span: Span, context: Any) -> Any:
        return self._tracer.start_span(
            span.name,
            context=context,
            attributes=dict(span.attributes),
            start_time=self._nanoseconds(span.start),
        )

    def _nanoseconds(self, moment: float) -> int:
        return int((self._epoch + moment) * 1e9)


def open_tracing(endpoint: str | None) -> Tracing | None:
    """Tracing to the collector at `endpoint` (OTLP over HTTP); None without one. Raises BadSettings
    when the packages for it are not installed."""
    if endpoint is None:
        return None
    try:
        trace = importlib.import_module("opentelemetry.sdk.trace")
        export = importlib.import_module("opentelemetry.sdk.trace.export")
        resources = importlib.import_module("opentelemetry.sdk.resources")
        otlp = importlib.import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    except ImportError as error:
        raise BadSettings(
            "FINEPRINT_OTEL_ENDPOINT is set, and the packages that it needs are not installed: "
            "pip install -c constraints.txt '.[otel]', or take the setting away."
        ) from error
    resource = resources.Resource.create({"service.name": "fineprint"})
    provider = trace.TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(export.BatchSpanProcessor(otlp.OTLPSpanExporter(endpoint=endpoint)))
    return Tracing(provider)
