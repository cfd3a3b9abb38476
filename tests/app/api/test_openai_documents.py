"""Questions about documents through /v1/chat/completions, with scripted answers."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.openai.document_chat import history_of
from app.api.openai.requests import ChatMessage
from app.errors import TooManyQuestions
from app.types import Turn

CHAT = "/v1/chat/completions"


@pytest.fixture
def ask(client: TestClient, upload: Any) -> Any:
    """ask(question, **body) -> the response, about one stored contract."""
    document_id = upload()["id"]

    def send(question: str = "What is the price?", **body: Any) -> Any:
        whole: dict[str, Any] = {
            "model": "smollm2-135m-instruct",
            "messages": [{"role": "user", "content": question}],
            "document_ids": [document_id],
        }
        return client.post(CHAT, json=whole | body)

    return send


def stream_of(reply: Any) -> list[dict[str, Any]]:
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n") if line]
    assert lines[-1] == "[DONE]", reply.text
    return [json.loads(line) for line in lines[:-1]]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("quote", "stop"),
        ("stop", "stop"),
        ("repetition", "stop"),
        ("length", "length"),
        ("cut", "length"),
        ("timeout", "length"),
        ("server_stopping", "length"),
        ("cancelled", "length"),
        ("error", "length"),
    ],
)
def test_only_a_whole_answer_ends_with_stop(
    ask: Any, asker: Any, reason: str, told: str, stream: bool
) -> None:
    asker.change = lambda answer: dataclasses.replace(answer, finish_reason=reason)
    reply = ask(stream=stream)
    if reason == "cancelled" and not stream:
        assert (reply.status_code, reply.json()["error"]["code"]) == (409, "cancelled")
        return
    last = stream_of(reply)[-1] if stream else reply.json()
    assert last["choices"][0]["finish_reason"] == told


def test_an_answer_with_its_citations(client: TestClient, ask: Any) -> None:
    body = ask().json()
    choice = body["choices"][0]
    assert choice["finish_reason"] == "stop"
    (note,) = choice["message"]["annotations"]
    assert (note["type"], note["number"], note["page"]) == ("file_citation", 1, 1)
    text = client.get(f"/api/v1/documents/{note['document_id']}/text").json()["text"]
    assert text[note["start_char"] : note["end_char"]] == note["quote"]
    assert note["quote"] in choice["message"]["content"]
    assert body["usage"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 8, "read_tokens": 0},
    }
    facts = body["fineprint"]
    assert facts["status"] == "answered"
    assert facts["coverage"] == {"read_tokens": 40, "total_tokens": 40}
    same = client.get(f"/api/v1/answers/{facts['answer_id']}").json()
    assert same["answer"] == choice["message"]["content"]
    assert same["conversation_id"] == facts["conversation_id"]


def test_the_stream_says_the_same(ask: Any) -> None:
    whole = ask().json()
    chunks = stream_of(ask(stream=True, stream_options={"include_usage": True}))
    first, last, usage = chunks[0], chunks[-2], chunks[-1]
    assert first["choices"][0]["delta"]["role"] == "assistant"
    assert first["choices"][0]["delta"]["content"]
    joined = "".join(piece["delta"]["content"] for c in chunks for piece in c["choices"])
    assert joined == whole["choices"][0]["message"]["content"]
    assert last["choices"][0]["finish_reason"] == "stop"
    annotations = whole["choices"][0]["message"]["annotations"]
    assert last["choices"][0]["delta"]["annotations"] == annotations
    assert last["fineprint"]["status"] == "answered"
    assert usage["choices"] == []
    assert usage["usage"] == whole["usage"]


def test_what_is_not_in_the_document_is_a_normal_answer(services: Any, upload: Any) -> None:
    from app.api import create_app

    document_id = upload()["id"]
    with TestClient(create_app(services)) as real:
        body = {
            "model": "smollm2-135m-instruct",
            "messages": [{"role": "user", "content": "Which zebra paints the submarine?"}],
            "document_ids": [document_id],
        }
        reply = real.post(CHAT, json=body)
    assert reply.status_code == 200, reply.text
    told = reply.json()
    assert told["fineprint"]["status"] == "not_found"
    message = told["choices"][0]["message"]
    assert message["annotations"] == []
    assert "not" in message["content"].lower()
    assert told["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize(
    ("ended", "told"), [("length", "length"), ("cut", "length"), ("stop", "stop")]
)
def test_words_that_end_before_they_are_finished_are_told_so(
    ask: Any, asker: Any, ended: str, told: str
) -> None:
    asker.change = lambda answer: dataclasses.replace(answer, finish_reason=ended)
    assert ask().json()["choices"][0]["finish_reason"] == told


def test_earlier_messages_are_the_history(ask: Any, asker: Any) -> None:
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is the term?"},
        {"role": "assistant", "content": "Two years."},
        {"role": "user", "content": "And the price?"},
    ]
    assert ask(messages=messages).status_code == 200
    assert asker.histories[-1] == (Turn("What is the term?", "Two years."),)
    unanswered = [ChatMessage(role="user", content=text) for text in ("a", "b")]
    answered = [*unanswered, ChatMessage(role="assistant", content="c")]
    assert history_of(unanswered) == ()
    assert history_of(answered) == (Turn("b", "c"),)


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"document_ids": ["doc_none"]}, 404, "not_found"),
        ({"document_ids": []}, 400, "invalid_value"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, 400, "invalid_value"),
        ({"messages": [{"role": "user", "content": "  "}]}, 400, "bad_question"),
        ({"n": 2}, 400, "unsupported_parameter"),
        ({"stop": ["x"]}, 400, "unsupported_parameter"),
        ({"logprobs": True}, 400, "unsupported_parameter"),
        ({"ignore_eos": True}, 400, "unsupported_parameter"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_refusals(ask: Any, change: dict[str, Any], status: int, code: str, stream: bool) -> None:
    reply = ask(**change, stream=stream)
    assert (reply.status_code, reply.json()["error"]["code"]) == (status, code)


def test_sampling_parameters_say_nothing(ask: Any) -> None:
    plain = ask().json()["choices"]
    assert ask(temperature=0.3, top_p=0.5, seed=4, max_tokens=9).json()["choices"] == plain


@pytest.mark.parametrize("stream", [False, True])
def test_a_full_queue_and_a_failing_worker(
    client: TestClient, ask: Any, asker: Any, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    asker.fails = RuntimeError("boom")
    failed = ask(stream=stream)
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "internal_error")
    assert "boom" not in failed.text

    def full(*_: object, **__: object) -> None:
        raise TooManyQuestions("32 questions are already waiting. Ask again in a moment.")

    monkeypatch.setattr(client.app.state.runs, "start", full)  # type: ignore[attr-defined]
    busy = ask(stream=stream)
    assert (busy.status_code, busy.json()["error"]["type"]) == (429, "rate_limit_error")
    assert int(busy.headers["retry-after"]) > 0
