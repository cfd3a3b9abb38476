"""What may be sent to the page itself: fields of some length, files within limit and disk."""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from gradio.route_utils import upload_fn
from starlette.formparsers import MultiPartException

from ui import uploads
from ui.app import PAGE_LIMIT
from ui.uploads import UPLOAD, PageUploads

JOIN = "/gradio_api/queue/join"
SCRIPT = Path(__file__).with_name("scripted_server.py")
BOUNDARY = {"content-type": "multipart/form-data; boundary=b"}
HEAD = b'--b\r\nContent-Disposition: form-data; name="files"; filename="a.txt"\r\n\r\n'
MORE = b"x" * 400_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "gradio"))
    return tmp_path / "gradio"


def gradios(folder: Path, reserve_bytes: int = 0) -> PageUploads:
    """Gradio's way of taking files, without the rest of it."""
    app = FastAPI()

    @app.post(UPLOAD)
    async def take(request: Request) -> PlainTextResponse:
        try:
            await upload_fn(request, str(folder), math.inf, None)
        except MultiPartException as error:
            return PlainTextResponse(error.message, 400)
        return PlainTextResponse("")

    return PageUploads(app, reserve_bytes=reserve_bytes)


async def send(page: PageUploads, **content: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=page)
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        with anyio.fail_after(60):
            return await client.post(UPLOAD, **content)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def parts(size: int) -> Iterator[bytes]:
    """A body without a length."""
    yield from (b" " * 100_000 for _ in range(size // 100_000))


def test_the_pages_own_addresses_take_a_few_megabytes_and_files(
    serve_process: Any,
    unused_port: int,
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FINEPRINT_DISK_RESERVE_MB", "0")
    command = [sys.executable, str(SCRIPT), str(unused_port), str(tmp_path / "data")]
    json = {"content-type": "application/json"}
    with (
        serve_process(command, unused_port, tmp_path / "log") as url,
        httpx.Client(base_url=url, trust_env=False, timeout=60) as client,
    ):
        for path in (JOIN, "/gradio_api/run/predict", "/anything"):
            told = client.post(path, content=b" " * (PAGE_LIMIT + 1), headers=json)
            assert (told.status_code, told.json()["code"]) == (413, "too_large")
        told = client.post("/login", content=b" " * 5_000, headers={"content-type": "text/plain"})
        assert told.status_code == 413
        told = client.post(JOIN, content=parts(PAGE_LIMIT + 200_000), headers=json)
        assert told.status_code == 413
        fits = client.post(JOIN, content=b"{" + b" " * (PAGE_LIMIT - 2) + b"}", headers=json)
        assert fits.status_code == 422
        stored = client.post(UPLOAD, files={"files": ("a.txt", b"x" * (PAGE_LIMIT + 1))})
        assert stored.status_code == 200
        assert "fineprint_http_body_bytes 0.0" in client.get("/metrics").text


def test_uploads_to_the_page_leave_the_reserve_free(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Disk:
        free = 100_500_000

    monkeypatch.setattr(uploads.shutil, "disk_usage", lambda _: Disk)
    page = gradios(folder, 100_000_000)

    async def filling() -> AsyncIterator[bytes]:
        yield HEAD + MORE
        Disk.free = 100_100_000
        yield MORE

    async def run() -> None:
        told = await send(page, files={"files": ("a.txt", b"x" * 600_000)})
        assert (told.status_code, told.json()["code"]) == (507, "storage_full")
        told = await send(page, content=filling(), headers=BOUNDARY)
        assert told.status_code == 400 and "FINEPRINT_DISK_RESERVE_MB" in told.text
        assert not files_in(folder)
        stored = await send(page, files={"files": ("a.txt", b"x" * 50_000)})
        assert stored.status_code == 200

    anyio.run(run)
    assert [path.stat().st_size for path in files_in(folder)] == [50_000]


def test_an_upload_to_the_page_that_stands_still_leaves_no_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "IDLE_SECONDS", 0.1)

    async def stalled() -> AsyncIterator[bytes]:
        yield HEAD + MORE
        await anyio.sleep_forever()

    told = anyio.run(lambda: send(gradios(folder), content=stalled(), headers=BOUNDARY))
    assert told.status_code == 400 and "Nothing of the upload came" in told.text
    assert not files_in(folder)


def test_an_upload_to_the_page_that_breaks_off_leaves_no_file(folder: Path) -> None:
    seen: list[int] = []

    async def run() -> None:
        pieces = [{"type": "http.request", "body": HEAD + MORE, "more_body": True}]

        async def receive() -> dict[str, Any]:
            if pieces:
                return pieces.pop()
            seen.append(len(files_in(folder)))
            return {"type": "http.disconnect"}

        async def drop(_: Any) -> None:
            pass

        headers = [(name.encode(), value.encode()) for name, value in BOUNDARY.items()]
        scope = {"type": "http", "method": "POST", "path": UPLOAD, "query_string": b""}
        await gradios(folder)({**scope, "headers": headers}, receive, drop)

    anyio.run(run)
    assert seen == [1] and not files_in(folder)
