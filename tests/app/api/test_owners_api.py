"""With keys required: nobody gets in without one, and no route shows one owner another's things.

The walk goes over every operation of the OpenAPI description, so that a route that is added later
can't be forgotten: it fails until it is known here what the operation takes.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from fastapi.testclient import TestClient

from app.api_keys import ApiKeys
from app.owners import LOCAL
from app.settings import Settings

if TYPE_CHECKING:
    from app.services import Services

Operation = tuple[str, str]
Headers = dict[str, str]

CONTRACT = "1. Term\nThis lasts two years.\n\n2. Price\nThe price is EUR 1,250,000.00.\n"
OPEN = {("GET", "/healthz"), ("GET", "/readyz")}
NO_IDS = {
    ("POST", "/api/v1/documents"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/{name}"),
    ("POST", "/v1/completions"),
    *OPEN,
}
"""Operations that name nothing of an owner's."""
LISTS = {("GET", "/api/v1/documents"), ("GET", "/api/v1/conversations")}
ADMIN = {
    ("GET", "/metrics"),
    ("GET", "/api/v1/api-keys"),
    ("POST", "/api/v1/api-keys"),
    ("GET", "/api/v1/api-keys/{key_id}"),
    ("DELETE", "/api/v1/api-keys/{key_id}"),
}
CHAT = ("POST", "/v1/chat/completions")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", heartbeat_s=0.5, api_keys="required")


@pytest.fixture
def keys(services: Services) -> ApiKeys:
    return ApiKeys(services.database)


@pytest.fixture
def alice(keys: ApiKeys) -> Headers:
    return bearer(keys.create("Alice")[1])


@pytest.fixture
def bob(keys: ApiKeys) -> Headers:
    return {"X-API-Key": keys.create("Bob")[1]}


@pytest.fixture
def boss(keys: ApiKeys) -> Headers:
    return bearer(keys.create("Boss", role="admin")[1])


def bearer(key: str) -> Headers:
    return {"Authorization": f"Bearer {key}"}


def upload(client: TestClient, headers: Headers, content: str = CONTRACT) -> dict[str, Any]:
    files = {"file": ("contract.txt", content.encode())}
    reply = client.post("/api/v1/documents", files=files, headers=headers)
    assert reply.status_code in (200, 202), reply.text
    body: dict[str, Any] = reply.json()
    services: Services = client.app.state.services  # type: ignore[attr-defined]
    assert services.library.wait(body["id"], 20).status == "completed"
    return body


def ask(client: TestClient, headers: Headers, document_id: str, **more: Any) -> httpx.Response:
    body = {"question": "What is the price?", "document_ids": [document_id], **more}
    return client.post("/api/v1/answers", json=body, headers=headers)


@pytest.fixture
def of_alice(client: TestClient, alice: Headers) -> dict[str, str]:
    """Ids of what Alice has."""
    document = upload(client, alice)
    answer = ask(client, alice, document["id"]).json()
    return {
        "document_id": document["id"],
        "conversation_id": answer["conversation_id"],
        "answer_id": answer["id"],
    }


UNKNOWN = {
    "document_id": "doc_" + "0" * 32,
    "conversation_id": "conv_" + "0" * 32,
    "answer_id": "ans_" + "0" * 32,
}


def operations(client: TestClient) -> list[Operation]:
    """Every operation; those that end something come last, a document itself after its pin."""
    paths = client.app.openapi()["paths"]  # type: ignore[attr-defined]
    found = [(method.upper(), path) for path, item in paths.items() for method in item]
    return sorted(
        found,
        key=lambda one: (one[0] == "DELETE", one[1].count("{"), -one[1].count("/"), one),
    )


def sending(operation: Operation, ids: dict[str, str], own: str) -> list[dict[str, Any]]:
    """Requests of an operation that name `ids`; `own` is a document of whoever sends them. None
    for an operation that names nothing."""
    method, path = operation
    named = set(re.findall(r"{(\w+)}", path))
    if named - {"number"}:
        assert named <= {*ids, "number"}, f"{operation}: what are the ids {named}?"
        return [{"method": method, "url": path.format(number=1, **ids)}]
    document, conversation = ids["document_id"], ids["conversation_id"]
    bodies: dict[Operation, list[dict[str, Any]]] = {
        ("POST", "/api/v1/answers"): [
            {"question": "Price?", "document_ids": [document]},
            {"question": "Price?", "document_ids": [own, document]},
            {"question": "Price?", "document_ids": [own], "conversation_id": conversation},
        ],
        ("POST", "/api/v1/comparisons"): [
            {"old_document_id": document, "new_document_id": own},
            {"old_document_id": own, "new_document_id": document},
        ],
        CHAT: [
            {
                "model": "smollm2-135m-instruct",
                "messages": [{"role": "user", "content": "Price?"}],
                "document_ids": [document],
            }
        ],
    }
    return [{"method": method, "url": path, "json": body} for body in bodies.get(operation, [])]


