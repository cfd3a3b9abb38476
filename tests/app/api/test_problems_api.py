"""Every error is a problem with a code and the request's id, and gives nothing away."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.api.bodies import BODY_LIMIT
from app.errors import AppError, Conflict, Corrupted, NotFound, Unavailable
from backend.errors import BackendError, EngineBusy, EngineClosed, WindowExceeded
from retrieval.errors import RetrievalError

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "api.md"
OF_COMMANDS = {"already_serving", "bad_settings", "unknown_model", "internal"}
"""Codes that end a command and are never in a reply."""


def kinds(base: type[AppError]) -> Iterator[type[AppError]]:
    """The error and all that are made of it."""
    yield base
    for child in base.__subclasses__():
        yield from kinds(child)


def test_every_code_is_told_in_the_documentation() -> None:
    told = DOCUMENTATION.read_text("utf-8")
    doors = ("app.errors", "app.api")
    codes = {kind.code for kind in kinds(AppError) if kind.__module__.startswith(doors)}
    codes -= OF_COMMANDS
    assert len(codes) > 15
    assert sorted(code for code in codes if f"`{code}`" not in told) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code"),
    [
        ("GET", "/api/v1/nothing", None, 404, "not_found"),
        ("GET", "/api/v1/comparisons", None, 405, "method_not_allowed"),
        ("GET", "/nowhere", None, 404, "not_found"),
        ("PATCH", "/api/v1/documents", None, 405, "method_not_allowed"),
        ("GET", "/api/v1/documents/doc_x", None, 404, "not_found"),
        ("GET", "/api/v1/answers/ans_x", None, 404, "not_found"),
        ("GET", "/api/v1/answers/ans_x/stream", None, 404, "not_found"),
        ("POST", "/api/v1/answers/ans_x/cancel", None, 404, "not_found"),
        ("GET", "/api/v1/conversations/c", None, 404, "not_found"),
        ("DELETE", "/api/v1/conversations/c", None, 404, "not_found"),
        ("POST", "/api/v1/answers", b"{", 400, "bad_json"),
        ("POST", "/api/v1/answers", b'{"question": "\xe9"}', 400, "bad_json"),
        ("POST", "/api/v1/answers", b"[" * 100_000, 400, "bad_json"),
        ("POST", "/api/v1/answers", b"[" + b"9" * 5000 + b"]", 400, "bad_json"),
        ("POST", "/api/v1/answers", b"[]", 422, "invalid_request"),
        ("POST", "/api/v1/answers", b'{"question": "q"}', 422, "invalid_request"),
        ("POST", "/api/v1/answers", b" " * (BODY_LIMIT + 1), 413, "too_large"),
        ("GET", "/api/v1/documents?limit=no", None, 422, "invalid_request"),
    ],
)
def test_errors_are_problems(
    client: TestClient, method: str, path: str, body: bytes | None, status: int, code: str
) -> None:
    headers = {"content-type": "application/json", "x-request-id": "trace-7"}
    reply = client.request(method, path, content=body, headers=headers)
    assert reply.status_code == status
    assert reply.headers["content-type"] == "application/problem+json"
    problem = reply.json()
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["request_id"] == reply.headers["x-request-id"] == "trace-7"
    assert problem["title"] and problem["detail"]


FAILURES = [
    (Conflict("Its ingestion failed.", code="document_failed"), 409, "document_failed"),
    (Conflict("It was cancelled.", code="document_cancelled"), 409, "document_cancelled"),
    (NotFound("It was deleted."), 404, "not_found"),
    (Unavailable("Not now."), 503, "unavailable"),
    (Corrupted("Its record differs."), 500, "corrupted"),
    (BackendError("The device is lost."), 503, "engine_error"),
    (EngineBusy("Too many wait."), 429, "engine_busy"),
    (EngineClosed("It is closed."), 503, "engine_closed"),
    (WindowExceeded("Longer than the window."), 413, "request_too_large"),
    (RetrievalError("No such index."), 422, "retrieval_error"),
]


@pytest.mark.parametrize(("error", "status", "code"), FAILURES, ids=[code for *_, code in FAILURES])
def test_what_fails_in_a_worker_has_the_status_of_what_fails_at_once(
    client: TestClient,
    services: Any,
    upload: Any,
    asker: Any,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    status: int,
    code: str,
) -> None:
    document = upload()["id"]
    asker.fails = error
    question = {"question": "Price?", "document_ids": [document]}
    later = client.post("/api/v1/answers", json=question)

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(services.library, "get", fail)
    at_once = client.get(f"/api/v1/documents/{document}")
    for reply in (later, at_once):
        assert (reply.status_code, reply.json()["code"]) == (status, code)
        assert reply.json()["detail"] == str(error)
        assert ("retry-after" in reply.headers) == (status in (429, 503))


FULL = {f"k{number}": 1 for number in range(60_000)}


@pytest.mark.parametrize("path", ["answers", "comparisons", "documents/doc_x/pin"])
def test_a_body_full_of_unknown_fields_is_refused_in_one_line(
    client: TestClient, path: str
) -> None:
    reply = client.post(f"/api/v1/{path}", json=FULL)
    assert reply.status_code == 422
    assert reply.json()["code"] == "invalid_request"
    assert "60,000 fields" in reply.json()["detail"]
    assert len(reply.content) < 1000


@pytest.mark.parametrize(
    "body",
    [
        {"question": "q", "document_ids": [1] * 300_000},
        {"question": "q", "document_ids": ["d"], "k" * 900_000: 1},
        {f"k{number}": 1 for number in range(100)},
    ],
)
def test_the_faults_that_are_told_are_few_and_short(
    client: TestClient, body: dict[str, Any]
) -> None:
    reply = client.post("/api/v1/answers", json=body)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_request")
    assert 1 <= len(reply.json()["errors"]) <= 20
    assert len(reply.content) < 16_000


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("answers", {"question": "q", "document_ids": ["d"], "timeout_s": True}, "timeout_s"),
        ("documents/doc_x/pin", {"ttl_s": True}, "ttl_s"),
    ],
)
def test_a_truth_value_is_no_number(
    client: TestClient, path: str, body: dict[str, Any], field: str
) -> None:
    reply = client.post(f"/api/v1/{path}", json=body)
    assert reply.status_code == 422
    assert [fault["field"] for fault in reply.json()["errors"]] == [f"body.{field}"]


def test_wrong_method_names_the_right_ones(client: TestClient) -> None:
    reply = client.put("/api/v1/documents/doc_x")
    assert reply.status_code == 405
    assert reply.headers["allow"] == "GET, DELETE"
    assert client.delete("/api/v1/documents").headers["allow"] == "GET, POST"


def test_request_ids_that_could_do_harm_are_replaced(client: TestClient) -> None:
    reply = client.get("/healthz", headers={"x-request-id": "a b\tc"})
    assert reply.headers["x-request-id"].startswith("req_")
    assert (
        client.get("/healthz", headers={"x-request-id": "x" * 65})
        .headers["x-request-id"]
        .startswith("req_")
    )


def test_unexpected_errors_are_logged_with_the_id_and_say_nothing_else(
    client: TestClient,
    services: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("secret path /srv/data")

    monkeypatch.setattr(services.library, "get", broken)
    with caplog.at_level(logging.ERROR):
        reply = client.get("/api/v1/documents/doc_x", headers={"x-request-id": "boom-1"})
    assert reply.status_code == 500
    assert reply.json()["code"] == "internal_error"
    assert "secret" not in reply.text and "RuntimeError" not in reply.text
    assert "boom-1" in caplog.text and "secret path" in caplog.text


def test_pages_of_other_sites_can_change_nothing(client: TestClient, upload: Any) -> None:
    document = upload()
    path = f"/api/v1/documents/{document['id']}"
    foreign = client.delete(path, headers={"origin": "https://elsewhere.example"})
    assert (foreign.status_code, foreign.json()["code"]) == (403, "foreign_origin")
    assert client.get(path).status_code == 200
    own = client.delete(path, headers={"origin": "http://testserver"})
    assert own.status_code == 200


def test_pages_of_other_sites_leave_no_files_with_the_page(client: TestClient) -> None:
    for site, status in (("cross-site", 403), ("same-origin", 404), ("none", 404)):
        reply = client.post(
            "/gradio_api/upload", files={"files": b"x"}, headers={"sec-fetch-site": site}
        )
        assert reply.status_code == status


def test_html_has_security_headers(client: TestClient) -> None:
    reply = client.get("/docs")
    assert reply.status_code == 200
    assert "frame-ancestors 'self'" in reply.headers["content-security-policy"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert reply.headers["x-frame-options"] == "SAMEORIGIN"


def test_a_local_server_answers_to_local_names_only(services: Any) -> None:
    from app.api import create_app

    with TestClient(create_app(services, local_only=True)) as client:
        for host in ("rebound.example:8000", "127.0.0.1@rebound.example", "a:b:c", "[zz"):
            refused = client.get("/healthz", headers={"host": host})
            assert (refused.status_code, refused.json()["code"]) == (403, "foreign_host")
        for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
            assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://[bad", "null", "", "http://evil.example"])
def test_origins_that_make_no_sense_are_foreign(client: TestClient, origin: str) -> None:
    reply = client.post("/api/v1/answers", json={}, headers={"origin": origin})
    assert (reply.status_code, reply.json()["code"]) == (403, "foreign_origin")


def test_a_body_that_is_not_json_says_how_to_send_it(client: TestClient) -> None:
    headers = {"content-type": "text/plain"}
    reply = client.post("/api/v1/answers", content=b"What is the cap?", headers=headers)
    assert reply.status_code == 422
    assert "Content-Type: application/json" in reply.json()["detail"]


def test_an_endless_document_id_is_not_repeated(client: TestClient) -> None:
    body = {"question": "What is the cap?", "document_ids": ["d" * 100_000]}
    reply = client.post("/api/v1/answers", json=body)
    assert reply.status_code == 422
    assert len(reply.text) < 1000
