"""From upload to a checked answer over REST, with the default model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from fastapi.testclient import TestClient

from app.settings import Settings

if TYPE_CHECKING:
    from app.services import Services

pytestmark = pytest.mark.model

CONTRACT = (
    "SUPPLY AGREEMENT\n\n"
    "1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Price\nThe total price is EUR 1,250,000.00, payable within thirty days of the invoice.\n\n"
    "3. Governing law\nThis Agreement is governed by the law of England and Wales.\n"
)


@pytest.fixture
def client(
    settings: Settings, start: Callable[..., Services], default_model: Path
) -> Iterator[TestClient]:
    from app.api import create_app

    chosen = settings.model_copy(update={"model": str(default_model), "kv_budget_mb": 256})
    with TestClient(create_app(start(settings=chosen, engine=None))) as opened:
        yield opened


def test_upload_ask_and_ask_again(client: TestClient) -> None:
    sent = client.post("/api/v1/documents", files={"file": ("contract.txt", CONTRACT.encode())})
    document_id = sent.json()["id"]
    document = finished(client, f"/api/v1/documents/{document_id}")
    assert document["ready_tokens"] == document["total_tokens"] > 0

    first = asked(client, document_id, "What is the total price?")
    assert first["status"] == "answered"
    text = client.get(f"/api/v1/documents/{document_id}/text").json()["text"]
    for citation in first["citations"]:
        assert text[citation["start_char"] : citation["end_char"]] == citation["quote"]
        assert citation["verified"] is True
    assert "1,250,000.00" in first["citations"][0]["quote"]
    assert first["coverage"]["read_tokens"] == document["total_tokens"]

    again = asked(client, document_id, "Which law governs the agreement?")
    assert again["usage"]["read_tokens"] == 0, "the document was read before"
    assert "England and Wales" in again["citations"][0]["quote"]


def test_a_follow_up_is_read_with_the_conversation(client: TestClient) -> None:
    sent = client.post("/api/v1/documents", files={"file": ("contract.txt", CONTRACT.encode())})
    document_id = sent.json()["id"]
    finished(client, f"/api/v1/documents/{document_id}")
    first = asked(client, document_id, "What is the term?")
    assert first["standalone_question"] is None
    second = asked(
        client, document_id, "And the total price?", conversation_id=first["conversation_id"]
    )
    assert second["standalone_question"] == "What is the total price?"
    assert "1,250,000.00" in second["citations"][0]["quote"]
    assert second["citations"][0]["role"] == "answer"
    listed = asked(client, document_id, "Which clauses mention the invoice?")
    assert [citation["clause"] for citation in listed["citations"]] == ["2"]
    assert client.get(f"/api/v1/answers/{second['id']}").json() == second


def asked(client: TestClient, document_id: str, question: str, **more: str) -> dict[str, Any]:
    reply = client.post(
        "/api/v1/answers", json={"question": question, "document_ids": [document_id], **more}
    )
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def finished(client: TestClient, path: str) -> dict[str, Any]:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        body: dict[str, Any] = client.get(path).json()
        if body["status"] in ("completed", "failed"):
            return body
        time.sleep(0.1)
    raise AssertionError("the document was not read in time")
