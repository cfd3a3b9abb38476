"""The `openai` client, unchanged, against a served application on a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import openai
import pytest
import uvicorn

from app.api import create_app
from app.settings import Settings

if TYPE_CHECKING:
    from app.services import Services

QUESTION = [{"role": "user", "content": "Name the capital of France in one word."}]
CONTRACT = (
    "SUPPLY AGREEMENT\n\n"
    "1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Price\nThe total price is EUR 1,250,000.00, payable within thirty days of the invoice.\n\n"
    "3. Governing law\nThis Agreement is governed by the law of England and Wales.\n"
)


@contextmanager
def served(services: Services) -> Iterator[str]:
    """The address of a server in a thread."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(services), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    listener.close()


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


@contextmanager
def client_of(url: str) -> Iterator[Any]:
    # typed as Any: the tests pass what the client's types don't know (document_ids, plain dicts)
    transport = httpx.Client(trust_env=False, timeout=60)
    with openai.OpenAI(
        base_url=f"{url}/v1", api_key="none", max_retries=0, http_client=transport
    ) as client:
        yield client


@pytest.fixture
def tiny_client(tiny_services: Services) -> Iterator[Any]:
    with served(tiny_services) as url, client_of(url) as client:
        yield client


@pytest.fixture(scope="module")
def default_url(default_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The product as it is served, with its default model."""
    from app.services import open_services

    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), kv_budget_mb=256)
    with open_services(settings, serve=True) as services, served(services) as url:
        yield url


@pytest.fixture
def client(default_url: str) -> Iterator[Any]:
    with client_of(default_url) as client:
        yield client


def test_a_stream_that_is_left_ends_its_generation(tiny_client: Any, tiny_engine: Any) -> None:
    model = tiny_client.models.list().data[0].id
    ended = _ended(tiny_engine)
    with tiny_client.chat.completions.create(
        model=model, messages=QUESTION, max_tokens=3000, stream=True,
        extra_body={"ignore_eos": True},
    ) as stream:  # fmt: skip
        next(iter(stream))
        assert not ended()
    left = time.monotonic()
    wait_for(ended)
    assert time.monotonic() - left < 4


def test_a_request_that_is_left_ends_its_generation(tiny_client: Any, tiny_engine: Any) -> None:
    model = tiny_client.models.list().data[0].id
    ended = _ended(tiny_engine)
    with pytest.raises(openai.APITimeoutError):
        tiny_client.with_options(timeout=0.5).completions.create(
            model=model, prompt="x", max_tokens=4000, n=2, extra_body={"ignore_eos": True}
        )
    left = time.monotonic()
    wait_for(ended)
    assert time.monotonic() - left < 4


def _ended(engine: Any) -> Callable[[], bool]:
    return lambda: not engine._live and engine._scheduler.idle


def test_error_classes(tiny_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_client.models.list().data[0].id
    ask = tiny_client.chat.completions.create
    with pytest.raises(openai.NotFoundError) as unknown:
        ask(model="gpt-4", messages=QUESTION)
    assert unknown.value.code == "model_not_found"
    with pytest.raises(openai.NotFoundError):
        tiny_client.models.retrieve("gpt-4")
    with pytest.raises(openai.BadRequestError) as refused:
        ask(model=model, messages=QUESTION, tools=[{"type": "function", "function": {"name": "f"}}])
    assert refused.value.param == "tools"
    with pytest.raises(openai.BadRequestError) as long:
        ask(model=model, messages=[{"role": "user", "content": "9 " * 3000}])
    assert long.value.code == "context_length_exceeded"
    assert "document_ids" in str(long.value)
    body = {"model": model, "prompt": ["x"] * 64, "max_tokens": 3000, "extra_body":
            {"ignore_eos": True}}  # fmt: skip
    with tiny_client.completions.create(**body, stream=True) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError) as busy:
            ask(model=model, messages=QUESTION)
    assert int(busy.value.response.headers["retry-after"]) > 0


@pytest.mark.model
def test_models(client: Any) -> None:
    (model,) = client.models.list().data
    assert model.id == "smollm2-135m-instruct"
    assert client.models.retrieve("smollm2-135m").id == model.id


@pytest.mark.model
def test_chat_at_once_and_streamed(client: Any) -> None:
    ask = client.chat.completions.create
    whole = ask(model="smollm2-135m-instruct", messages=QUESTION, temperature=0, max_tokens=20)
    assert "Paris" in whole.choices[0].message.content
    assert whole.choices[0].finish_reason == "stop"
    assert whole.usage.prompt_tokens_details.cached_tokens == 0
    chunks = list(
        ask(
            model="smollm2-135m-instruct", messages=QUESTION, temperature=0, max_tokens=20,
            stream=True, stream_options={"include_usage": True},
        )
    )  # fmt: skip
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].choices[0].delta.content
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


@pytest.mark.model
def test_completions_seeds_choices_and_stops(client: Any) -> None:
    def go(**more: Any) -> Any:
        return client.completions.create(
            model="smollm2-135m-instruct", prompt="The parties agree that", max_tokens=12, **more
        )

    first, again = go(seed=11, n=2), go(seed=11, n=2)
    texts = [choice.text for choice in first.choices]
    assert texts == [choice.text for choice in again.choices]
    assert texts[0] != texts[1]
    stop = texts[0][5:9]
    stopped = go(seed=11, stop=stop).choices[0]
    assert (stopped.text, stopped.finish_reason) == (texts[0][: texts[0].index(stop)], "stop")
    told = go(seed=11, logprobs=2).choices[0]
    assert len(told.logprobs.token_logprobs) == 12
    assert "".join(told.logprobs.tokens) == told.text == texts[0]


@pytest.mark.model
def test_documents_by_extra_body(client: Any, default_url: str) -> None:
    with httpx.Client(base_url=default_url, trust_env=False, timeout=60) as rest:
        sent = rest.post("/api/v1/documents", files={"file": ("c.txt", CONTRACT.encode())})
        path = f"/api/v1/documents/{sent.json()['id']}"
        wait_for(lambda: rest.get(path).json()["status"] == "completed")
        document = rest.get(path).json()
        text = rest.get(f"{path}/text").json()["text"]
    assert document["read"] == {
        "computed_tokens": document["total_tokens"],
        "reused_tokens": 0,
    }
    asked = [{"role": "user", "content": "What is the total price?"}]
    extra = {"document_ids": [document["id"]]}
    ask = client.chat.completions.create
    whole = ask(model="smollm2-135m-instruct", messages=asked, extra_body=extra)
    message = whole.choices[0].message
    assert "1,250,000.00" in message.content
    note = message.annotations[0]
    assert note.type == "file_citation"
    assert text[note.start_char : note.end_char] == note.quote
    assert note.document_id == document["id"]
    assert whole.fineprint["status"] == "answered"
    assert whole.usage.prompt_tokens_details.cached_tokens > 0
    assert whole.usage.prompt_tokens_details.read_tokens == 0, "it was read before"

    chunks = list(ask(model="smollm2-135m-instruct", messages=asked, extra_body=extra, stream=True))
    joined = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert joined == message.content
    last = chunks[-1].choices[0]
    assert last.finish_reason == "stop"
    assert last.delta.annotations[0]["quote"] == note.quote

    absent = [{"role": "user", "content": "Who is the arbitrator's landlord?"}]
    none = ask(model="smollm2-135m-instruct", messages=absent, extra_body=extra)
    assert none.fineprint["status"] == "not_found"
    assert none.choices[0].message.content
