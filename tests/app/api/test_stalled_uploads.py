"""An upload that stands still is refused after a time, and frees its thread and its bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import anyio
import httpx
import pytest

from app.api import create_app, upload

if TYPE_CHECKING:
    from app.services import Services

BOUNDARY = {"content-type": "multipart/form-data; boundary=b"}
HEAD = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
WORDS = b"This is text. "


async def stalled(size: int) -> AsyncIterator[bytes]:
    """So many bytes of a file, and then nothing more."""
    yield HEAD + WORDS * (size // len(WORDS))
    await anyio.sleep_forever()


@pytest.mark.parametrize("size", [0, 1000, 200_000])
def test_uploads_that_stand_still_keep_nobody_out_for_ever(
    services: Services, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Before its first bytes, before its kind is known, and while it is stored."""
    monkeypatch.setattr(upload, "IDLE_SECONDS", 0.1)
    app = create_app(services)
    replies: list[httpx.Response] = []

    async def run() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

            async def send() -> None:
                content = stalled(size)
                replies.append(
                    await client.post("/api/v1/documents", content=content, headers=BOUNDARY)
                )

            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    for _ in range(20):
                        group.start_soon(send)
            metrics = (await client.get("/metrics")).text
            assert 'fineprint_uploads_total{result="refused"} 20.0' in metrics
            sent = HEAD + WORDS * 20 + b"\r\n--b--\r\n"
            stored = await client.post("/api/v1/documents", content=sent, headers=BOUNDARY)
            assert stored.status_code == 202

    anyio.run(run)
    told = {(one.status_code, one.json()["code"], one.headers["connection"]) for one in replies}
    assert (len(replies), told) == (20, {(408, "body_timeout", "close")})
    assert not list(services.library.files.incoming.iterdir())
