"""The timeline of an answer: both levels, one clock, the order in which things happen."""

from __future__ import annotations

import contextvars
import io
from typing import Any

from fastapi.testclient import TestClient

from app.timeline import Timeline, begin_request

ANSWERS = "/api/v1/answers"


def test_a_streamed_answer_tells_when_what_happened(client: TestClient, upload: Any) -> None:
    document = upload()
    body = {"question": "What is the price?", "document_ids": [document["id"]], "stream": True}
    reply = client.post(ANSWERS, json=body)
    path = reply.headers["location"]
    timeline = client.get(f"{path}/timeline").json()
    assert timeline["object"] == "timeline" and timeline["state"] == "completed"
    at = {(mark["level"], mark["name"]): mark["at_ms"] for mark in timeline["marks"]}
    order = [
        ("gateway", "received"), ("scheduler", "arrived"), ("scheduler", "taken_up"),
        ("scheduler", "created"), ("scheduler", "first_quote"), ("scheduler", "citation"),
        ("scheduler", "completed"), ("gateway", "last_byte"),
    ]  # fmt: skip
    times = [at[name] for name in order]
    assert times[0] == 0.0 and times == sorted(times)
    assert at["gateway", "received"] < at["gateway", "first_byte"] <= at["gateway", "last_byte"]
    assert timeline["timings"]["total_ms"] > 0
    # One id for the request and its answer.
    assert timeline["request_id"] == reply.headers["x-request-id"]
    assert path.endswith(timeline["answer_id"])


def test_a_json_answer_has_its_bytes_after_it_was_completed(
    client: TestClient, upload: Any
) -> None:
    document = upload()
    body = {"question": "What is the price?", "document_ids": [document["id"]]}
    answer = client.post(ANSWERS, json=body).json()
    marks = client.get(f"{ANSWERS}/{answer['id']}/timeline").json()["marks"]
    at = {mark["name"]: mark["at_ms"] for mark in marks}
    assert at["completed"] <= at["first_byte"] <= at["last_byte"]


def test_a_running_answer_has_no_end_yet(client: TestClient, upload: Any, asker: Any) -> None:
    document = upload()
    asker.gate.clear()
    body = {"question": "What is the price?", "document_ids": [document["id"]], "stream": True}
    with client.stream("POST", ANSWERS, json=body) as reply:
        assert asker.started.acquire(timeout=10)
        path = reply.headers["location"]
        timeline = client.get(f"{path}/timeline").json()
        assert timeline["timings"] is None
        names = {mark["name"] for mark in timeline["marks"]}
        assert "taken_up" in names and "completed" not in names
        client.post(f"{path}/cancel")


def test_an_unknown_answer_has_none(client: TestClient) -> None:
    assert client.get(f"{ANSWERS}/ans_none/timeline").status_code == 404


def test_the_first_mark_of_a_name_counts_and_a_question_without_request_has_its_own_zero() -> None:
    timeline = contextvars.Context().run(Timeline)
    timeline.note("step")
    first = timeline.marks()
    timeline.note("step")
    assert timeline.marks() == first
    assert first[0].name == "arrived" and first[0].at_ms == 0.0
    clock, inside = contextvars.Context().run(lambda: (begin_request(), Timeline()))
    clock.sent()
    assert [mark.name for mark in inside.marks()] == ["received", "arrived", "first_byte"]


def test_the_engines_steps_stand_on_the_same_clock(tiny: TestClient, tiny_services: Any) -> None:
    contract = "1. Price\nThe price is EUR 5.\n\n" + "2. Delivery\nIt is delivered at once.\n" * 9
    record, _ = tiny_services.library.add(io.BytesIO(contract.encode()), "contract.txt")
    assert tiny_services.library.wait(record.id, timeout=120).status == "completed"
    body = {"question": "What is the price?", "document_ids": [record.id]}
    answer = tiny.post(ANSWERS, json=body, headers={"x-request-id": "trace-3"}).json()
    timeline = tiny.get(f"{ANSWERS}/{answer['id']}/timeline").json()
    assert timeline["request_id"] == "trace-3"
    at = {mark["name"]: mark["at_ms"] for mark in timeline["marks"] if mark["level"] != "kernel"}
    order = [
        "received",
        "arrived",
        "taken_up",
        "admitted",
        "first_token",
        "last_token",
        "completed",
    ]
    assert [at[name] for name in order] == sorted(at[name] for name in order)
    kernel = [mark for mark in timeline["marks"] if mark["level"] == "kernel"]
    assert {"gather", "prefill"} <= {mark["name"] for mark in kernel}
    assert all(mark["duration_ms"] > 0 for mark in kernel)
    assert all(mark["duration_ms"] is None for mark in timeline["marks"] if mark not in kernel)
    tokens = timeline["tokens_ms"]
    assert tokens == sorted(tokens) and tokens[0] == at["first_token"]

    text = tiny.get("/metrics").text
    assert 'fineprint_engine_step_seconds_bucket{kind="decode",le="+Inf"}' in text
    assert 'fineprint_engine_step_seconds_count{kind="read"}' in text
    assert "fineprint_engine_inter_token_seconds_sum" in text
