"""A client that closes the connection, while it sends or while it waits, is told one thing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
from fastapi.testclient import TestClient
from starlette.types import ASGIApp, Message

from app.errors import ClientLeft

TOLD = "The client closed the connection."


JSON = b"application/json"


def told(
    app: ASGIApp, path: str, body: bytes, *, whole: bool = True, kind: bytes = JSON
) -> tuple[int, Any]:
    """What is sent to a client that leaves after `body`, which was `whole` or not."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": not whole}]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        headers = [(b"content-type", kind), (b"host", b"localhost")]
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": headers,
        }
        with anyio.fail_after(60):
            await app(scope, receive, send)

    anyio.run(run)
    start, content = sent
    return start["status"], json.loads(content["body"])


def test_while_it_sends(client: TestClient) -> None:
    for path, kind in (
        ("/api/v1/answers", JSON),
        ("/api/v1/documents", b"multipart/form-data; boundary=b"),
    ):
        status, problem = told(client.app, path, b"--b", whole=False, kind=kind)
        assert (status, problem["code"], problem["detail"]) == (400, "client_left", TOLD)


def test_while_it_waits_for_a_generation(tiny: TestClient, tiny_services: Any) -> None:
    body = {"model": tiny_services.settings.model, "prompt": "The price", "max_tokens": 400}
    asked = json.dumps(body | {"ignore_eos": True}).encode()
    status, reply = told(tiny.app, "/v1/completions", asked)
    assert (status, reply["error"]["code"]) == (400, "client_left")
    assert reply["error"]["message"] == TOLD


def test_while_it_waits_for_an_answer(
    client: TestClient, upload: Any, asker: Any, services: Any
) -> None:
    document = upload()["id"]
    asker.gate.clear()
    messages = [{"role": "user", "content": "Price?"}]
    body = {"model": services.settings.model, "messages": messages, "document_ids": [document]}
    status, reply = told(client.app, "/v1/chat/completions", json.dumps(body).encode())
    assert (status, reply["error"]["code"]) == (400, "client_left")
    assert reply["error"]["message"] == TOLD
    (run,) = client.app.state.runs._runs.values()  # type: ignore[attr-defined]
    assert run.stopped_for == "cancelled"


def test_the_words_stand_in_one_place() -> None:
    assert str(ClientLeft()) == TOLD
    app = Path(__file__).parents[3] / "app"
    holding = [path.name for path in app.rglob("*.py") if TOLD in path.read_text("utf-8")]
    assert holding == ["errors.py"]
