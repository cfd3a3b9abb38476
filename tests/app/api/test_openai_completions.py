"""/v1/completions, /v1/models and OpenAI's error shape, over a tiny random model."""

from __future__ import annotations

import itertools
import threading
import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.bodies import PROMPT_LIMIT
from app.completions import Completions
from app.errors import BadRequest, TooManyQuestions, Unavailable
from app.generation_prompt import GenerationPrompt
from app.waiting import Places
from backend.errors import (
    BackendError,
    EngineBusy,
    EngineClosed,
    OutOfMemory,
    RequestTooLarge,
    WindowExceeded,
)
from backend.types import Request, SamplingParams

TEXT = "The Supplier shall deliver"
PROMPT = GenerationPrompt.of((5,))


@pytest.fixture
def complete(tiny: TestClient, tiny_services: Any) -> Any:
    model = tiny_services.settings.model

    def send(**body: Any) -> Any:
        whole = {"model": model, "prompt": TEXT, "ignore_eos": True, "seed": 1} | body
        return tiny.post("/v1/completions", json=whole)

    return send


def until_free(engine: Any) -> None:
    end = time.monotonic() + 60
    while engine._live:
        assert time.monotonic() < end, "the engine still generates"
        time.sleep(0.01)


def test_text_and_its_token_ids_are_the_same_prompt(complete: Any, tiny_engine: Any) -> None:
    body = complete().json()
    assert body["object"] == "text_completion"
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["completion_tokens"] == 16, "OpenAI's default"
    ids = tiny_engine.tokenizer.encode(TEXT)
    assert complete(prompt=ids).json()["choices"][0]["text"] == body["choices"][0]["text"]
    assert body["usage"]["prompt_tokens"] == len(ids)


def test_several_prompts_have_their_choices_in_order(complete: Any, tiny_engine: Any) -> None:
    prompts = [TEXT, "合同"]
    single = [complete(prompt=prompt).json() for prompt in prompts]
    for sent in (prompts, [tiny_engine.tokenizer.encode(prompt) for prompt in prompts]):
        body = complete(prompt=sent, n=2).json()
        assert [choice["index"] for choice in body["choices"]] == [0, 1, 2, 3]
        texts = [choice["text"] for choice in body["choices"]]
        assert texts[::2] == [one["choices"][0]["text"] for one in single]
        assert body["usage"]["prompt_tokens"] == sum(
            one["usage"]["prompt_tokens"] for one in single
        )


def test_control_tokens_in_a_raw_prompt_are_control_tokens(complete: Any, tiny_engine: Any) -> None:
    prompt = "<|im_start|>user\nPrice?<|im_end|>\n"
    ids = tiny_engine.tokenizer.encode(prompt, special=True)
    assert complete(prompt=prompt).json()["usage"]["prompt_tokens"] == len(ids)
    assert ids[0] == tiny_engine.tokenizer.control_ids["<|im_start|>"]


def test_logprobs_of_text(complete: Any) -> None:
    choice = complete(logprobs=2, max_tokens=6).json()["choices"][0]
    told = choice["logprobs"]
    assert len(told["tokens"]) == len(told["token_logprobs"]) == len(told["text_offset"]) == 6
    assert told["text_offset"][0] == 0
    lengths = [len(token) for token in told["tokens"]]
    assert told["text_offset"][1:] == [sum(lengths[: i + 1]) for i in range(5)]
    assert all(1 <= len(best) <= 2 for best in told["top_logprobs"])


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": ""}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [1, 100_000]}, "prompt"),
        ({"prompt": [1, -1]}, "prompt"),
        ({"prompt": [True]}, "prompt"),
        ({"prompt": ["a", 1]}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"echo": True}, "echo"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2}, "best_of"),
        ({"document_ids": ["doc_1"]}, "document_ids"),
        ({"prompt": ["a"] * 64, "n": 2}, "n"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": True}, "temperature"),
        ({"top_p": True}, "top_p"),
        ({"top_k": False}, "top_k"),
        ({"repetition_penalty": True}, "repetition_penalty"),
        ({"seed": True}, "seed"),
        ({"n": True}, "n"),
        ({"min_tokens": False}, "min_tokens"),
        ({"logprobs": True}, "logprobs"),
        ({"prompt": [[1]] * 65}, "prompt"),
    ],
)
def test_bad_parameters_are_named(complete: Any, change: dict[str, Any], param: str) -> None:
    reply = complete(**change)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param), reply.text


