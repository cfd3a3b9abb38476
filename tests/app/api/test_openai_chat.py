"""/v1/chat/completions over a real engine with a tiny random model: shapes, streams, parameters."""

from __future__ import annotations

import json
import math
import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

CHAT = "/v1/chat/completions"
ASKED = [{"role": "user", "content": "What is the price?"}]


@pytest.fixture
def model(tiny: TestClient) -> str:
    name: str = tiny.get("/v1/models").json()["data"][0]["id"]
    return name


@pytest.fixture
def ask(tiny: TestClient, model: str) -> Any:
    """ask(**body) -> the reply's JSON; ignore_eos so that lengths are known."""

    def send(**body: Any) -> Any:
        whole = {"model": model, "messages": ASKED, "ignore_eos": True, "max_tokens": 8} | body
        reply = tiny.post(CHAT, json=whole)
        assert reply.status_code == 200, reply.text
        return reply.json() if not whole.get("stream") else chunks_of(reply.text)

    return send


def chunks_of(text: str) -> list[dict[str, Any]]:
    """The chunks of a stream that ends as it should."""
    lines = [line for line in text.split("\n") if line]
    assert all(line.startswith("data: ") for line in lines), text
    assert lines[-1] == "data: [DONE]"
    return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def content(chunks: list[dict[str, Any]], choice: int = 0) -> str:
    return "".join(
        piece["delta"].get("content", "")
        for chunk in chunks
        for piece in chunk["choices"]
        if piece["index"] == choice
    )


def test_a_whole_reply(ask: Any, model: str, tiny_engine: Any) -> None:
    body = ask(seed=1)
    assert body["object"] == "chat.completion"
    assert body["id"].startswith("chatcmpl-")
    assert body["model"] == model
    choice = body["choices"][0]
    assert (choice["index"], choice["finish_reason"], choice["logprobs"]) == (0, "length", None)
    assert choice["message"]["role"] == "assistant"
    assert choice["timings"]["ttft_ms"] > 0
    prompt = tiny_engine.tokenizer.encode(tiny_engine.tokenizer.chat(ASKED), special=True)
    assert body["usage"] == {
        "prompt_tokens": len(prompt),
        "completion_tokens": 8,
        "total_tokens": len(prompt) + 8,
        "prompt_tokens_details": {"cached_tokens": 0, "read_tokens": 0},
    }


def test_a_stream_says_the_same_and_begins_with_text(ask: Any) -> None:
    whole = ask(seed=5, max_tokens=30)
    chunks = ask(seed=5, max_tokens=30, stream=True)
    assert content(chunks) == whole["choices"][0]["message"]["content"] != ""
    first = chunks[0]["choices"][0]["delta"]
    assert first["role"] == "assistant" and first["content"]
    assert all("role" not in chunk["choices"][0]["delta"] for chunk in chunks[1:])
    assert all(chunk["choices"][0]["delta"]["content"] for chunk in chunks[:-1])
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks[-2:]] == [None, "length"]
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    assert len({chunk["id"] for chunk in chunks}) == 1
    assert "usage" not in chunks[0]


def test_usage_at_the_end_of_a_stream_or_all_along(ask: Any) -> None:
    options: dict[str, Any] = {"include_usage": True}
    chunks = ask(stream=True, stream_options=options)
    assert {chunk["usage"] for chunk in chunks[:-1]} == {None}
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 8
    counted = ask(stream=True, stream_options=options | {"continuous_usage_stats": True})
    counts = [chunk["usage"]["completion_tokens"] for chunk in counted]
    assert counts == sorted(counts) and counts[0] >= 1 and counts[-1] == 8


