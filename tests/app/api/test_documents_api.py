"""Upload, state, text, outline, receipt, original file."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.errors import DatabaseBusy

DOCUMENTS = "/api/v1/documents"


def test_upload_then_read_back(client: TestClient, upload: Any) -> None:
    reply = client.post(DOCUMENTS, files={"file": ("contract.txt", b"1. Term\nTwo years.")})
    assert reply.status_code == 202
    assert reply.headers["location"] == f"{DOCUMENTS}/{reply.json()['id']}"
    assert reply.json()["duplicate"] is False

    document = upload()
    assert document["status"] == "completed"
    assert document["askable"] is True
    assert document["ready_tokens"] == document["total_tokens"] > 0
    assert document["read"] == {"computed_tokens": document["total_tokens"], "reused_tokens": 0}
    text = client.get(f"{DOCUMENTS}/{document['id']}/text").json()
    assert text["total_chars"] == len(text["text"])
    part = client.get(f"{DOCUMENTS}/{document['id']}/text", params={"start": 3, "end": 9}).json()
    assert part["text"] == text["text"][3:9]
    clauses = client.get(f"{DOCUMENTS}/{document['id']}/clauses").json()
    numbered = [clause for clause in clauses["data"] if clause["number"]]
    assert [clause["number"] for clause in numbered] == ["1.", "2.", "3."]
    assert text["text"][numbered[1]["start"] :].startswith("2. Price")
    assert clauses["total"] == len(clauses["data"])
    receipt = client.get(f"{DOCUMENTS}/{document['id']}/receipt").json()
    assert [page["number"] for page in receipt["pages"]] == [1]
    assert receipt["characters"] == len(text["text"])


def test_same_bytes_again_are_a_duplicate(client: TestClient, upload: Any) -> None:
    first = upload("1. Term\nOne year.")
    again = client.post(DOCUMENTS, files={"file": ("other.txt", b"1. Term\nOne year.")})
    assert again.status_code == 200
    assert again.json()["duplicate"] is True
    assert again.json()["id"] == first["id"]
    refused = client.post(
        DOCUMENTS,
        params={"on_duplicate": "error"},
        files={"file": ("other.txt", b"1. Term\nOne year.")},
    )
    assert refused.status_code == 409
    assert refused.json()["code"] == "duplicate"
    assert refused.json()["existing_id"] == first["id"]


def test_list_walks_through_all(client: TestClient, upload: Any) -> None:
    ids = [upload(f"1. Term\n{number} years.", f"{number}.txt")["id"] for number in range(5)]
    seen: list[str] = []
    after = None
    while True:
        params = {"limit": "2", "order": "asc"} | ({"after": after} if after else {})
        page = client.get(DOCUMENTS, params=params).json()
        assert page["object"] == "list" and page["total"] == 5
        assert page["first_id"] == page["data"][0]["id"]
        seen += [entry["id"] for entry in page["data"]]
        after = page["last_id"]
        if not page["has_more"]:
            break
    assert seen == ids
    newest_first = client.get(DOCUMENTS).json()["data"]
    assert [entry["id"] for entry in newest_first] == ids[::-1]
    assert client.get(DOCUMENTS, params={"limit": 0}).status_code == 422
    assert client.get(DOCUMENTS, params={"after": "doc_none"}).status_code == 404


def test_delete_leaves_nothing(client: TestClient, upload: Any, services: Any) -> None:
    document = upload()
    reply = client.delete(f"{DOCUMENTS}/{document['id']}")
    assert reply.json() == {"id": document["id"], "object": "document", "deleted": True}
    assert client.get(f"{DOCUMENTS}/{document['id']}").status_code == 404
    assert client.get(f"{DOCUMENTS}/{document['id']}/file").status_code == 404
    assert client.delete(f"{DOCUMENTS}/{document['id']}").status_code == 404
    assert list(services.settings.files_dir.rglob("[0-9a-f]*" * 1 + "?" * 10)) == []


@pytest.mark.parametrize(
    ("content", "name", "status", "code"),
    [
        (b"", "empty.txt", 422, "empty_file"),
        (b"\x7fELF\x02\x01\x01" + bytes(64), "contract", 415, "unsupported_type"),
        (b"plain words", "sheet.xlsx", 415, "type_mismatch"),
        (b"%PDF-1.7\n", "contract.txt", 415, "type_mismatch"),
        (b"PK\x03\x04" + b"x" * 100, "bundle.zip", 415, "unsupported_type"),
        (b"words", "..", 400, "bad_name"),
        (b"words", "a" * 300 + ".txt", 400, "bad_name"),
        (b"x" * 2_000_001, "big.txt", 413, "upload_too_large"),
    ],
)
def test_bad_uploads_say_why_and_leave_nothing(
    client: TestClient, services: Any, content: bytes, name: str, status: int, code: str
) -> None:
    reply = client.post(DOCUMENTS, files={"file": (name, content)})
    assert (reply.status_code, reply.json()["code"]) == (status, code), reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert client.get(DOCUMENTS).json()["total"] == 0
    left = [path for path in services.settings.files_dir.rglob("*") if path.is_file()]
    assert left == []


def test_an_upload_must_be_one_file_in_its_field(client: TestClient) -> None:
    none = client.post(DOCUMENTS, files={"other": (None, b"words")})
    assert (none.status_code, none.json()["code"]) == (400, "no_file")
    wrong = client.post(DOCUMENTS, files={"document": ("a.txt", b"words")})
    assert (wrong.status_code, wrong.json()["code"]) == (400, "bad_field")
    two = client.post(DOCUMENTS, files=[("file", ("a.txt", b"x")), ("file", ("b.txt", b"y"))])
    assert (two.status_code, two.json()["code"]) == (400, "several_files")
    json = client.post(DOCUMENTS, json={"file": "words"})
    assert (json.status_code, json.json()["code"]) == (415, "not_multipart")
    head = {"content-type": "multipart/form-data; boundary=b"}
    broken = (
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhalf of it'
    )
    cut = client.post(DOCUMENTS, content=broken, headers=head)
    assert (cut.status_code, cut.json()["code"]) == (400, "incomplete")
    assert client.get(DOCUMENTS).json()["total"] == 0


FILE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nwords\r\n'
PART = b'--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (PART * 200_000 + FILE, "too_many_parts"),
        (FILE + PART * 200_000, "too_many_parts"),
        (b"--b\r\n" + b"X: 1\r\n" * 10_000 + b"\r\nwords\r\n", "bad_request"),
        (b"--b\r\nX: " + b"1" * 100_000 + b"\r\n\r\nwords\r\n", "bad_request"),
    ],
)
def test_a_form_of_many_parts_or_headers_is_refused(
    client: TestClient, body: bytes, code: str
) -> None:
    head = {"content-type": "multipart/form-data; boundary=b"}
    reply = client.post(DOCUMENTS, content=body + b"--b--\r\n", headers=head)
    assert (reply.status_code, reply.json()["code"]) == (400, code)
    assert client.get(DOCUMENTS).json()["total"] == 0


def test_a_form_may_have_some_parts_beside_its_file(client: TestClient) -> None:
    head = {"content-type": "multipart/form-data; boundary=b"}
    reply = client.post(DOCUMENTS, content=PART * 50 + FILE + b"--b--\r\n", headers=head)
    assert reply.status_code == 202


def test_full_disk_is_told(
    client: TestClient, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("app.storage.os.fsync", full)
    reply = client.post(DOCUMENTS, files={"file": ("a.txt", b"words")})
    assert (reply.status_code, reply.json()["code"]) == (507, "storage_full")
    monkeypatch.undo()
    assert client.get(DOCUMENTS).json()["total"] == 0
    assert [path for path in services.settings.files_dir.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize(
    "name",
    [
        "../../outside.txt",
        "..\\..\\outside.txt",
        "/abs.txt",
        "a/../../b.txt",
        "CON.txt",
        "．．／x.txt",
    ],
)
def test_names_never_leave_the_folder(
    client: TestClient, upload: Any, services: Any, name: str
) -> None:
    before = {path for path in services.settings.data_dir.parent.rglob("*")}
    document = upload(b"1. Term\nTwo years.", name)
    assert "/" not in document["name"] and "\\" not in document["name"]
    new = {path for path in services.settings.data_dir.parent.rglob("*")} - before
    assert all(services.settings.data_dir in path.parents for path in new)
    assert client.get(f"{DOCUMENTS}/../../etc/passwd/file").status_code == 404
    assert client.get(f"{DOCUMENTS}/..%2f..%2fetc%2fpasswd/file").status_code == 404


@pytest.mark.parametrize(
    "name", ["采购合同（2024）.txt", "plan-🚀.txt", 'a"b;c.txt', "x\r\nSet-Cookie: y.txt"]
)
def test_download_carries_any_name(client: TestClient, upload: Any, name: str) -> None:
    from urllib.parse import unquote

    content = "1. Term\nTwo years. 违约金".encode()
    document = upload(content, name)
    reply = client.get(f"{DOCUMENTS}/{document['id']}/file")
    assert reply.status_code == 200
    assert reply.content == content
    disposition = reply.headers["content-disposition"]
    assert disposition.startswith('attachment; filename="') and disposition.isascii()
    assert unquote(disposition.partition("filename*=UTF-8''")[2]) == document["name"]
    assert "set-cookie" not in reply.headers
    assert "sandbox" in reply.headers["content-security-policy"]


def test_cancel_and_retry(client: TestClient, upload: Any) -> None:
    bad = upload(b"  \f \n --- \n", "blank.txt")
    assert bad["status"] == "failed"
    assert bad["error"]["code"] == "no_text"
    retried = client.post(f"{DOCUMENTS}/{bad['id']}/retry")
    assert retried.status_code == 202
    done = upload()
    over = client.post(f"{DOCUMENTS}/{done['id']}/cancel")
    assert over.status_code == 409
    assert client.get(f"{DOCUMENTS}/{done['id']}").json()["status"] == "completed"


def test_a_document_that_waits_says_what_for(
    client: TestClient, upload: Any, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = services.library.runner
    asked: set[str] = set()

    def paused() -> bool:
        asked.add(threading.current_thread().name)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(runner, "_may_begin", paused)
        end = time.monotonic() + 30
        while len(asked) < services.settings.ingest_workers:
            # One of them may be about to take a job up.
            assert time.monotonic() < end
            runner.look()
            time.sleep(0.01)
        paths = [
            client.post(DOCUMENTS, files={"file": (f"{one}.txt", f"Clause {one}.")}).headers[
                "location"
            ]
            for one in range(2)
        ]
        waiting = [client.get(path).json()["waiting"] for path in paths]
        assert waiting == [{"reason": "paused", "documents": ahead} for ahead in range(2)]
        listed = client.get(DOCUMENTS).json()["data"]
        assert [one["waiting"] for one in listed] == waiting[::-1]
    end = time.monotonic() + 30
    for path in paths:
        while (state := client.get(path).json())["status"] != "completed":
            assert state["status"] in ("queued", "in_progress") and time.monotonic() < end
            time.sleep(0.01)
        assert state["waiting"] is None


def test_what_was_done_is_told_as_done_though_the_database_is_busy_afterwards(
    client: TestClient, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write, written = services.database.read, services.database.write, threading.Event()
    path = DOCUMENTS

    def requested() -> bool:
        return threading.current_thread() not in services.library.runner._threads

    @contextmanager
    def reading() -> Iterator[Any]:
        if requested() and written.is_set():
            raise DatabaseBusy("The database is busy.")
        with read() as session:
            yield session

    @contextmanager
    def writing() -> Iterator[Any]:
        with write() as session:
            yield session
        if requested():
            written.set()

    monkeypatch.setattr(services.library.runner, "_may_begin", lambda: False)
    for what, status in (("", "queued"), ("/cancel", "cancelled"), ("/retry", "queued")):
        written.clear()
        with monkeypatch.context() as patch:
            patch.setattr(services.database, "read", reading)
            patch.setattr(services.database, "write", writing)
            files = None if what else {"file": ("a.txt", b"1. Term\nTwo years.")}
            reply = client.post(f"{path}{what}", files=files)
        assert written.is_set() and reply.status_code == 202, reply.json()
        assert (reply.json()["status"], reply.json()["waiting"]) == (status, None)
        path = f"{DOCUMENTS}/{reply.json()['id']}"
        assert client.get(path).json()["status"] == status


def test_spans_outside_the_text_are_refused(client: TestClient, upload: Any) -> None:
    document = upload()
    text = f"{DOCUMENTS}/{document['id']}/text"
    assert client.get(text, params={"start": -1}).status_code == 422
    refused = client.get(text, params={"start": 9, "end": 3})
    assert (refused.status_code, refused.json()["code"]) == (422, "bad_span")
    beyond = client.get(text, params={"start": 5, "end": 10**9}).json()
    assert beyond["end"] == beyond["total_chars"]


def test_text_has_no_page_image(client: TestClient, upload: Any) -> None:
    document = upload()
    reply = client.get(f"{DOCUMENTS}/{document['id']}/pages/1.png")
    assert (reply.status_code, reply.json()["code"]) == (404, "no_page_image")


def post_form(client: TestClient, filename: bytes, *, boundary: str = "XX") -> Any:
    """A form as a browser writes it, byte for byte."""
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="'.encode()
        + filename
        + f'"\r\n\r\n1. Term\nTwo years.\r\n--{boundary}--\r\n'.encode()
    )
    kind = f"multipart/form-data; boundary={boundary}"
    return client.post(DOCUMENTS, content=body, headers={"content-type": kind})


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        (b"a%22b;c.txt", 'a"b;c.txt'),
        (b"x%0D%0ASet-Cookie: y.txt", "xSet-Cookie: y.txt"),
        (b"100%25.txt", "100%25.txt"),
    ],
)
def test_a_browsers_escapes_in_names_are_undone(
    client: TestClient, sent: bytes, shown: str
) -> None:
    assert post_form(client, sent).json()["name"] == shown


def test_a_boundary_over_the_limit_is_a_bad_form(client: TestClient) -> None:
    reply = post_form(client, b"a.txt", boundary="b" * 3000)
    assert reply.status_code == 400
    assert "Boundary" in reply.json()["detail"]


def test_refusals_show_the_name_without_control_characters(client: TestClient) -> None:
    reply = post_form(client, b"../x.txt\x00.pdf")
    assert reply.status_code == 415
    assert "“x.txt.pdf”" in reply.json()["detail"]


def test_an_upload_that_would_take_of_the_disks_reserve_is_refused(
    client: TestClient, services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    reserve = services.settings.disk_reserve_mb * 1_000_000
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=reserve + 99))
    refused = client.post("/api/v1/documents", files={"file": ("c.txt", b"x" * 100)})
    assert (refused.status_code, refused.json()["code"]) == (507, "storage_full")
    assert client.get("/api/v1/documents").json()["data"] == []
    taken = client.post("/api/v1/documents", files={"file": ("c.txt", b"x" * 99)})
    assert taken.status_code == 202