def told(reply: httpx.Response, ids: dict[str, str]) -> tuple[int, str]:
    """Status and body without what differs between any two requests."""
    text = reply.text
    for name, value in ids.items():
        text = text.replace(value, name)
    return reply.status_code, re.sub(r'"request_id":\s*"[^"]*"', "", text)


def test_every_operation_gives_another_owner_what_it_gives_for_an_unknown_id(
    client: TestClient, alice: Headers, bob: Headers, of_alice: dict[str, str]
) -> None:
    of_bob = upload(client, bob, "1. Price\nThe price is EUR 5, payable at once.\n")["id"]
    walked = 0
    for operation in operations(client):
        if operation in NO_IDS | LISTS | ADMIN:
            continue
        requests = sending(operation, of_alice, of_bob)
        unknown = sending(operation, UNKNOWN, of_bob)
        assert requests, f"{operation} is new: which ids does it take?"
        for mine, nobodys in zip(requests, unknown, strict=True):
            refused = client.request(**mine, headers=bob)
            assert refused.status_code == 404, (mine, refused.text)
            missing = client.request(**nobodys, headers=bob)
            assert told(refused, of_alice) == told(missing, UNKNOWN), mine
            walked += 1
    assert walked > 20

    # The same requests are good with the key of the owner, those that delete last.
    for operation in operations(client):
        if operation in NO_IDS | LISTS | ADMIN:
            continue
        for mine in sending(operation, of_alice, of_alice["document_id"]):
            given = client.request(**mine, headers=alice)
            if mine["url"].endswith("1.png"):
                assert given.json()["code"] == "no_page_image", given.text
            else:
                assert given.status_code not in (401, 403, 404), (mine, given.text)


def test_lists_hold_the_own_things_only(
    client: TestClient, alice: Headers, bob: Headers, of_alice: dict[str, str]
) -> None:
    for _, path in LISTS:
        assert client.get(path, headers=alice).json()["total"] == 1
        mine = client.get(path, headers=bob).json()
        assert mine["total"] == 0 and mine["data"] == []
        after = of_alice["document_id" if "documents" in path else "conversation_id"]
        refused = client.get(path, params={"after": after}, headers=bob)
        missing = client.get(path, params={"after": "x" * len(after)}, headers=bob)
        assert refused.status_code == missing.status_code == 404
        same = refused.json()["detail"].replace(after, "x" * len(after))
        assert same == missing.json()["detail"]


def test_the_same_bytes_of_two_owners_are_two_documents(
    client: TestClient, services: Services, alice: Headers, bob: Headers
) -> None:
    first, second = upload(client, alice), upload(client, bob)
    assert first["duplicate"] is second["duplicate"] is False
    assert first["id"] != second["id"]
    assert upload(client, bob)["duplicate"] is True
    files = [services.library.file_path(document["id"]) for document in (first, second)]
    assert files[0] != files[1] and files[0].read_bytes() == files[1].read_bytes()
    assert client.delete(f"/api/v1/documents/{first['id']}", headers=alice).status_code == 200
    assert not files[0].exists() and files[1].exists()
    content = client.get(f"/api/v1/documents/{second['id']}/file", headers=bob).content
    assert content.decode() == CONTRACT


def test_a_saved_answer_is_its_owners(
    client: TestClient,
    services: Services,
    asker: Any,
    alice: Headers,
    bob: Headers,
    of_alice: dict[str, str],
) -> None:
    from app.api import create_app

    path = f"/api/v1/answers/{of_alice['answer_id']}"
    with TestClient(create_app(services, asker=asker)) as later:
        assert later.get(path, headers=alice).status_code == 200
        refused = later.get(path, headers=bob)
        missing = later.get(f"/api/v1/answers/{UNKNOWN['answer_id']}", headers=bob)
    assert refused.status_code == 404
    assert told(refused, of_alice) == told(missing, UNKNOWN)