def test_the_same_seed_gives_the_same_answer_and_choices_differ(ask: Any) -> None:
    first, again = ask(seed=7, n=3, max_tokens=20), ask(seed=7, n=3, max_tokens=20)
    texts = [choice["message"]["content"] for choice in first["choices"]]
    assert texts == [choice["message"]["content"] for choice in again["choices"]]
    assert len(set(texts)) == 3
    assert [choice["index"] for choice in first["choices"]] == [0, 1, 2]
    single = ask(seed=7, max_tokens=20)
    assert single["choices"][0]["message"]["content"] == texts[0]
    assert first["usage"]["completion_tokens"] == 60
    assert first["usage"]["prompt_tokens"] == single["usage"]["prompt_tokens"]
    streamed = ask(seed=7, n=3, max_tokens=20, stream=True)
    assert [content(streamed, choice) for choice in range(3)] == texts


def test_stop_ends_the_answer_before_the_string(ask: Any) -> None:
    whole = ask(seed=9, max_tokens=60)["choices"][0]["message"]["content"]
    middle = len(whole) // 2
    stop = whole[middle : middle + 3]
    for stopped in (
        ask(seed=9, max_tokens=60, stop=stop)["choices"][0],
        ask(seed=9, max_tokens=60, stop=["\ufdd1", stop])["choices"][0],
    ):
        assert stopped["finish_reason"] == "stop"
        assert stopped["message"]["content"] == whole[: whole.index(stop)]
    chunks = ask(seed=9, max_tokens=60, stop=stop, stream=True)
    assert content(chunks) == whole[: whole.index(stop)]
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"


def test_logprobs_whole_and_streamed(ask: Any) -> None:
    plain = ask(seed=2)["choices"][0]["message"]["content"]
    choice = ask(seed=2, logprobs=True, top_logprobs=3)["choices"][0]
    assert choice["message"]["content"] == plain
    told = choice["logprobs"]["content"]
    assert len(told) == 8
    for token in told:
        assert token["logprob"] <= 0
        assert len(token["top_logprobs"]) == 3
        assert sum(math.exp(best["logprob"]) for best in token["top_logprobs"]) <= 1 + 1e-6
    chunks = ask(seed=2, logprobs=True, top_logprobs=3, stream=True)
    streamed = [
        token
        for chunk in chunks
        if chunk["choices"][0]["logprobs"]
        for token in chunk["choices"][0]["logprobs"]["content"]
    ]
    assert streamed == told
    none = ask(seed=2, logprobs=True)["choices"][0]["logprobs"]["content"]
    assert [token["top_logprobs"] for token in none] == [[]] * 8


def test_an_answer_may_fill_the_window_unless_it_is_limited(ask: Any, tiny_engine: Any) -> None:
    long = [{"role": "user", "content": "1" * 4060}]
    body = ask(messages=long, max_tokens=None)
    assert body["usage"]["total_tokens"] == tiny_engine.config.max_positions
    assert body["usage"]["completion_tokens"] > 8
    assert ask(max_tokens=5, max_completion_tokens=6)["usage"]["completion_tokens"] == 6
    assert ask(min_tokens=8, ignore_eos=False)["usage"]["completion_tokens"] == 8


def test_text_parts_and_other_roles(ask: Any) -> None:
    parts = [{"type": "text", "text": "What is "}, {"type": "text", "text": "the price?"}]
    as_parts = ask(seed=3, messages=[{"role": "user", "content": parts}])
    assert as_parts["choices"][0]["message"] == ask(seed=3)["choices"][0]["message"]
    system = [{"role": "system", "content": "Be brief."}, *ASKED]
    developer = [{"role": "developer", "content": "Be brief."}, *ASKED]
    assert (
        ask(seed=3, messages=system)["choices"][0]["message"]
        == ask(seed=3, messages=developer)["choices"][0]["message"]
    )


def test_what_changes_nothing_is_taken(ask: Any) -> None:
    plain = ask(seed=4)["choices"][0]["message"]
    idle = ask(
        seed=4, user="u", metadata={"a": "b"}, store=False, tools=[], tool_choice="none",
        response_format={"type": "text"}, frequency_penalty=0, presence_penalty=0.0,
        logit_bias={}, modalities=["text"], service_tier="auto", parallel_tool_calls=True,
        stop=None, stream=None, top_k=-1,
    )  # fmt: skip
    assert idle["choices"][0]["message"] == plain


