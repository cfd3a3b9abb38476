"""The application behind a real server: clients that leave, uploads cut off, a loop that stays
free while a long PDF is parsed."""

from __future__ import annotations

import io
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import uvicorn

from app.api import create_app


@pytest.fixture
def url(services: Any, asker: Any) -> Iterator[str]:
    """The address of a server in a thread."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    config = uvicorn.Config(create_app(services, asker=asker), log_config=None, access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    wait_for(lambda: server.started)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(20)
    listener.close()


def test_leaving_a_json_request_cancels_its_answer(url: str, services: Any, asker: Any) -> None:
    document_id = stored(url, b"1. Price\nThe price is EUR 5.")
    asker.gate.clear()
    body = {"question": "Price?", "document_ids": [document_id]}
    # Long enough for the question to be taken up: one that leaves before is never asked.
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(f"{url}/api/v1/answers", json=body, timeout=3, trust_env=False)
    assert asker.started.acquire(timeout=5)
    assert asker.cancelled.acquire(timeout=2), "nobody listens, but the answer goes on"
    conversation = services.conversations.list().data[0]
    wait_for(lambda: services.conversations.messages(conversation.id)[1].status == "cancelled")


def test_leaving_a_stream_cancels_after_the_grace_unless_taken_up(url: str, asker: Any) -> None:
    document_id = stored(url, b"1. Price\nThe price is EUR 5.")
    asker.gate.clear()
    body = {"question": "Price?", "document_ids": [document_id], "stream": True}
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        with client.stream("POST", "/api/v1/answers", json=body) as reply:
            answer_id = reply.headers["location"].rpartition("/")[2]
            assert asker.started.acquire(timeout=5)
        path = f"/api/v1/answers/{answer_id}"
        time.sleep(0.5)
        with client.stream("GET", f"{path}/stream", headers={"last-event-id": "2"}) as again:
            lines = again.iter_lines()
            assert next(lines) == "id: 3"
            assert client.get(path).json()["state"] == "in_progress"
        left = time.monotonic()
        assert asker.cancelled.acquire(timeout=10)
        assert time.monotonic() - left > 3, "a reader that lost its connection needs some time"
        wait_for(lambda: client.get(path).json()["state"] == "cancelled")


def test_an_upload_that_breaks_off_leaves_nothing(url: str, services: Any) -> None:
    host, port = url.removeprefix("http://").split(":")
    head = (
        "POST /api/v1/documents HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n"
        "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"word " * 2000)
        time.sleep(0.3)
    folder = services.settings.files_dir
    wait_for(lambda: not [path for path in folder.rglob("*") if path.is_file()])
    assert httpx.get(f"{url}/api/v1/documents", trust_env=False).json()["total"] == 0


def test_an_upload_over_the_limit_is_refused_with_a_reason(url: str, services: Any) -> None:
    reply = httpx.post(
        f"{url}/api/v1/documents",
        files={"file": ("big.txt", io.BytesIO(b"words " * 2_000_000))},
        trust_env=False,
        timeout=30,
    )
    assert (reply.status_code, reply.json()["code"]) == (413, "upload_too_large")
    assert "2 MB" in reply.json()["detail"]


def test_the_loop_stays_free_while_a_long_pdf_is_parsed(url: str) -> None:
    document_id = sent(url, long_pdf(pages=150), "long.pdf")
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        pauses = []
        while client.get(f"/api/v1/documents/{document_id}").json()["status"] in (
            "queued",
            "in_progress",
        ):
            started = time.monotonic()
            assert client.get("/healthz").status_code == 200
            pauses.append(time.monotonic() - started)
            time.sleep(0.02)
        document = client.get(f"/api/v1/documents/{document_id}").json()
    assert (document["status"], document["page_count"]) == ("completed", 150)
    parsing_s = document["timings"]["parse_ms"] / 1000
    assert len(pauses) > 5
    assert statistics.median(pauses) < 0.2
    assert max(pauses) < max(0.5, parsing_s / 2), "the parse held the loop"


def long_pdf(pages: int) -> bytes:
    from reportlab.pdfgen.canvas import Canvas

    file = io.BytesIO()
    canvas = Canvas(file)
    for page in range(1, pages + 1):
        for line in range(25):
            canvas.drawString(60, 780 - 25 * line, f"The Supplier delivers lot {page * line}.")
        canvas.showPage()
    canvas.save()
    return file.getvalue()


def sent(url: str, content: bytes, name: str = "contract.txt") -> str:
    reply = httpx.post(
        f"{url}/api/v1/documents", files={"file": (name, content)}, trust_env=False, timeout=30
    )
    assert reply.status_code == 202, reply.text
    document_id: str = reply.json()["id"]
    return document_id


def stored(url: str, content: bytes) -> str:
    document_id = sent(url, content)
    path = f"{url}/api/v1/documents/{document_id}"
    wait_for(lambda: httpx.get(path, trust_env=False).json()["status"] == "completed")
    return document_id


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
