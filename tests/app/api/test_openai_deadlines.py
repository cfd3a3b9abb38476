"""Deadlines of plain generations: what is written by then stands, and nothing else runs on."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio
import pytest
from fastapi.testclient import TestClient

from app.api.following import ready_or_left
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


class AtTheDeadline(Slow):
    """Streams of which each ends as `ends` says once the time is up: by itself, with its only word,
    or cut ("cancelled"), and the next one when the one before is over."""

    def __init__(self) -> None:
        super().__init__()
        self.ends: tuple[tuple[str, str], ...] = ()
        self.over: list[threading.Event] = []

    def _events(
        self, name: str, words: tuple[str, ...], cancelled: threading.Event
    ) -> Iterator[TokenEvent]:
        number = int(name.rpartition("-")[2])
        self.over += [threading.Event() for _ in range(number + 1 - len(self.over))]
        return self._ending(name, number, cancelled)

    def _ending(self, name: str, number: int, cancelled: threading.Event) -> Iterator[TokenEvent]:
        # Its time is up, and its end had come before the engine heard of that.
        assert cancelled.wait(60), "nobody ended it"
        assert number == 0 or self.over[number - 1].wait(60)
        word, reason = self.ends[number]
        usage, timings = Usage(1, 0, 0, len(word)), EngineTimings(0.0, 1.0, 1.0, 1.0)
        yield TokenEvent(name, 0, 7 if word else None, word, reason, usage, timings)  # type: ignore[arg-type]
        # By now the event above is published.
        self.over[number].set()


@pytest.fixture
def late(tiny_engine: Any, monkeypatch: pytest.MonkeyPatch) -> AtTheDeadline:
    scripted = AtTheDeadline()
    monkeypatch.setattr(tiny_engine, "generate", scripted.generate)
    monkeypatch.setattr(tiny_engine, "cancel", scripted.cancel)
    return scripted


@pytest.mark.parametrize(
    ("path", "stream", "word"),
    [
        ("completions", False, "Ten."),
        ("chat/completions", True, "Ten."),
        ("completions", True, ""),
        ("chat/completions", False, ""),
    ],
)
def test_an_end_of_its_own_at_the_deadline_is_told_as_that(
    late: AtTheDeadline, send: Any, path: str, stream: bool, word: str
) -> None:
    late.ends = ((word, "stop"),)
    reply = send(path, stream=stream)
    assert reply.status_code == 200, reply.text
    if stream:
        lines = [line for line in reply.text.split("\n") if line.startswith("data: ")]
        assert lines[-1] == "data: [DONE]"
        (choice,) = json.loads(lines[-2].removeprefix("data: "))["choices"]
        assert word in reply.text
    else:
        (choice,) = reply.json()["choices"]
        said = choice["text"] if path == "completions" else choice["message"]["content"]
        assert (said or "") == word
    assert choice["finish_reason"] == "stop" and choice.get("stop_reason") != "timeout"


@pytest.mark.parametrize("stream", [False, True])
def test_one_choice_that_is_cut_waits_for_the_others_end(
    late: AtTheDeadline, send: Any, stream: bool
) -> None:
    late.ends = (("", "cancelled"), ("Ten.", "stop"))
    reply = send("completions", n=2, stream=stream)
    assert reply.status_code == 200, reply.text
    if not stream:
        told = [(one["finish_reason"], one["stop_reason"]) for one in reply.json()["choices"]]
        assert told == [("length", "timeout"), ("stop", None)]


@pytest.mark.parametrize("stream", [False, True])
def test_choices_that_are_all_cut_without_a_word_are_one_error(
    late: AtTheDeadline, send: Any, stream: bool
) -> None:
    late.ends = (("", "cancelled"), ("", "cancelled"))
    reply = send("completions", n=2, stream=stream)
    assert (reply.status_code, reply.json()["error"]["code"]) == (504, "timeout")


def test_the_status_of_a_stream_waits_for_the_end_that_its_deadline_brings(
    late: AtTheDeadline, tiny_engine: Any, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_again = threading.Event()

    async def impatient(
        run: Any, request: Any, ready: Callable[[], bool], seconds: float | None = None
    ) -> bool:
        if seconds is None:
            asked_again.set()
            return await ready_or_left(run, request, ready)
        while not run.timed_out:
            await anyio.sleep(0.01)
        return True

    def cancel_late(request_id: str) -> None:
        assert asked_again.wait(60)
        late.cancel(request_id)

    monkeypatch.setattr("app.api.openai.generation.ready_or_left", impatient)
    monkeypatch.setattr(tiny_engine, "cancel", cancel_late)
    late.ends = (("", "cancelled"),)
    assert send("completions", stream=True).status_code == 504
