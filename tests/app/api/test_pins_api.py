"""Pins over HTTP: set, replaced, ended, refused."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.services import Services
from backend.errors import RequestTooLarge

DOCUMENTS = "/api/v1/documents"


@pytest.fixture
def engine(services: Services) -> Any:
    return services.engine


@pytest.fixture
def key(upload: Any, services: Services) -> tuple[str, str]:
    """Address of a document's pin, and the document's key."""
    document = upload()["id"]
    return f"{DOCUMENTS}/{document}/pin", services.library.load(document).tokens.key


def test_a_pin_is_set_replaced_and_ended(
    client: TestClient, engine: Any, key: tuple[str, str]
) -> None:
    address, name = key
    reply = client.post(address, json={"ttl_s": 60})
    assert (reply.status_code, reply.json()["ttl_s"], engine.pins) == (200, 60, {name: 60})
    assert client.post(address).json()["ttl_s"] == 3600 and engine.pins == {name: 3600}
    assert client.delete(address).status_code == 204 and engine.pins == {}
    assert client.delete(address).status_code == 204


@pytest.mark.parametrize("ttl_s", [0, -1, "soon", 1e9, None])
def test_a_time_that_is_none_is_refused(
    client: TestClient, engine: Any, key: tuple[str, str], ttl_s: object
) -> None:
    assert client.post(key[0], json={"ttl_s": ttl_s}).status_code == 422
    assert engine.pins == {}


def test_too_much_is_refused(
    client: TestClient, engine: Any, key: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise RequestTooLarge("wait until another pin ends")

    monkeypatch.setattr(engine, "pin", full)
    reply = client.post(key[0], json={"ttl_s": 60})
    assert (reply.status_code, reply.json()["code"]) == (413, "request_too_large")


def test_an_engine_without_pages_says_so(
    client: TestClient, engine: Any, key: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "attends_pages", False)
    reply = client.post(key[0], json={"ttl_s": 60})
    assert (reply.status_code, reply.json()["code"]) == (409, "no_pages")


def test_an_unknown_document_is_not_found(client: TestClient) -> None:
    assert client.post(f"{DOCUMENTS}/doc_unknown/pin").status_code == 404
    assert client.delete(f"{DOCUMENTS}/doc_unknown/pin").status_code == 404
