"""Liveness, readiness by dependency, metrics."""

from __future__ import annotations

import dataclasses
import shutil
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.errors import DatabaseBusy
from kvstore.types import DiskCounters


def test_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert {name: check["ok"] for name, check in ready.json()["checks"].items()} == {
        "database": True,
        "storage": True,
        "engine": True,
    }
    assert client.get("/health").json() == ready.json(), "load clients look there"


def test_not_ready_names_the_dependency(
    client: TestClient, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy() -> None:
        raise DatabaseBusy("The database is busy.")

    monkeypatch.setattr(services.library, "open_jobs", busy)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10))
    reply = client.get("/readyz")
    assert reply.status_code == 503
    checks = reply.json()["checks"]
    assert checks["database"] == {"ok": False, "detail": "The database is busy."}
    assert checks["storage"]["ok"] is False
    assert checks["engine"]["ok"] is True


def test_metrics_count_requests_uploads_and_answers(client: TestClient, upload: Any) -> None:
    document = upload()
    client.get(f"/api/v1/documents/{document['id']}")
    client.post(
        "/api/v1/answers", json={"question": "Price?", "document_ids": [document["id"]]}
    ).raise_for_status()
    text = client.get("/metrics").text
    assert 'route="/api/v1/documents/{document_id}",status="200"' in text
    assert document["id"] not in text
    assert 'fineprint_uploads_total{result="new"} 1.0' in text
    assert 'fineprint_answers_total{outcome="answered"} 1.0' in text
    assert "fineprint_answer_ttft_seconds_count 1.0" in text
    assert "fineprint_answers_waiting 0.0" in text
    assert "fineprint_documents 1.0" in text


def test_metrics_show_the_engines_counters(client: TestClient, services: Any) -> None:
    text = client.get("/metrics").text
    for line in (
        'fineprint_kv_block_lookups_total{result="hit"} 5.0',
        'fineprint_kv_block_lookups_total{result="miss"} 4.0',
        "fineprint_kv_blocks_evicted_total 3.0",
        "fineprint_engine_read_tokens_total 2560.0",
        "fineprint_kv_pages_used 40.0",
        "fineprint_kv_pages 64.0",
    ):
        assert line in text
    services.engine.counters = dataclasses.replace(services.engine.counters, hits=6)
    assert 'lookups_total{result="hit"} 6.0' in client.get("/metrics").text, "read at each scrape"


def test_metrics_show_the_disk_of_the_kv_store(client: TestClient, services: Any) -> None:
    assert "fineprint_kv_disk" not in client.get("/metrics").text, "there is none"
    disk = DiskCounters(7, 2, 100, 50, 4096, {"checksum": 1}, {"budget": 3})
    services.engine.counters = dataclasses.replace(services.engine.counters, disk=disk)
    text = client.get("/metrics").text
    for line in (
        'fineprint_kv_disk_lookups_total{result="hit"} 7.0',
        'fineprint_kv_disk_bytes_total{direction="written"} 100.0',
        "fineprint_kv_disk_held_bytes 4096.0",
        'fineprint_kv_disk_refused_total{reason="checksum"} 1.0',
        'fineprint_kv_disk_unsaved_total{reason="budget"} 3.0',
    ):
        assert line in text