@pytest.mark.parametrize(
    "change",
    [
        {"stop": [1] * 1_000_000},
        {f"k{i}": 1 for i in range(300_000)},
        {"stream": True, "stream_options": {f"k{i}": 1 for i in range(300_000)}},
    ],
)
def test_a_body_full_of_faults_is_refused_at_the_first(
    complete: Any, change: dict[str, Any]
) -> None:
    # Of this process, so that a busy machine changes nothing.
    started = time.process_time()
    reply = complete(**change)
    # A list of all faults took 50 microseconds and 1.5 KB for each, 15 seconds and more.
    assert time.process_time() - started < 8
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_value")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("completions", {"prompt": TEXT}),
        ("chat/completions", {"messages": [{"role": "user", "content": TEXT}]}),
    ],
)
def test_both_kinds_are_generated_in_their_owners_turn(
    tiny: TestClient,
    tiny_services: Any,
    tiny_engine: Any,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    body: dict[str, Any],
) -> None:
    owners, generate = [], tiny_engine.generate

    def seen(request: Request) -> Any:
        owners.append(request.owner)
        return generate(request)

    monkeypatch.setattr(tiny_engine, "generate", seen)
    plain = {"model": tiny_services.settings.model, "max_tokens": 2, "n": 2} | body
    assert tiny.post(f"/v1/{path}", json=plain).status_code == 200
    assert owners == ["local", "local"]


def test_models(tiny: TestClient, tiny_services: Any, tiny_engine: Any) -> None:
    listed = tiny.get("/v1/models", headers={"authorization": "Bearer whatever"}).json()
    (model,) = listed["data"]
    assert listed["object"] == "list"
    assert model["max_model_len"] == tiny_engine.config.max_positions
    assert tiny.get(f"/v1/models/{model['id']}").json() == model
    assert tiny.get(f"/v1/models/{tiny_services.settings.model}").status_code == 200