@pytest.mark.parametrize(
    ("change", "param", "code"),
    [
        ({"tools": [{"type": "function"}]}, "tools", "unsupported_parameter"),
        ({"response_format": {"type": "json_object"}}, "response_format", "unsupported_parameter"),
        ({"audio": {"voice": "x"}}, "audio", "unsupported_parameter"),
        ({"presence_penalty": 0.5}, "presence_penalty", "unsupported_parameter"),
        ({"logit_bias": {"5": 1}}, "logit_bias", "unsupported_parameter"),
        ({"store": True}, "store", "unsupported_parameter"),
        ({"store": 0}, "store", "unsupported_parameter"),
        ({"temprature": 0.5}, "temprature", "unknown_parameter"),
        ({"temperature": -1}, "temperature", "invalid_value"),
        ({"top_p": 0}, "top_p", "invalid_value"),
        ({"n": 17}, "n", "invalid_value"),
        ({"max_tokens": 0}, "max_tokens", "invalid_value"),
        ({"max_tokens": "many"}, "max_tokens", "invalid_value"),
        ({"min_tokens": 9}, "min_tokens", "invalid_value"),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "invalid_value"),
        ({"stop": ""}, "stop[0]", "invalid_value"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "invalid_value"),
        ({"messages": []}, "messages", "invalid_value"),
        ({"messages": "hello"}, "messages", "invalid_value"),
        ({"messages": [{"role": "tool", "content": "x"}]}, "messages[0].role", "invalid_value"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content",
            "invalid_value",
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
            "messages[0].content",
            "invalid_value",
        ),
        ({"max_tokens": 5000}, "max_tokens", "context_length_exceeded"),
        ({"messages": [{"role": "user", "content": "9" * 5000}], "max_tokens": None},
         "messages", "context_length_exceeded"),
    ],
)  # fmt: skip
def test_what_would_change_the_result_is_refused_by_name(
    tiny: TestClient, model: str, change: dict[str, Any], param: str, code: str
) -> None:
    body = {"model": model, "messages": ASKED, "max_tokens": 8, **change}
    reply = tiny.post(CHAT, json=body)
    assert reply.status_code == 400, reply.text
    error = reply.json()["error"]
    assert (error["param"], error["code"]) == (param, code)
    assert error["type"] == "invalid_request_error"
    if code == "context_length_exceeded":
        assert "document_ids" in error["message"]


def test_metrics_count_what_was_generated(tiny: TestClient, ask: Any) -> None:
    usage = ask(n=2)["usage"]
    text = tiny.get("/metrics").text
    assert 'fineprint_completions_total{outcome="completed"} 1.0' in text
    assert "fineprint_completion_generated_tokens_total 16.0" in text
    assert f"fineprint_completion_prompt_tokens_total {2.0 * usage['prompt_tokens']}" in text
    assert 'fineprint_completion_ttft_seconds_count{level="engine"} 2.0' in text
    assert 'fineprint_completion_ttft_seconds_count{level="gateway"} 1.0' in text
    assert "fineprint_completion_seconds_per_token_count 2.0" in text


@pytest.mark.parametrize(
    "messages",
    [
        [1] * 1_000_000,
        [{}] * 1_000_000,
        ASKED * 10_001,
        [{"role": "user", "content": "x", **{f"k{i}": 1 for i in range(300_000)}}],
    ],
)
def test_messages_full_of_faults_are_refused_at_the_first(
    tiny: TestClient, model: str, messages: list[Any]
) -> None:
    # Of this process, so that a busy machine changes nothing.
    started = time.process_time()
    reply = tiny.post(CHAT, json={"model": model, "messages": messages})
    assert time.process_time() - started < 8
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "invalid_value")
