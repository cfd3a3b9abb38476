"""The timeline of an answer: both levels, one clock, the order in which things happen."""

from __future__ import annotations

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
    timeline = Timeline()
    timeline.note("step")
    first = timeline.marks()
    timeline.note("step")
    assert timeline.marks() == first
    assert first[0].name == "arrived" and first[0].at_ms == 0.0
    clock = begin_request()
    inside = Timeline()
    clock.sent()
    assert [mark.name for mark in inside.marks()] == ["received", "arrived", "first_byte"]
