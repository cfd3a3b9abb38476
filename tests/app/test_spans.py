"""A timeline as a tree of spans, and the way of spans to a collector."""

from __future__ import annotations

import contextvars
import importlib.util
import sys
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from app import request_id
from app.errors import BadSettings
from app.spans import Span, spans_of
from app.timeline import Timeline, begin_request
from app.tracing import Tracing, open_tracing
from backend.step_times import RequestSteps, StepRange


def told() -> tuple[Timeline, RequestSteps]:
    """A question that was queued, read for and answered."""
    request_id.begin("trace-7")
    clock = begin_request()
    timeline = Timeline()
    for name in ("taken_up", "created", "first_quote", "completed"):
        timeline.note(name)
    clock.sent()
    clock.done()
    begun = time.perf_counter()
    steps = RequestSteps(
        "ans_1",
        tuple(
            (name, begun + place)
            for place, name in enumerate(("read_begun", "read_done", "admitted", "first_token"))
        ),
        (StepRange("read", begun, 0.75), StepRange("prefill", begun + 2, 0.5)),
        (begun + 3,),
    )
    return timeline, steps


def made() -> Sequence[Span]:
    # In a context of its own: the clock of this request is nobody else's.
    timeline, steps = contextvars.copy_context().run(told)
    return spans_of("answer", "ans_1", timeline, [steps], {"fineprint.state": "completed"})


def test_the_whole_holds_its_parts_and_one_id_goes_through_all() -> None:
    whole, *parts = made()
    assert whole.name == "answer" and whole.attributes["fineprint.state"] == "completed"
    names = [part.name for part in parts]
    assert names == ["queue", "search", "read", "prefill", "send", "step.read", "step.prefill"]
    for span in (whole, *parts):
        assert span.attributes["fineprint.request_id"] == "trace-7"
        assert span.attributes["fineprint.run_id"] == "ans_1"
        assert whole.start <= span.start <= span.end <= whole.end
    levels = {part.name: part.attributes["fineprint.level"] for part in parts}
    assert (levels["send"], levels["read"], levels["step.read"]) == (
        "gateway", "scheduler", "kernel",
    )  # fmt: skip
    by_name = {part.name: part for part in parts}
    assert by_name["read"].end - by_name["read"].start == pytest.approx(1.0)
    assert by_name["step.read"].end - by_name["step.read"].start == pytest.approx(0.75)


def test_a_stretch_without_both_ends_is_left_out() -> None:
    timeline = contextvars.Context().run(Timeline)
    timeline.note("created")
    whole, *parts = spans_of("answer", "ans_2", timeline, [], {})
    assert parts == [] and whole.end >= whole.start


def test_without_a_collector_nothing_is_sent() -> None:
    assert open_tracing(None) is None


def test_without_the_packages_the_setting_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with pytest.raises(BadSettings, match="otel"):
        open_tracing("http://127.0.0.1:4318/v1/traces")


class Told:
    """A `TracerProvider` that keeps what it is told, in the library's words."""

    def __init__(self) -> None:
        self.started: list[tuple[str, Any, dict[str, Any], int]] = []
        self.ended: list[int] = []
        self.closed = False

    def get_tracer(self, name: str) -> Told:
        return self

    def start_span(self, name: str, context: Any, attributes: Any, start_time: int) -> Told:
        self.started.append((name, context, attributes, start_time))
        return self

    def end(self, end_time: int) -> None:
        self.ended.append(end_time)

    def shutdown(self) -> None:
        self.closed = True


class LastByte:
    """Out when it is told to be."""

    sent = False


def test_a_run_is_told_once_its_last_byte_is_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.tracing.PATIENCE_S", 3600.0)
    provider, last, asked = Told(), LastByte(), threading.Event()

    def spans() -> Sequence[Span]:
        assert last.sent
        asked.set()
        return made()

    tracing = Tracing(provider)
    tracing.take(last, spans)
    assert provider.started == []
    last.sent = True
    assert asked.wait(30)
    tracing.close()
    assert provider.closed
    names = [name for name, *_ in provider.started]
    assert names[0] == "answer" and len(names) == len(provider.ended) == 8
    (_, outside, _, start), *others = provider.started
    assert outside is None and all(context is not None for _, context, _, _ in others)
    # Nanoseconds since 1970; the whole is ended last, and no span outlasts it.
    assert abs(start / 1e9 - time.time()) < 3600
    assert provider.ended[-1] == max(provider.ended)


def test_one_run_that_cannot_be_told_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    provider = Told()
    tracing = Tracing(provider)
    last = LastByte()
    last.sent = True
    tracing.take(last, lambda: ())
    tracing.take(last, made)
    tracing.close()
    assert "could not be traced" in caplog.text and len(provider.started) == 8


if importlib.util.find_spec("opentelemetry.exporter") is not None:
    # Not skipped but left out: where the extra is not installed there is nothing to look at.

    def test_a_collector_gets_the_spans() -> None:
        bodies: list[bytes] = []

        class Collector(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                bodies.append(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing on the terminal."""

        server = HTTPServer(("127.0.0.1", 0), Collector)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        tracing = open_tracing(f"http://127.0.0.1:{server.server_port}/v1/traces")
        assert tracing is not None
        last = LastByte()
        last.sent = True
        tracing.take(last, made)
        tracing.close()
        server.shutdown()
        server.server_close()
        thread.join()
        sent = b"".join(bodies)
        for name in (b"answer", b"step.prefill", b"trace-7", b"fineprint"):
            assert name in sent
