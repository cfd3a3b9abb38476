"""Deadlines of plain generations: what is written by then stands, and nothing else runs on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.completions import Completions
from app.generation_prompt import GenerationPrompt
from backend.types import EngineTimings, Request, SamplingParams, TokenEvent, Usage

PROMPT = GenerationPrompt.of((5,))
PATHS: dict[str, dict[str, Any]] = {
    "completions": {"prompt": "The price"},
    "chat/completions": {"messages": [{"role": "user", "content": "The price"}]},
}


class Slow:
    """Streams that write `words` and then nothing, until they are cancelled."""

    def __init__(self) -> None:
        self.words: tuple[str, ...] = ("Ten ", "days")
        self.cancels: dict[str, threading.Event] = {}

    def generate(self, request: Request) -> Iterator[TokenEvent]:
        cancelled = self.cancels.setdefault(request.request_id, threading.Event())
        return self._events(request.request_id, self.words, cancelled)

    def _events(
        self, name: str, words: tuple[str, ...], cancelled: threading.Event
    ) -> Iterator[TokenEvent]:
        for number, word in enumerate(words):
            yield TokenEvent(name, number, 7, word)
        assert cancelled.wait(60), "nobody ended it"
        usage, timings = Usage(1, 0, 0, len(words)), EngineTimings(0.0, 1.0, 1.0, 1.0)
        yield TokenEvent(name, len(words), None, "", "cancelled", usage, timings)

    def cancel(self, request_id: str) -> None:
        self.cancels[request_id].set()


@pytest.fixture
def slow(tiny_engine: Any, monkeypatch: pytest.MonkeyPatch) -> Slow:
    scripted = Slow()
    monkeypatch.setattr(tiny_engine, "generate", scripted.generate)
    monkeypatch.setattr(tiny_engine, "cancel", scripted.cancel)
    return scripted


@pytest.fixture
def send(tiny: TestClient, tiny_services: Any) -> Any:
    def post(path: str, **body: Any) -> Any:
        whole = {"model": tiny_services.settings.model, "timeout_s": 1} | PATHS[path] | body
        return tiny.post(f"/v1/{path}", json=whole)

    return post


@pytest.mark.parametrize("path", PATHS)
def test_at_the_deadline_what_is_written_is_the_answer(slow: Slow, send: Any, path: str) -> None:
    body = send(path, n=2, timeout_s=5).json()
    for choice in body["choices"]:
        text = choice["text"] if path == "completions" else choice["message"]["content"]
        assert (text, choice["finish_reason"], choice["stop_reason"]) == (
            "Ten days",
            "length",
            "timeout",
        )
    assert body["usage"]["completion_tokens"] == 4
    assert len(slow.cancels) == 2 and all(one.is_set() for one in slow.cancels.values())


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_ends_at_its_deadline_as_one_that_is_done(
    slow: Slow, send: Any, path: str
) -> None:
    lines = [line for line in send(path, stream=True, timeout_s=5).text.split("\n") if line]
    assert lines[-1] == "data: [DONE]"
    (last,) = json.loads(lines[-2].removeprefix("data: "))["choices"]
    assert (last["finish_reason"], last["stop_reason"]) == ("length", "timeout")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
def test_without_a_word_the_deadline_is_an_error(
    slow: Slow, send: Any, path: str, stream: bool
) -> None:
    slow.words = ()
    reply = send(path, stream=stream)
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")
    assert "within 1 seconds" in reply.json()["error"]["message"]


def test_the_time_counts_from_the_arrival_and_no_clock_is_left(
    tiny_engine: Any, slow: Slow
) -> None:
    ended = threading.Event()
    completions = Completions(tiny_engine, on_finished=lambda _: ended.set())
    long_ago = time.perf_counter() - 3600
    run = completions.start(
        [PROMPT], SamplingParams(max_tokens=9), owner="A", arrived=long_ago, timeout_s=3599
    )
    assert ended.wait(60)
    assert run.timed_out and run.finished
    ended.clear()
    patient = completions.start([PROMPT], SamplingParams(max_tokens=9), owner="A", timeout_s=3600)
    patient.cancel()
    assert ended.wait(60)
    assert not patient.timed_out and patient.outcome == "cancelled"
    completions.close(60)
    assert not completions._timers and completions.idle
