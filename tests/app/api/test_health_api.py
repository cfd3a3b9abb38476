"""Liveness, readiness by dependency, metrics."""

from __future__ import annotations

import dataclasses
import re
import shutil
import threading
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.answer_run import AnswerRun
from app.api.metrics import Metrics
from app.errors import DatabaseBusy
from app.events import AnswerCompleted, AnswerConfirmed, AnswerDelta, CoverageChanged
from app.hardware import HeatWatch
from app.questions import Question
from app.types import Answer, AnswerUsage, Coverage, Timings
from backend.errors import SensorError
from backend.hardware.heat import HeatGuard
from backend.hardware.types import Temperature
from kvstore.types import DiskCounters, MemoryCounters

DOCUMENTATION = Path(__file__).parents[3] / "docs" / "api.md"


def test_alive_and_ready(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert {name: check["ok"] for name, check in ready.json()["checks"].items()} == {
        "phase": True,
        "database": True,
        "storage": True,
        "engine": True,
        "answers": True,
        "ingestion": True,
        "gpu": True,
    }
    assert ready.json()["checks"]["gpu"]["detail"].startswith("off")
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
    assert 'fineprint_answer_first_token_seconds_count{kind="any"} 1.0' in text
    assert "fineprint_answers_waiting 0.0" in text
    assert "fineprint_documents 1.0" in text


def test_metrics_are_there_while_the_database_is_not(
    client: TestClient, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise DatabaseBusy("The database is busy.")

    monkeypatch.setattr(services.library, "list", busy)
    reply = client.get("/metrics")
    assert reply.status_code == 200
    assert "fineprint_documents NaN" in reply.text and "fineprint_answers_waiting 0.0" in reply.text


def test_every_family_is_told_in_the_documentation(client: TestClient) -> None:
    told = DOCUMENTATION.read_text("utf-8")
    families = set(re.findall(r"^# TYPE (\S+) ", client.get("/metrics").text, re.M))
    assert len(families) > 30
    names = {name.removesuffix("_total") for name in families if not name.endswith("_created")}
    assert sorted(name for name in names if f"`{name}" not in told) == []


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


def test_metrics_show_where_blocks_were_found_and_why_they_were_not(
    client: TestClient, services: Any
) -> None:
    text = client.get("/metrics").text
    assert "fineprint_kv_memory" not in text, "there is no host memory for pages"
    for line in (
        'fineprint_kv_blocks_found_total{tier="pool"} 5.0',
        'fineprint_kv_blocks_lost_total{reason="evicted"} 0.0',
        'fineprint_kv_blocks_dropped_total{reason="pinned"} 0.0',
    ):
        assert line in text
    memory = MemoryCounters(True, 8, 9, 300, 1000, {"budget": 2}, {"size": 1})
    services.engine.counters = dataclasses.replace(
        services.engine.counters,
        memory=memory,
        disk=DiskCounters(7),
        dropped={"room": 3, "forgotten": 1},
        lost={"new": 4, "refused": 1},
    )
    text = client.get("/metrics").text
    for line in (
        'fineprint_kv_blocks_found_total{tier="host"} 8.0',
        'fineprint_kv_blocks_found_total{tier="disk"} 7.0',
        'fineprint_kv_blocks_lost_total{reason="new"} 4.0',
        'fineprint_kv_blocks_lost_total{reason="refused"} 1.0',
        'fineprint_kv_blocks_dropped_total{reason="room"} 3.0',
        'fineprint_kv_blocks_dropped_total{reason="forgotten"} 1.0',
        "fineprint_kv_memory_kept_total 9.0",
        'fineprint_kv_memory_bytes{state="used"} 300.0',
        'fineprint_kv_memory_bytes{state="free"} 700.0',
        'fineprint_kv_memory_dropped_total{reason="budget"} 2.0',
        'fineprint_kv_memory_unkept_total{reason="size"} 1.0',
    ):
        assert line in text
    assert 'tier="aged"' not in text
    aged = dataclasses.replace(memory, exact=False)
    services.engine.counters = dataclasses.replace(services.engine.counters, memory=aged)
    assert 'fineprint_kv_blocks_found_total{tier="aged"} 8.0' in client.get("/metrics").text


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


class Thermometer:
    """`degrees` of the core; None: it fails."""

    degrees: int | None = 86

    def temperatures(self) -> tuple[Temperature, ...]:
        if self.degrees is None:
            raise SensorError("a GPU answers no more: Unknown Error")
        return (Temperature("GPU-1", "NVIDIA H200", self.degrees, None),)

    def close(self) -> None:
        return None


@pytest.fixture
def thermometer(services: Any) -> Thermometer:
    """The sensor of a GPU that these services watch; look with `services.gate.heat.guard.look`."""
    sensor = Thermometer()
    guard = HeatGuard(sensor, pause_c=85, resume_c=75)
    guard.look()
    services.gate.heat = HeatWatch(guard)
    return sensor


def test_a_hot_gpu_takes_no_new_questions(
    services: Any, thermometer: Thermometer, client: TestClient, upload: Any, asker: Any
) -> None:
    thermometer.degrees = 60
    services.gate.heat.guard.look()
    document = upload()
    body = {"question": "Price?", "document_ids": [document["id"]]}
    thermometer.degrees = 86
    services.gate.heat.guard.look()

    ready = client.get("/readyz")
    assert ready.status_code == 503 and ready.json()["status"] == "unavailable"
    check = ready.json()["checks"]["gpu"]
    assert check["ok"] is False
    assert all(word in check["detail"] for word in ("core 86 C", "85 C", "75 C"))
    refused = client.post("/api/v1/answers", json=body)
    assert (refused.status_code, refused.json()["code"]) == (503, "gpu_hot")
    assert int(refused.headers["retry-after"]) > 0
    name = client.get("/v1/models").json()["data"][0]["id"]
    chat = {"model": name, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 2}
    plain = client.post("/v1/chat/completions", json=chat)
    assert (plain.status_code, plain.json()["error"]["code"]) == (503, "gpu_hot")
    assert client.get("/api/v1/documents").status_code == 200, "looking is no work"

    text = client.get("/metrics").text
    assert 'fineprint_gpu_temperature_celsius{gpu="GPU-1",sensor="core"} 86.0' in text
    assert 'fineprint_gpu_temperature_limit_celsius{limit="pause"} 85.0' in text
    assert "fineprint_gpu_hot 1.0" in text and 'sensor="memory"' not in text

    thermometer.degrees = 75
    services.gate.heat.guard.look()
    assert client.get("/readyz").status_code == 200
    assert client.post("/api/v1/answers", json=body).status_code == 200


def test_a_document_waits_while_the_gpu_is_hot(
    services: Any, thermometer: Thermometer, client: TestClient
) -> None:
    sent = client.post("/api/v1/documents", files={"file": ("a.txt", b"1. Price\nEUR 5.")})
    assert sent.status_code == 202, "it is taken in all the same"
    time.sleep(1.5)
    path = f"/api/v1/documents/{sent.json()['id']}"
    assert client.get(path).json()["status"] == "queued" and services.engine.tickets == []
    thermometer.degrees = 70
    services.gate.heat.guard.look()
    end = time.monotonic() + 10
    while client.get(path).json()["status"] != "completed":
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_running_answer_goes_on_in_the_heat(
    services: Any, thermometer: Thermometer, client: TestClient, upload: Any, asker: Any
) -> None:
    thermometer.degrees = 60
    services.gate.heat.guard.look()
    document = upload()
    asker.gate.clear()
    run = client.app.state.runs.start(Question("Price?", (document["id"],), None))  # type: ignore[attr-defined]
    assert asker.started.acquire(timeout=5)
    thermometer.degrees = 95
    services.gate.heat.guard.look()
    assert services.gate.heat.state.hot
    asker.gate.set()
    assert run.wait(5) and run.state == "completed"


def test_a_sensor_that_fails_is_said_and_stops_nothing(
    services: Any, thermometer: Thermometer, client: TestClient
) -> None:
    thermometer.degrees = None
    for _ in range(5):
        services.gate.heat.guard.look()
    ready = client.get("/readyz")
    assert ready.status_code == 200
    assert "temperature unknown" in ready.json()["checks"]["gpu"]["detail"]
    assert "Unknown Error" in ready.json()["checks"]["gpu"]["detail"]
    text = client.get("/metrics").text
    assert "fineprint_gpu_sensor_errors_total 5.0" in text and "fineprint_gpu_hot 0.0" in text


def test_not_ready_while_warming_up_or_stopping(
    client: TestClient, services: Any, upload: Any
) -> None:
    document = upload()
    services.gate.warming_up()
    warming = client.get("/readyz")
    assert (warming.status_code, warming.json()["status"]) == (503, "warming up")
    services.gate.serving()
    assert client.get("/readyz").status_code == 200
    services.gate.stop()
    stopping = client.get("/readyz")
    assert (stopping.status_code, stopping.json()["status"]) == (503, "stopping")
    assert client.get("/healthz").status_code == 200, "it still lives"
    reply = client.post(
        "/api/v1/answers", json={"question": "Price?", "document_ids": [document["id"]]}
    )
    assert (reply.status_code, reply.json()["code"]) == (503, "server_stopping")
    assert "retry-after" in reply.headers


def test_a_dead_engine_or_answer_thread_is_named(
    client: TestClient, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    services.engine.alive, services.engine.problem = False, "The engine's thread has ended."
    runs = client.app.state.runs  # type: ignore[attr-defined]
    ended = threading.Thread(target=lambda: None, name="answers-3")
    ended.start()
    ended.join()
    monkeypatch.setattr(runs, "_threads", [*runs._threads, ended])
    runner = services.library.runner
    monkeypatch.setattr(runner, "_threads", [*runner._threads, ended])
    checks = client.get("/readyz").json()["checks"]
    assert not checks["ingestion"]["ok"] and "Restart" in checks["ingestion"]["detail"]
    assert checks["engine"] == {
        "ok": False,
        "detail": "The engine's thread has ended.",
        "code": "engine_dead",
    }
    assert checks["answers"]["ok"] is False and "answers-3" in checks["answers"]["detail"]


def test_model_servers_that_are_all_gone_have_a_code_of_their_own(
    client: TestClient, services: Any
) -> None:
    engine = services.engine
    engine.alive, engine.attends_pages, engine.problem = False, False, "http://a/v1: refused"
    ready = client.get("/readyz")
    told = ready.json()["checks"]["engine"]
    assert (ready.status_code, told["code"]) == (503, "model_servers_down")
    assert "http://a/v1: refused" in told["detail"] and "REMOTE_URLS" in told["detail"]


def test_an_engine_that_hangs_is_told_with_what_to_do(client: TestClient, services: Any) -> None:
    limit = services.settings.engine_stall_s
    services.engine.step_seconds = limit - 1
    assert client.get("/readyz").status_code == 200, "a long step is none that hangs"
    services.engine.step_seconds = limit + 60
    ready = client.get("/readyz")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    check = ready.json()["checks"]["engine"]
    assert check["code"] == "engine_stalled"
    for words in ("180 s", "FINEPRINT_ENGINE_STALL_S", "restart the server"):
        assert words in check["detail"]
    assert "code" not in ready.json()["checks"]["database"]
    assert client.get("/healthz").status_code == 200, "it is not killed"
    services.engine.step_seconds = 0.0
    assert client.get("/readyz").status_code == 200


def test_metrics_tell_first_tokens_by_what_was_read(
    client: TestClient, upload: Any, asker: Any
) -> None:
    document = upload()
    assert 'fineprint_document_read_seconds_count{kind="cold"} 1.0' in client.get("/metrics").text
    body = {"question": "Price?", "document_ids": [document["id"]]}
    for coverage, read in ((Coverage(10, 40), 0), (Coverage(40, 40), 5), (Coverage(40, 40), 0)):
        usage = AnswerUsage(10, 8, read, 5)
        asker.change = partial(dataclasses.replace, coverage=coverage, usage=usage)
        client.post("/api/v1/answers", json=body).raise_for_status()
    text = client.get("/metrics").text
    for kind, count in (("any", 3), ("grounded", 2), ("warm", 1)):
        assert f'fineprint_answer_first_token_seconds_count{{kind="{kind}"}} {count}.0' in text
    assert "fineprint_answer_seconds_per_token_count 3.0" in text
    assert "fineprint_answer_seconds_per_token_sum 0.00375" in text, "5 ms over 4 steps, thrice"
    assert 'fineprint_answer_coverage_ratio_bucket{le="0.3"} 1.0' in text
    assert "fineprint_answer_coverage_ratio_count 3.0" in text


def test_a_settled_framework_answer_is_grounded_when_it_is_settled() -> None:
    metrics = Metrics()
    run = AnswerRun("ans_1", Question("Price?", ("doc_1",), None), "conv_1", (), datetime.now(UTC))
    answer = Answer(
        answer="EUR 5.",
        status="answered",
        language="en",
        citations=(),
        checks=(),
        coverage=Coverage(40, 40),
        timings=Timings(0, 0, 0, 0, 1, 0, 300),
        usage=AnswerUsage(0, 0, 0, 0),
        finish_reason="quote",
    )
    run.publish(CoverageChanged(Coverage(10, 40)))
    run.publish(AnswerDelta("EUR 5.", "quote"))
    time.sleep(0.3)
    run.publish(AnswerConfirmed(Coverage(40, 40)))
    assert run.claim_end()
    run.publish(AnswerCompleted(answer))
    metrics.answers.observe(run)
    text = metrics.exposition(0).decode()
    assert 'first_token_seconds_bucket{kind="any",le="0.01"} 1.0' in text
    assert 'first_token_seconds_bucket{kind="grounded",le="0.25"} 0.0' in text
    assert 'first_token_seconds_count{kind="grounded"} 1.0' in text
    assert 'kind="warm"' not in text