def test_nobody_gets_in_without_a_key(client: TestClient, keys: ApiKeys) -> None:
    _, key = keys.create("Carol")
    keys.revoke(key[:9])
    for method, path in operations(client):
        url = re.sub(r"{\w+}", "1", path)
        if (method, path) in OPEN:
            assert client.request(method, url).status_code == 200
            continue
        for headers, code in (
            ({}, "missing_api_key"),
            ({"Authorization": "Basic Zm9vOmJhcg=="}, "missing_api_key"),
            (bearer(key), "invalid_api_key"),
            (bearer("none"), "invalid_api_key"),
            ({"X-API-Key": "fp_" + "a" * 43}, "invalid_api_key"),
        ):
            refused = client.request(method, url, headers=headers)
            assert refused.status_code == 401, (method, path, headers)
            assert refused.headers["www-authenticate"].startswith('Bearer realm="fineprint"')
            assert refused.headers["x-request-id"]
            body = refused.json()
            if path.startswith("/v1/"):
                assert body["error"]["type"] == "authentication_error"
                assert body["error"]["code"] == code
            else:
                assert body["code"] == code and body["request_id"]
    for path in ("/api", "/api/v2/documents", "/api/v1/none", "/v1", "/v1/embeddings"):
        assert client.get(path).status_code == 401
    assert client.get("/openapi.json").status_code == 200


def test_a_bearer_key_goes_before_the_other_header(client: TestClient, alice: Headers) -> None:
    both = alice | {"X-API-Key": "fp_wrong"}
    assert client.get("/api/v1/documents", headers=both).status_code == 200
    proxied = {"Authorization": "Basic Zm9vOmJhcg==", "X-API-Key": alice["Authorization"][7:]}
    assert client.get("/api/v1/documents", headers=proxied).status_code == 200


def test_what_concerns_all_owners_is_for_admins(
    client: TestClient, keys: ApiKeys, bob: Headers, boss: Headers
) -> None:
    for method, path in ADMIN:
        body = {"json": {"owner": "Dora"}} if method == "POST" else {}
        refused = client.request(method, path, headers=bob, **body)  # type: ignore[arg-type]
        assert refused.status_code == 403 and refused.json()["code"] == "forbidden"
    assert "fineprint_documents" in client.get("/metrics", headers=boss).text
    assert keys.list().total == 2


def test_an_admin_makes_and_revokes_keys(
    client: TestClient, boss: Headers, of_alice: dict[str, str]
) -> None:
    path = "/api/v1/api-keys"
    many = {f"k{number}": 1 for number in range(60_000)}
    full = client.post(path, json=many, headers=boss)
    assert (full.status_code, full.json()["code"]) == (422, "invalid_request")
    assert len(full.content) < 1000
    made = client.post(path, json={"owner": "Dora"}, headers=boss)
    assert made.status_code == 201
    entry = made.json()
    hers = bearer(entry.pop("key"))
    assert entry["owner"] == "Dora" and entry["role"] == "user" and entry["active"] is True
    assert client.get("/api/v1/documents", headers=hers).json()["total"] == 0
    shown = client.get(f"{path}/{entry['id']}", headers=boss).json()
    assert shown == entry | {"last_used_at": shown["last_used_at"]}
    listed = client.get(path, params={"limit": 1}, headers=boss).json()
    assert listed["data"] == [shown] and listed["total"] == 3 and listed["has_more"] is True

    assert client.delete(f"{path}/{entry['id']}", headers=boss).json()["active"] is False
    assert client.get("/api/v1/documents", headers=hers).status_code == 401
    assert client.delete(f"{path}/key_1", headers=boss).status_code == 404
    for wrong in ({"owner": "\n"}, {"owner": "A", "expires_at": "2001-01-01T00:00:00Z"}, {}):
        assert client.post(path, json=wrong, headers=boss).status_code == 422
    document = f"/api/v1/documents/{of_alice['document_id']}"
    assert client.get(document, headers=boss).status_code == 404, "an admin is no reader"


def test_a_key_comes_into_no_log(
    client: TestClient, alice: Headers, caplog: pytest.LogCaptureFixture
) -> None:
    key = alice["Authorization"][7:]
    with caplog.at_level(logging.DEBUG):
        document = upload(client, alice)
        ask(client, alice, document["id"])
        client.get("/api/v1/documents/none", headers=alice)
        client.post("/api/v1/answers", json={"question": 1}, headers=alice)
        client.get("/api/v1/documents", headers=bearer(key[:-1] + "!"))
    assert key not in caplog.text and key[:-1] not in caplog.text


