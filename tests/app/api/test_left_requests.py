"""Clients of a real server that leave at random points, streaming or not: the engine, the threads
and the queues are as they were before."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from app.api import create_app

if TYPE_CHECKING:
    from app.services import Services

CONTRACT = "SUPPLY AGREEMENT\n\n" + "\n\n".join(
    f"{number}. Price of item {number}\nThe price of item {number} is EUR {number},250.00, payable "
    f"within {number} days."
    for number in range(1, 40)
)
QUESTION = "What is the price of item 7?"
HELD = "fineprint_http_body_bytes"


@pytest.fixture
def application(tiny_services: Services) -> FastAPI:
    return create_app(tiny_services)


@pytest.fixture
def url(application: FastAPI) -> Iterator[str]:
    """The address of a server in a thread."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(application, log_config=None, access_log=False)
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


def stored(client: httpx.Client) -> str:
    reply = client.post("/api/v1/documents", files={"file": ("c.txt", CONTRACT.encode())})
    document_id: str = reply.json()["id"]
    wait_for(lambda: client.get(f"/api/v1/documents/{document_id}").json()["status"] == "completed")
    return document_id


def is_quiet(application: FastAPI, engine: Any) -> bool:
    state = application.state
    under_way = engine._live or engine._opener._held or engine._places.taken
    idle = state.runs.idle and state.completions.idle and engine._scheduler.idle
    return bool(idle and not under_way and not state.runs._stayers.taken)


def leave(client: httpx.Client, path: str, body: dict[str, Any], seconds: float) -> None:
    """Send it, read what comes, and be gone after so many seconds at the latest."""
    with (
        suppress(httpx.HTTPError),
        client.stream("POST", path, json=body, timeout=seconds) as reply,
    ):
        for number, _ in enumerate(reply.iter_lines()):
            if number > 3:
                break


def test_clients_that_leave_at_random_points_leave_nothing_behind(
    url: str, application: FastAPI, tiny_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(11)
    step = tiny_engine._runner.step

    def slow(*arguments: Any, **options: Any) -> Any:
        # So that answers last longer than their askers stay.
        time.sleep(0.01)
        return step(*arguments, **options)

    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        model = client.get("/v1/models").json()["data"][0]["id"]
        document_id = stored(client)
        plain = {"model": model, "prompt": CONTRACT[:600], "max_tokens": 900, "ignore_eos": True}
        asked = {"question": QUESTION, "document_ids": [document_id]}
        wait_for(lambda: is_quiet(application, tiny_engine))
        before = tiny_engine.counters.pages_used
        monkeypatch.setattr(tiny_engine._runner, "step", slow)
        for _ in range(40):
            seconds = 0.02 + rng.random() * 0.3
            stream = rng.random() < 0.5
            if rng.random() < 0.5:
                body = plain | {"stream": stream, "n": rng.choice([1, 3])}
                leave(client, "/v1/completions", body, seconds)
                continue
            body = asked | {"stream": stream, "until_read": rng.random() < 0.5}
            leave(client, "/api/v1/answers", body, seconds)
        wait_for(lambda: is_quiet(application, tiny_engine))
        # In steps of the engine, which sleep: a slow machine has fewer in a second, not more.
        for stream in (True, False):
            left = tiny_engine._pulse.steps
            leave(client, "/v1/completions", plain | {"stream": stream, "n": 1}, 0.3)
            wait_for(lambda: is_quiet(application, tiny_engine))
            spent = tiny_engine._pulse.steps - left
            assert spent < plain["max_tokens"] // 2, "nobody cancelled it"
        monkeypatch.undo()
        assert tiny_engine.counters.pages_used == before
        tiny_engine._mail.call(tiny_engine._store.check_integrity)
        whole = client.post("/api/v1/answers", json=asked).json()
        assert "7,250.00" in whole["answer"]


def test_a_question_that_waits_for_reading_is_cancelled_with_its_place(
    url: str, application: FastAPI, tiny_engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = tiny_engine._runner.read_block
    gate = threading.Event()

    def held(*arguments: Any) -> Any:
        assert gate.wait(60)
        return read(*arguments)

    monkeypatch.setattr(tiny_engine._runner, "read_block", held)
    text = CONTRACT.replace("EUR", "USD")
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        sent = client.post("/api/v1/documents", files={"file": ("d.txt", text.encode())}).json()
        path = f"/api/v1/documents/{sent['id']}"
        wait_for(lambda: client.get(path).json()["stage"] == "reading")
        asked = {"question": QUESTION, "document_ids": [sent["id"]], "until_read": True}
        runs = application.state.runs
        for stream in (True, False):
            leave(client, "/api/v1/answers", asked | {"stream": stream}, 0.4)
        for run in tuple(runs._runs.values()):
            runs.cancel(run.id)
        gate.set()
        wait_for(lambda: client.get(path).json()["status"] == "completed")
        wait_for(lambda: is_quiet(application, tiny_engine))
        assert client.post("/api/v1/answers", json=asked).json()["status"] == "answered"


def test_who_leaves_while_sending_gives_the_bytes_of_the_body_back(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=60) as client:

        def held() -> float:
            lines = client.get("/metrics").text.splitlines()
            return float(next(one for one in lines if one.startswith(HELD)).split()[1])

        for rest in (b"", b" " * 200_000):
            with socket.create_connection((client.base_url.host, client.base_url.port or 0)) as one:
                one.sendall(
                    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                    b"Content-Type: application/json\r\nContent-Length: 15000000\r\n\r\n" + rest
                )
                wait_for(lambda: held() == 15_000_000)
            wait_for(lambda: held() == 0)