def test_the_default_model_has_its_names(client: TestClient) -> None:
    assert client.get("/v1/models").json()["data"][0]["id"] == "smollm2-135m-instruct"
    for name in ("SmolLM2-135M-Instruct", "smollm2-135m"):
        assert client.get(f"/v1/models/{name}").json()["id"] == "smollm2-135m-instruct"


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/v1", None, 404, "not_found"),
        ("GET", "/v1/embeddings", None, 404, "not_found"),
        ("GET", "/v1/models/gpt-4", None, 404, "model_not_found"),
        ("GET", "/v1/models/a/b", None, 404, "model_not_found"),
        ("GET", "/v1/completions", None, 405, "method_not_allowed"),
        ("POST", "/v1/completions", b"{", 400, "bad_json"),
        ("POST", "/v1/completions", b"[]", 400, "bad_request"),
        ("POST", "/v1/completions", b"[" * 100_000, 400, "bad_json"),
        ("POST", "/v1/completions", b'{"model": "gpt-4", "prompt": "x"}', 404, "model_not_found"),
        ("POST", "/v1/completions", b'{"model": "\\ud800", "prompt": "x"}', 400, "invalid_value"),
        ("POST", "/v1/completions", b'{"prompt": "x"}', 400, "invalid_value"),
        ("POST", "/v1/completions", b" " * (PROMPT_LIMIT + 1), 413, "too_large"),
    ],
)
def test_every_error_has_openais_shape(
    tiny: TestClient, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    headers = {"content-type": "application/json", "x-request-id": "trace-9"}
    reply = tiny.request(method, path, content=body, headers=headers)
    assert (reply.status_code, reply.headers["content-type"]) == (status, "application/json")
    assert int(reply.headers["content-length"]) == len(reply.content)
    assert reply.headers["x-request-id"] == "trace-9"
    assert set(reply.json()) == {"error"}
    error = reply.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["code"] == code
    assert error["message"] and error["type"] == "invalid_request_error"


def test_pages_of_other_sites_may_not_use_it(tiny: TestClient) -> None:
    reply = tiny.post("/v1/completions", json={}, headers={"origin": "http://evil.example"})
    assert (reply.status_code, reply.json()["error"]["type"]) == (403, "permission_error")


def test_what_breaks_inside_is_told_in_the_same_shape(
    tiny: TestClient, complete: Any, tiny_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for raised, status, kind in (
        (EngineBusy("Too many wait."), 429, "rate_limit_error"),
        (EngineClosed("It is closed."), 503, "server_error"),
        (RuntimeError("boom"), 500, "server_error"),
    ):

        def fail(*_: object, error: Exception = raised) -> None:
            raise error

        monkeypatch.setattr(tiny_engine, "generate", fail)
        reply = complete()
        assert (reply.status_code, reply.json()["error"]["type"]) == (status, kind)
        assert ("retry-after" in reply.headers) == (status in (429, 503))
        assert "boom" not in reply.text


@pytest.mark.parametrize("stream", [False, True])
def test_a_failure_before_the_first_token_is_a_status(
    complete: Any, tiny_engine: Any, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(tiny_engine._steps, "_prefill", fail)
    reply = complete(stream=stream, n=2)
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "engine_error"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("late", [False, True], ids=["refused", "first event"])
@pytest.mark.parametrize(
    ("raised", "status", "code"),
    [
        (RequestTooLarge("It needs more pages than there are."), 413, "request_too_large"),
        (WindowExceeded("Longer than the window."), 400, "context_length_exceeded"),
        (EngineBusy("Every model server is at its limit."), 429, "rate_limit_exceeded"),
        (EngineClosed("It is closed."), 503, "engine_closed"),
        (OutOfMemory("Too little memory now."), 503, "engine_error"),
    ],
)
def test_a_failure_keeps_its_kind_whenever_it_comes(
    complete: Any,
    tiny_engine: Any,
    monkeypatch: pytest.MonkeyPatch,
    raised: BackendError,
    late: bool,
    status: int,
    code: str,
    stream: bool,
) -> None:
    class Failing:
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            raise raised

        def close(self) -> None:
            """Nothing is open."""

    def generate(_: Request) -> Failing:
        if late:
            return Failing()
        raise raised

    monkeypatch.setattr(tiny_engine, "generate", generate)
    reply = complete(stream=stream)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)
    assert ("retry-after" in reply.headers) == (status in (429, 503))
    assert reply.json()["error"]["message"] == str(raised)


def test_a_failure_in_mid_stream_is_the_last_event(
    complete: Any, tiny_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, steps = tiny_engine._steps._decode, itertools.count()

    def fail(batch: object) -> None:
        time.sleep(0.1)
        if next(steps) == 3:
            raise RuntimeError("out of memory")
        decode(batch)

    monkeypatch.setattr(tiny_engine._steps, "_decode", fail)
    reply = complete(stream=True)
    lines = [line for line in reply.text.split("\n") if line]
    assert reply.status_code == 200
    assert '"error":{"message":"out of memory","type":"server_error"' in lines[-1]
    assert "[DONE]" not in reply.text


def test_no_more_choices_at_once_than_the_limit(tiny_engine: Any) -> None:
    ended = threading.Event()
    completions = Completions(tiny_engine, limit=2, on_finished=lambda _: ended.set())
    long = SamplingParams(max_tokens=3000, ignore_eos=True)
    with pytest.raises(BadRequest, match="Lower n"):
        completions.start([PROMPT], long, owner="A", n=3)
    run = completions.start([PROMPT], long, owner="A", n=2)
    with pytest.raises(TooManyQuestions, match="limit is 2"):
        completions.start([PROMPT], long, owner="A")
    run.cancel()
    assert ended.wait(5)
    assert run.outcome == "cancelled"
    completions.start([PROMPT], SamplingParams(max_tokens=1), owner="A", n=2)
    completions.close()
    with pytest.raises(Unavailable):
        completions.start([PROMPT], long, owner="A")


def test_an_owner_leaves_some_choices_to_the_others(tiny_engine: Any) -> None:
    completions = Completions(tiny_engine, limit=4, several_owners=True)
    long = SamplingParams(max_tokens=3000, ignore_eos=True)
    with pytest.raises(BadRequest, match="limit is 3"):
        completions.start([PROMPT], long, owner="A", n=4)
    first = completions.start([PROMPT], long, owner="A", n=3)
    with pytest.raises(TooManyQuestions, match="3 of one owner"):
        completions.start([PROMPT], long, owner="A")
    other = completions.start([PROMPT], long, owner="B")
    with pytest.raises(TooManyQuestions, match="limit is 4"):
        completions.start([PROMPT], long, owner="C")
    completions.close()
    assert first.finished and other.finished and completions.idle


def test_who_finds_no_choice_left_is_told_how_long_the_last_ones_took(
    tiny_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ended = [0.0], threading.Semaphore(0)
    completions = Completions(tiny_engine, on_finished=lambda _: ended.release())
    completions._places = Places(2, several=False, clock=lambda: now[0])
    long = SamplingParams(max_tokens=3000, ignore_eos=True)
    completions.start([PROMPT], long, owner="A")
    for _ in range(3):
        now[0] += 3.0
        completions.start([PROMPT], SamplingParams(max_tokens=1), owner="A")
        assert ended.acquire(timeout=30)
    with monkeypatch.context() as patch:

        def busy(*_: object) -> None:
            raise EngineBusy("Too many wait.")

        patch.setattr(tiny_engine, "generate", busy)
        with pytest.raises(TooManyQuestions, match="Too many wait") as refused:
            completions.start([PROMPT], long, owner="A")
        assert refused.value.retry_s == 3
    completions.start([PROMPT], long, owner="A")
    with pytest.raises(TooManyQuestions, match="again in 6 s") as refused:
        completions.start([PROMPT], long, owner="A")
    assert refused.value.retry_s == 6
    completions.close()


@pytest.mark.parametrize("broken", ["the first", "the second"])
def test_places_are_given_back_whatever_keeps_a_choice_from_starting(
    tiny_engine: Any, monkeypatch: pytest.MonkeyPatch, broken: str
) -> None:
    completions = Completions(tiny_engine, limit=4)
    generate, calls = tiny_engine.generate, itertools.count()

    def fail(request: Request) -> Any:
        if next(calls) == ("the first", "the second").index(broken):
            raise RuntimeError("the device is lost")
        return generate(request)

    with monkeypatch.context() as patched:
        patched.setattr(tiny_engine, "generate", fail)
        with pytest.raises(RuntimeError, match="the device is lost"):
            completions.start(
                [PROMPT], SamplingParams(max_tokens=3000, ignore_eos=True), owner="A", n=2
            )
    assert completions.idle and not completions._runs
    until_free(tiny_engine)
    completions.close()


def test_a_thread_that_can_not_start_keeps_no_place(
    tiny_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    completions = Completions(tiny_engine, limit=4)
    begin, calls = threading.Thread.start, itertools.count()

    def fail(thread: threading.Thread) -> None:
        if thread.name == "completion" and next(calls) == 1:
            raise RuntimeError("can't start new thread")
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", fail)
    with pytest.raises(RuntimeError, match="new thread"):
        completions.start(
            [PROMPT], SamplingParams(max_tokens=3000, ignore_eos=True), owner="A", n=3
        )
    # The one choice that had a thread is cancelled; closing waits for it.
    completions.close(60)
    assert completions.idle and not completions._runs
    until_free(tiny_engine)


def test_closing_ends_what_is_under_way(tiny_engine: Any) -> None:
    completions = Completions(tiny_engine)
    long = SamplingParams(max_tokens=3000, ignore_eos=True)
    run = completions.start([PROMPT, PROMPT], long, owner="A")
    completions.close()
    assert run.finished and run.outcome == "cancelled"