def test_what_is_described_needs_a_key(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    schemes = described["components"]["securitySchemes"]
    assert schemes["key"]["scheme"] == "bearer" and schemes["key_header"]["name"] == "X-API-Key"
    assert described["paths"]["/api/v1/documents"]["get"]["security"]
    assert "security" not in described["paths"]["/healthz"]["get"]


class TestWithoutKeys:
    """As it was: one user, who needs none."""

    @pytest.fixture
    def settings(self, tmp_path: Path) -> Settings:
        return Settings(data_dir=tmp_path / "data", heartbeat_s=0.5)

    def test_any_or_no_key_is_the_one_user(self, client: TestClient, services: Services) -> None:
        document = upload(client, {})
        assert services.library.get(document["id"]).owner == LOCAL
        for headers in ({}, bearer("none"), {"X-API-Key": "x"}):
            assert client.get("/api/v1/documents", headers=headers).json()["total"] == 1
        assert client.get("/metrics").status_code == 200
        assert "securitySchemes" not in client.get("/openapi.json").json()["components"]

    def test_what_others_left_stays_theirs(self, client: TestClient, services: Services) -> None:
        import io

        record, _ = services.library.add(io.BytesIO(CONTRACT.encode()), "a.txt", owner="Alice")
        assert client.get(f"/api/v1/documents/{record.id}").status_code == 404
        assert client.get("/api/v1/documents").json()["total"] == 0

    def test_keys_are_managed_on_the_machine(self, client: TestClient) -> None:
        for method, path in ADMIN - {("GET", "/metrics")}:
            body = {"json": {"owner": "Dora"}} if method == "POST" else {}
            refused = client.request(method, path, **body)  # type: ignore[arg-type]
            assert refused.status_code == 403
            assert refused.json()["code"] == "api_keys_off"


@pytest.fixture
def served(
    start: Callable[..., Services], settings: Settings, tiny_engine: Any, tiny_llama: Path
) -> Iterator[TestClient]:
    """The application over a real engine."""
    from app.api import create_app

    chosen = settings.model_copy(update={"model": str(tiny_llama)})
    with TestClient(create_app(start(settings=chosen, engine=tiny_engine))) as opened:
        yield opened


def test_plain_generation_and_documents_of_v1_go_by_the_key(
    served: TestClient, tiny_llama: Path
) -> None:
    keys = ApiKeys(served.app.state.services.database)  # type: ignore[attr-defined]
    alice, bob = bearer(keys.create("Alice")[1]), bearer(keys.create("Bob")[1])
    body: dict[str, Any] = {
        "model": tiny_llama.name,
        "messages": [{"role": "user", "content": "What is the price?"}],
        "max_tokens": 2,
    }
    assert served.post("/v1/chat/completions", json=body).status_code == 401
    plain = served.post("/v1/chat/completions", json=body, headers=bob)
    assert plain.status_code == 200, plain.text
    document = upload(served, alice)
    body = {"model": body["model"], "messages": body["messages"]}
    body["document_ids"] = [document["id"]]
    answered = served.post("/v1/chat/completions", json=body, headers=alice)
    assert answered.status_code == 200, answered.text
    conversation = answered.json()["fineprint"]["conversation_id"]
    assert served.get(f"/api/v1/conversations/{conversation}", headers=alice).status_code == 200
    assert served.get(f"/api/v1/conversations/{conversation}", headers=bob).status_code == 404
    refused = served.post("/v1/chat/completions", json=body, headers=bob)
    assert refused.status_code == 404
    assert json.loads(refused.text)["error"]["type"] == "invalid_request_error"


def test_a_prompt_with_anothers_document_in_it_is_read_as_it_stands(
    served: TestClient, tiny_llama: Path
) -> None:
    keys = ApiKeys(served.app.state.services.database)  # type: ignore[attr-defined]
    alice, bob = bearer(keys.create("Alice")[1]), bearer(keys.create("Bob")[1])
    clauses = [
        f"{number}. Delivery of item {number}\nThe Seller shall deliver item {number} to the Buyer "
        f"within {number + 10} days at the Buyer's store number {number}.\n\n"
        for number in range(1, 41)
    ]
    text = "".join(clauses)
    upload(served, alice, text)
    body = {
        "model": tiny_llama.name,
        "messages": [{"role": "user", "content": f"{text}\n\nWhen is item 7 delivered?"}],
        "max_tokens": 2,
    }
    cached = {}
    for name, key in (("Alice", alice), ("Bob", bob)):
        reply = served.post("/v1/chat/completions", json=body, headers=key)
        assert reply.status_code == 200, reply.text
        cached[name] = reply.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached["Alice"] > 1000 and cached["Bob"] == 0
