"""Asking: JSON and event streams, resuming, cancelling, leaving, limits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest
from fastapi.testclient import TestClient

from app.errors import StorageFull, TooManyQuestions
from backend.errors import EngineBusy

ANSWERS = "/api/v1/answers"
Event = tuple[int, str, dict[str, Any]]


def ask(document: dict[str, Any], question: str = "What is the price?", **more: Any) -> Any:
    return {"question": question, "document_ids": [document["id"]], **more}


def events(lines: Iterator[str]) -> list[Event]:
    """(id, event, data) of a stream."""
    found: list[Event] = []
    fields: dict[str, str] = {}
    for line in lines:
        if line == "":
            if "data" in fields:
                data = json.loads(fields["data"])
                found.append((int(fields["id"]), fields["event"], data))
            fields = {}
        else:
            name, _, value = line.partition(": ")
            fields[name] = value
    return found


def test_json_answer_has_every_field(client: TestClient, upload: Any) -> None:
    document = upload()
    reply = client.post(ANSWERS, json=ask(document))
    assert reply.status_code == 200
    body = reply.json()
    assert body["object"] == "answer" and body["state"] == "completed"
    assert body["status"] == "answered" and body["finish_reason"] == "quote"
    citation = body["citations"][0]
    text = client.get(f"/api/v1/documents/{document['id']}/text").json()["text"]
    assert text[citation["start_char"] : citation["end_char"]] == citation["quote"]
    assert set(citation) == {
        "quote", "document_id", "document", "page", "page_label", "start_char", "end_char",
        "clause", "boxes", "verified", "role", "replaced",
    }  # fmt: skip
    assert body["checks"][0]["ok"] is True
    assert body["coverage"] == {"read_tokens": 40, "total_tokens": 40}
    assert set(body["timings"]) == {
        "parse_ms", "index_ms", "queue_ms", "read_ms", "ttft_ms", "decode_ms", "total_ms",
    }  # fmt: skip
    assert set(body["usage"]) == {
        "prompt_tokens", "cached_tokens", "read_tokens", "completion_tokens",
    }  # fmt: skip
    assert client.get(f"{ANSWERS}/{body['id']}").json() == body


@pytest.mark.parametrize("asked_by", ["accept", "stream"])
def test_stream_follows_the_contract(client: TestClient, upload: Any, asked_by: str) -> None:
    document = upload()
    headers = {"accept": "text/event-stream"} if asked_by == "accept" else {}
    body = ask(document, stream=asked_by == "stream")
    with client.stream("POST", ANSWERS, json=body, headers=headers) as reply:
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert reply.headers["x-accel-buffering"] == "no"
        told = events(reply.iter_lines())
    assert [number for number, _, _ in told] == list(range(1, len(told) + 1))
    assert [name for _, name, _ in told] == [
        "answer.created", "answer.coverage", "answer.delta", "citation", "check",
        "answer.completed",
    ]  # fmt: skip
    assert all(data["type"] == name for _, name, data in told)
    final = told[-1][2]
    assert final["answer"] == "".join(data["text"] for _, n, data in told if n == "answer.delta")
    assert reply.headers["location"] == f"{ANSWERS}/{final['id']}"
    assert final["id"] == told[0][2]["id"]


def test_a_stream_is_taken_up_where_it_stopped(client: TestClient, upload: Any) -> None:
    document = upload()
    whole = events(iter(client.post(ANSWERS, json=ask(document, stream=True)).text.split("\n")))
    answer_id = whole[0][2]["id"]
    path = f"{ANSWERS}/{answer_id}/stream"
    again = client.get(path, headers={"last-event-id": "3"})
    assert events(iter(again.text.split("\n"))) == whole[3:]
    assert events(iter(client.get(path).text.split("\n"))) == whole
    for seen in (len(whole) - 1, len(whole), 99):
        last = client.get(path, headers={"last-event-id": str(seen)})
        assert events(iter(last.text.split("\n"))) == whole[-1:]
    assert client.get(path, headers={"last-event-id": "x"}).status_code == 422


def test_cancel_ends_the_stream_with_an_error(client: TestClient, upload: Any, asker: Any) -> None:
    document = upload()
    asker.gate.clear()
    with client.stream("POST", ANSWERS, json=ask(document, stream=True)) as reply:
        answer_id = reply.headers["location"].rpartition("/")[2]
        assert asker.started.acquire(timeout=10)
        started = time.monotonic()
        cancelled = client.post(f"{ANSWERS}/{answer_id}/cancel")
        assert cancelled.status_code == 202
        told = events(reply.iter_lines())
        assert time.monotonic() - started < 8
    assert (told[-1][1], told[-1][2]["code"]) == ("error", "cancelled")
    assert client.get(f"{ANSWERS}/{answer_id}").json()["state"] == "cancelled"
    assert client.post(f"{ANSWERS}/{answer_id}/cancel").status_code == 202


@pytest.mark.parametrize(
    ("question", "status", "code"),
    [
        ("", 422, "bad_question"),
        (" \n\t ", 422, "bad_question"),
        ("x" * 50_000, 422, "bad_question"),
    ],
)
def test_questions_that_say_nothing_or_too_much(
    client: TestClient, upload: Any, question: str, status: int, code: str
) -> None:
    reply = client.post(ANSWERS, json=ask(upload(), question))
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert "question" in reply.json()["detail"].lower()


def test_unknown_documents_and_conversations(client: TestClient, upload: Any) -> None:
    unknown = client.post(ANSWERS, json=ask({"id": "doc_none"}))
    assert (unknown.status_code, unknown.json()["code"]) == (404, "not_found")
    lost = client.post(ANSWERS, json=ask(upload(), conversation_id="conv_none"))
    assert lost.status_code == 404
    none = client.post(ANSWERS, json={"question": "Price?", "document_ids": []})
    assert none.status_code == 422
    surplus = client.post(ANSWERS, json=ask(upload(), temperature=2))
    assert surplus.status_code == 422 and "temperature" in surplus.json()["detail"]


def test_failed_document_says_why(client: TestClient, upload: Any) -> None:
    bad = upload(b" \f ---", "blank.txt")
    reply = client.post(ANSWERS, json=ask(bad))
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (409, "document_failed")
    assert problem["reason"] == bad["error"]["code"]
    assert bad["error"]["message"] in problem["detail"]


def test_document_being_parsed_says_how_far(
    client: TestClient, upload: Any, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import dataclasses

    record = services.library.get(upload()["id"])
    parsing = dataclasses.replace(
        record, status="in_progress", stage="parsing", progress_done=7, progress_total=30
    )
    monkeypatch.setattr(services.library, "get", lambda _, **__: parsing)
    reply = client.post(ANSWERS, json=ask({"id": record.id}))
    assert reply.status_code == 409
    assert reply.json()["progress"] == {"done": 7, "total": 30, "unit": record.progress_unit}
    reading = dataclasses.replace(record, status="in_progress", stage="reading")
    monkeypatch.setattr(services.library, "get", lambda _, **__: reading)
    assert client.post(ANSWERS, json=ask({"id": record.id})).status_code == 200


def test_failures_of_the_engine_become_problems(
    client: TestClient, upload: Any, asker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = upload()
    asker.fails = EngineBusy("The engine's queue is full.")
    busy = client.post(ANSWERS, json=ask(document))
    assert (busy.status_code, busy.json()["code"]) == (429, "engine_busy")
    assert int(busy.headers["retry-after"]) > 0
    with monkeypatch.context() as patch:

        def full(*_: object, **__: object) -> None:
            raise TooManyQuestions("32 questions are already waiting.", retry_s=17)

        patch.setattr(cast("Any", client.app).state.runs, "start", full)
        refused = client.post(ANSWERS, json=ask(document))
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "17")
    asker.fails = RuntimeError("secret detail")
    broken = client.post(ANSWERS, json=ask(document))
    assert (broken.status_code, broken.json()["code"]) == (500, "internal_error")
    assert "secret" not in broken.text
    told = events(iter(client.post(ANSWERS, json=ask(document, stream=True)).text.split("\n")))
    assert (told[-1][1], told[-1][2]["code"]) == ("error", "internal_error")


def test_conversation_keeps_questions_and_answers(
    client: TestClient, upload: Any, asker: Any
) -> None:
    document = upload()
    first = client.post(ANSWERS, json=ask(document)).json()
    second = client.post(
        ANSWERS, json=ask(document, "And the term?", conversation_id=first["conversation_id"])
    ).json()
    assert second["conversation_id"] == first["conversation_id"]
    assert [turn.question for turn in asker.histories[1]] == ["What is the price?"]
    path = f"/api/v1/conversations/{first['conversation_id']}"
    conversation = client.get(path).json()
    assert conversation["document_ids"] == [document["id"]]
    assert [message["role"] for message in conversation["messages"]] == [
        "user", "assistant", "user", "assistant",
    ]  # fmt: skip
    saved = conversation["messages"][1]
    assert saved["id"] == first["id"]
    assert saved["result"]["citations"] == first["citations"]
    assert client.get("/api/v1/conversations").json()["total"] == 1
    assert client.delete(path).json()["deleted"] is True
    assert client.get(path).status_code == 404


def test_conversations_of_one_document(client: TestClient, upload: Any) -> None:
    one, other = upload(), upload("1. Price\nThe price is EUR 7.\n")
    of_one = client.post(ANSWERS, json=ask(one)).json()["conversation_id"]
    of_other = client.post(ANSWERS, json=ask(other)).json()["conversation_id"]
    both = ask(one) | {"document_ids": [other["id"], one["id"]]}
    of_both = client.post(ANSWERS, json=both).json()["conversation_id"]

    def listed(document_id: str, **more: Any) -> list[str]:
        params = {"document_id": document_id, **more}
        page = client.get("/api/v1/conversations", params=params).json()
        assert page["total"] >= len(page["data"])
        return [entry["id"] for entry in page["data"]]

    assert listed(one["id"]) == [of_both, of_one]
    assert listed(one["id"], limit=1) == [of_both]
    assert listed(one["id"], after=of_both) == [of_one]
    assert listed(other["id"], order="asc") == [of_other, of_both]
    # A part of an id, a pattern and other letters are no document.
    for none in ("doc_", "%", "", one["id"].upper(), "doc_none"):
        assert listed(none) == []
    client.delete(f"/api/v1/documents/{one['id']}")
    assert listed(one["id"]) == [of_both, of_one], "what was asked stays"
    assert client.get("/api/v1/conversations", params={"document_id": "x" * 65}).status_code == 422


def under_way(client: TestClient, asker: Any, reply: Any) -> tuple[str, str]:
    """The ids of a streamed answer whose making has begun, and of its conversation."""
    answer_id = reply.headers["location"].rpartition("/")[2]
    assert asker.started.acquire(timeout=10)
    return answer_id, client.get(f"{ANSWERS}/{answer_id}").json()["conversation_id"]


def test_a_conversation_deleted_while_it_is_answered_ends_as_cancelled_and_is_gone(
    client: TestClient, upload: Any, asker: Any, caplog: pytest.LogCaptureFixture
) -> None:
    document = upload()
    asker.gate.clear()
    with client.stream("POST", ANSWERS, json=ask(document, stream=True)) as reply:
        answer_id, of = under_way(client, asker, reply)
        assert client.delete(f"/api/v1/conversations/{of}").status_code == 200
        told = events(reply.iter_lines())
    assert (told[-1][1], told[-1][2]["code"]) == ("error", "cancelled")
    gone = client.get(f"{ANSWERS}/{answer_id}")
    assert (gone.status_code, gone.json()["detail"]) == (404, f"There is no answer {answer_id}.")
    assert client.get(f"{ANSWERS}/{answer_id}/stream").status_code == 404
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []


def test_a_conversation_that_another_server_deletes_ends_its_answers_as_cancelled(
    client: TestClient,
    upload: Any,
    services: Any,
    asker: Any,
    caplog: pytest.LogCaptureFixture,
) -> None:
    document = upload()
    asker.gate.clear()
    with client.stream("POST", ANSWERS, json=ask(document, stream=True)) as reply:
        answer_id, of = under_way(client, asker, reply)
        services.conversations.delete(of)
        asker.gate.set()
        told = events(reply.iter_lines())
    assert (told[-1][1], told[-1][2]["code"]) == ("error", "cancelled")
    assert [one.message for one in caplog.records if one.levelname == "ERROR"] == []
    deadline = time.monotonic() + 20
    while client.get(f"{ANSWERS}/{answer_id}").status_code != 404:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_answers_of_a_deleted_conversation_are_gone_with_it(
    client: TestClient, upload: Any
) -> None:
    body = client.post(ANSWERS, json=ask(upload())).json()
    path = f"{ANSWERS}/{body['id']}"
    assert client.get(path).status_code == 200
    client.delete(f"/api/v1/conversations/{body['conversation_id']}")
    assert [client.get(path + end).status_code for end in ("", "/stream", "/timeline")] == [404] * 3


def test_an_answer_is_found_after_the_run_is_forgotten(
    client: TestClient, upload: Any, services: Any
) -> None:
    from app.api import create_app

    body = client.post(ANSWERS, json=ask(upload())).json()
    with TestClient(create_app(services)) as restarted:
        assert restarted.get(f"{ANSWERS}/{body['id']}").json() == body


def test_an_answer_that_can_not_be_saved_is_still_given(
    client: TestClient, upload: Any, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StorageFull("No space left.")

    document = upload()
    monkeypatch.setattr(services.conversations, "save_answer", full)
    body = client.post(ANSWERS, json=ask(document)).json()
    assert body["state"] == "completed"
    assert [warning["code"] for warning in body["warnings"]] == ["not_saved"]


def test_openapi_describes_what_is_there(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert schema["openapi"].startswith("3.")
    paths = set(schema["paths"])
    assert {
        "/api/v1/documents", "/api/v1/documents/{document_id}/pages/{number}.png",
        "/api/v1/answers/{answer_id}/stream", "/api/v1/conversations/{conversation_id}", "/healthz",
    } <= paths  # fmt: skip
    names = set(schema["components"]["schemas"])
    assert "HTTPValidationError" not in names
    for name, path in schema["paths"].items():
        for operation in path.values() if not name.startswith("/v1/") else ():
            problem = operation["responses"]["default"]["content"]["application/problem+json"]
            assert problem["schema"]["$ref"] == "#/components/schemas/ProblemPublic"
    used = {
        reference.rpartition("/")[2]
        for reference in json.dumps(schema).replace('"', "\n").split("\n")
        if reference.startswith("#/components/schemas/")
    }
    assert used <= names
    for path, operations in schema["paths"].items():
        if path.startswith("/api/v1/api-keys"):
            assert client.get(path).status_code == 403, "keys are off"
        elif "get" in operations and "{" not in path:
            assert client.get(path).status_code == 200, path
        elif "get" in operations:
            concrete = path.replace("{number}", "1")
            for part in ("document_id", "answer_id", "conversation_id"):
                concrete = concrete.replace(f"{{{part}}}", "none")
            assert client.get(concrete).status_code == 404, path
