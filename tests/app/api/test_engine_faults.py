"""The real engine behind the API: it breaks in the middle and goes on; a deadline frees it."""

from __future__ import annotations

import time
from typing import Any

import pytest
from fastapi.testclient import TestClient

CONTRACT = (
    "SUPPLY AGREEMENT\n\n"
    "1. Term\nThis Agreement runs for two years from 1 March 2024.\n\n"
    "2. Price\nThe total price is EUR 1,250,000.00, payable within thirty days.\n"
)
QUESTION = "What is the total price?"


@pytest.fixture
def document(tiny: TestClient) -> str:
    reply = tiny.post("/api/v1/documents", files={"file": ("c.txt", CONTRACT.encode())})
    document_id: str = reply.json()["id"]
    end = time.monotonic() + 60
    while tiny.get(f"/api/v1/documents/{document_id}").json()["status"] != "completed":
        assert time.monotonic() < end
        time.sleep(0.05)
    return document_id


@pytest.fixture
def steps(tiny_engine: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """`pace` seconds a step; the engine breaks in the step after `left` others."""
    wanted = {"pace": 0.0, "left": float("inf")}
    whole = tiny_engine._runner.step

    def step(*arguments: Any, **options: Any) -> Any:
        time.sleep(wanted["pace"])
        wanted["left"] -= 1
        if wanted["left"] < 0:
            raise RuntimeError("the device is lost")
        return whole(*arguments, **options)

    monkeypatch.setattr(tiny_engine._runner, "step", step)
    return wanted


def ask(client: TestClient, document: str, **more: Any) -> Any:
    body = {"question": QUESTION, "document_ids": [document], **more}
    return client.post("/api/v1/answers", json=body)


def test_an_engine_that_breaks_in_the_middle_ends_one_request_not_the_server(
    tiny: TestClient, document: str, steps: dict[str, float]
) -> None:
    steps["left"] = 2
    broken = ask(tiny, document)
    assert broken.status_code == 200, "the quotes stand"
    body = broken.json()
    assert "1,250,000.00" in body["answer"] and body["phrasing"] == "failed"
    assert any("the device is lost" in one["message"] for one in body["warnings"])

    model = tiny.get("/v1/models").json()["data"][0]["id"]
    plain = {"model": model, "prompt": "The", "max_tokens": 8, "ignore_eos": True}
    steps["left"] = 3
    failed = tiny.post("/v1/completions", json=plain)
    assert failed.status_code == 503 and "the device is lost" in failed.text

    steps["left"] = float("inf")
    assert tiny.get("/readyz").status_code == 200
    assert tiny.post("/v1/completions", json=plain).status_code == 200
    again = ask(tiny, document).json()
    assert again["status"] == "answered" and again["phrasing"] != "failed"


def test_at_the_deadline_the_quotes_stand_and_the_engine_is_free_again(
    tiny: TestClient, tiny_engine: Any, document: str, steps: dict[str, float]
) -> None:
    steps["pace"] = 0.6
    started = time.monotonic()
    body = ask(tiny, document, timeout_s=1).json()
    assert time.monotonic() - started < 8
    assert (body["state"], body["status"], body["finish_reason"]) == (
        "completed",
        "partial",
        "timeout",
    )
    assert "1,250,000.00" in body["answer"] and body["citations"]
    while tiny_engine.context_bytes or tiny_engine._live:
        assert time.monotonic() - started < 15, "it is let go"
        time.sleep(0.02)
    saved = tiny.get(f"/api/v1/answers/{body['id']}").json()
    assert saved["finish_reason"] == "timeout"


@pytest.mark.parametrize("seconds", [0, 0.5, 3601, "soon", float("nan")])
def test_times_out_of_range_are_refused(tiny: TestClient, seconds: Any) -> None:
    if seconds != seconds:
        raw = f'{{"question": "Price?", "document_ids": ["d"], "timeout_s": {seconds}}}'
        reply = tiny.post(
            "/api/v1/answers", content=raw, headers={"content-type": "application/json"}
        )
    else:
        reply = ask(tiny, "doc_1", timeout_s=seconds)
    assert reply.status_code in (400, 422)


def test_v1_takes_a_deadline_for_questions_about_documents(
    tiny: TestClient, document: str, steps: dict[str, float]
) -> None:
    steps["pace"] = 0.6
    model = tiny.get("/v1/models").json()["data"][0]["id"]
    chat = {"model": model, "messages": [{"role": "user", "content": QUESTION}], "timeout_s": 1}
    answered = tiny.post("/v1/chat/completions", json=chat | {"document_ids": [document]})
    assert answered.status_code == 200 and answered.json()["fineprint"]["status"] == "partial"
    assert answered.json()["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("path", ["completions", "chat/completions"])
@pytest.mark.parametrize("seconds", [0, 0.5, 3601, "soon"])
def test_v1_refuses_times_out_of_range(tiny: TestClient, path: str, seconds: Any) -> None:
    model = tiny.get("/v1/models").json()["data"][0]["id"]
    prompt = {"messages": [{"role": "user", "content": "?"}]} if "chat" in path else {"prompt": "?"}
    reply = tiny.post(f"/v1/{path}", json={"model": model, "timeout_s": seconds} | prompt)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "timeout_s")
