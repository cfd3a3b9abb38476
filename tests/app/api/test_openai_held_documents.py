"""Long prompts to /v1 that hold a stored document: its KV is used, and nothing else changes."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.generation_prompt import EVIDENCE_TOKENS

CHAT, TEXT = "/v1/chat/completions", "/v1/completions"
CAP = "The liability of the Supplier is capped at USD 2,000,000 for each accident."
QUESTION = "What is the cap on the liability of the Supplier?"


def contract(clauses: int) -> str:
    """A contract in which only the last clause is about liability."""
    parts = [
        f"{number}. Delivery of item {number}\nThe Seller shall deliver item {number} to the "
        f"Buyer within {number + 10} days at the Buyer's store number {number}.\n\n"
        for number in range(1, clauses)
    ]
    return "SUPPLY AGREEMENT\n\n" + "".join(parts) + f"{clauses}. Liability\n{CAP}\n"


LONG = contract(40)
"""Some 2,900 tokens of the tiny model, whose window is 4,096."""
LONGER = contract(90)


@pytest.fixture
def stored(tiny_services: Any) -> Any:
    """stored(text) -> the document's id once the engine has read it."""

    def add(text: str) -> str:
        record, _ = tiny_services.library.add(io.BytesIO(text.encode()), "long.txt")
        assert tiny_services.library.wait(record.id, timeout=120).status == "completed"
        return str(record.id)

    return add


@pytest.fixture
def send(tiny: TestClient, tiny_services: Any) -> Any:
    """send(address, **body) -> the response."""

    def posted(address: str, **body: Any) -> Any:
        whole = {"model": tiny_services.settings.model, "ignore_eos": True, "max_tokens": 4}
        return tiny.post(address, json=whole | body)

    return posted


def user(content: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": content}]


def size(engine: Any, text: str) -> int:
    return len(engine.tokenizer.encode(text))


def shown_text(text: str, choice: dict[str, Any]) -> str:
    return " … ".join(text[start:end] for start, end in choice["fineprint"]["shown"])


@pytest.mark.parametrize(
    "content",
    [
        f"{LONG}\n\n{QUESTION}",
        f"{QUESTION}\n\n{LONG}",
        f"Answer from the contract below.\n\n<contract>\n{LONG}</contract>\n\n{QUESTION}",
        f"{LONG}{QUESTION}".replace("\n", "\r\n  "),
    ],
)
def test_a_stored_document_in_the_prompt_is_not_read_again(
    stored: Any, send: Any, tiny_engine: Any, content: str
) -> None:
    document_id = stored(LONG)
    total = size(tiny_engine, LONG)
    assert total > EVIDENCE_TOKENS
    body = send(CHAT, messages=user(content)).json()
    details = body["usage"]["prompt_tokens_details"]
    assert details["cached_tokens"] == total
    assert details["read_tokens"] == 0
    assert 0 < details["shown_tokens"] <= EVIDENCE_TOKENS
    assert total < body["usage"]["prompt_tokens"] < total + 400
    choice = body["choices"][0]
    assert (choice["finish_reason"], body["usage"]["completion_tokens"]) == ("length", 4)
    assert choice["fineprint"]["document_id"] == document_id
    # What answers the question is among what the model is shown.
    assert CAP in shown_text(LONG, choice)


def test_a_document_beyond_the_window_can_be_sent_once_it_is_stored(
    stored: Any, send: Any, tiny_engine: Any
) -> None:
    assert size(tiny_engine, LONGER) > tiny_engine.config.max_positions
    messages = user(f"{LONGER}\n\n{QUESTION}")
    refused = send(CHAT, messages=messages)
    assert refused.json()["error"]["code"] == "context_length_exceeded"
    stored(LONGER)
    assert CAP in shown_text(LONGER, send(CHAT, messages=messages).json()["choices"][0])
    asked_not_to = send(CHAT, messages=messages, match_documents=False)
    assert asked_not_to.json()["error"]["code"] == "context_length_exceeded"
    # Without a limit the answer has what document, prompt and window leave.
    whole = send(CHAT, messages=messages, max_tokens=None, ignore_eos=False)
    assert whole.status_code == 200


def test_a_stream_of_it_is_a_stream_like_any_other(stored: Any, send: Any) -> None:
    document_id = stored(LONG)
    messages = user(f"{LONG}\n\n{QUESTION}")
    options = {"stream": True, "stream_options": {"include_usage": True}, "seed": 5, "n": 2}
    reply = send(CHAT, messages=messages, max_tokens=20, **options)
    lines = [line.removeprefix("data: ") for line in reply.text.split("\n") if line]
    assert lines[-1] == "[DONE]"
    chunks = [json.loads(line) for line in lines[:-1]]
    pieces = [chunk["choices"][0] for chunk in chunks[:-1]]
    assert all(one["delta"].get("content") for one in pieces if not one["finish_reason"])
    ends = [one for one in pieces if one["finish_reason"]]
    assert [one["fineprint"]["document_id"] for one in ends] == [document_id] * 2
    whole = send(CHAT, messages=messages, max_tokens=20, seed=5, n=2).json()
    assert chunks[-1]["usage"] == whole["usage"]
    said = ["", ""]
    for one in pieces:
        said[one["index"]] += one["delta"].get("content", "")
    assert said == [choice["message"]["content"] for choice in whole["choices"]]


def test_a_text_to_go_on_with_may_hold_one_too(stored: Any, send: Any, tiny_engine: Any) -> None:
    document_id = stored(LONG)
    prompts = [f"{LONG}\nQ: {QUESTION}\nA:", "Hello"]
    body = send(TEXT, prompt=prompts).json()
    held, plain = body["choices"]
    assert held["fineprint"]["document_id"] == document_id and "fineprint" not in plain
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == size(tiny_engine, LONG)
    # Nothing is asked: the model goes on with the document as it stands.
    alone = send(TEXT, prompt=LONG).json()
    assert alone["usage"]["prompt_tokens_details"] == {"cached_tokens": 0, "read_tokens": 0}
    ids = send(TEXT, prompt=tiny_engine.tokenizer.encode(prompts[0])).json()
    assert ids["usage"]["prompt_tokens_details"] == {"cached_tokens": 0, "read_tokens": 0}


def test_a_conversation_goes_on_about_the_document_of_its_first_message(
    stored: Any, send: Any
) -> None:
    stored(LONG)
    messages = [
        {"role": "system", "content": "Be brief."},
        *user(f"{LONG}\n\nWhat is delivered first?"),
        {"role": "assistant", "content": "Item 1."},
        *user(QUESTION),
    ]
    choice = send(CHAT, messages=messages).json()["choices"][0]
    assert CAP in shown_text(LONG, choice)


def test_a_prompt_that_holds_no_stored_document_is_read_as_before(
    stored: Any, send: Any, tiny_engine: Any
) -> None:
    stored(LONG)
    other = LONG.replace("within 20 days", "within 21 days")
    assert other != LONG
    nothing = {"cached_tokens": 0, "read_tokens": 0}
    for content in (other, "word " * 600):
        body = send(CHAT, messages=user(f"{content}\n\n{QUESTION}")).json()
        assert body["usage"]["prompt_tokens_details"] == nothing
        assert "fineprint" not in body["choices"][0]
        rendered = tiny_engine.tokenizer.chat(user(f"{content}\n\n{QUESTION}"))
        ids = tiny_engine.tokenizer.encode(rendered, special=True)
        assert body["usage"]["prompt_tokens"] == len(ids)


def test_blocks_that_are_not_there_are_read_for_the_prompt(
    stored: Any, send: Any, tiny_services: Any, tiny_engine: Any
) -> None:
    document_id = stored(LONG)
    tokens = tiny_services.library.load(document_id).tokens
    tiny_engine.forget(tokens.key)
    tiny_engine.read(tokens, lazy=True)
    details = send(CHAT, messages=user(f"{LONG}\n\n{QUESTION}")).json()["usage"]
    told = details["prompt_tokens_details"]
    assert told["cached_tokens"] < size(tiny_engine, LONG)
    assert told["read_tokens"] > 0


def test_a_deleted_document_is_read_from_the_prompt(
    stored: Any, send: Any, tiny_services: Any
) -> None:
    document_id = stored(LONG)
    messages = user(f"{LONG}\n\n{QUESTION}")
    assert "fineprint" in send(CHAT, messages=messages).json()["choices"][0]
    tiny_services.library.delete(document_id)
    body = send(CHAT, messages=messages).json()
    assert "fineprint" not in body["choices"][0]
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
