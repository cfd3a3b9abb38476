"""The page's only way to the rest of Fineprint: HTTP requests to the REST API.

Knows addresses and shapes, not how anything is shown. Every method raises ApiProblem when the API
refuses and ApiUnreachable when it does not answer.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import httpx

from ui.errors import ApiProblem, ApiUnreachable
from ui.events import StreamEvent, read_events
from ui.keys import current_key, using

Json = dict[str, Any]

_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
# A stream is silent for at most one ping (15 s); an upload waits for the disk.
_STREAM_TIMEOUT = httpx.Timeout(45.0, connect=10.0)
_UPLOAD_TIMEOUT = httpx.Timeout(600.0, connect=10.0)
_CONVERSATIONS = 50
"""Listed at once."""
_RESUMES = 3
"""Times a broken stream is taken up again where it stopped."""


class Api:
    """The REST API at `url` (with `/api/v1`). Use it within one event loop and close it."""

    def __init__(self, url: str, transport: httpx.AsyncBaseTransport | None = None) -> None:
        # The API is named by its address; a proxy of the environment has no part in it.
        self._client = httpx.AsyncClient(
            base_url=url.rstrip("/"),
            timeout=_TIMEOUT,
            trust_env=False,
            transport=transport,
            event_hooks={"request": [_sign]},
        )

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.aclose()

    async def opens(self, key: str) -> bool:
        """Whether the API takes this key."""
        try:
            with using(key):
                await self._request("GET", "/documents", params={"limit": "1"})
        except ApiProblem as error:
            if error.status == 401:
                return False
            raise
        return True

    async def documents(self) -> list[Json]:
        """All documents, newest first."""
        found: list[Json] = []
        after: str | None = None
        while True:
            parameters = {"limit": "100"} | ({"after": after} if after else {})
            page = await self._json("GET", "/documents", params=parameters)
            found.extend(page["data"])
            if not page["has_more"] or not page["data"]:
                return found
            after = page["last_id"]

    async def document(self, document_id: str) -> Json:
        """One document."""
        return await self._json("GET", f"/documents/{document_id}")

    async def upload(self, path: Path, name: str) -> Json:
        """Stores a file under `name`; the result says whether it is a `duplicate`."""
        with path.open("rb") as file:
            return await self._json(
                "POST", "/documents", files={"file": (name, file)}, timeout=_UPLOAD_TIMEOUT
            )

    async def delete(self, document_id: str) -> None:
        """Removes a document."""
        await self._json("DELETE", f"/documents/{document_id}")

    async def cancel(self, document_id: str) -> None:
        """Stops the reading of a document."""
        await self._json("POST", f"/documents/{document_id}/cancel")

    async def retry(self, document_id: str) -> None:
        """Reads a failed or cancelled document again."""
        await self._json("POST", f"/documents/{document_id}/retry")

    async def receipt(self, document_id: str) -> Json:
        """What was got from each page."""
        return await self._json("GET", f"/documents/{document_id}/receipt")

    async def terms(self, document_id: str) -> Json:
        """The key terms of an askable document."""
        return await self._json("GET", f"/documents/{document_id}/terms")

    async def compare(self, old_id: str, new_id: str) -> Json:
        """What changed from one askable document to another."""
        body = {"old_document_id": old_id, "new_document_id": new_id}
        return await self._json("POST", "/comparisons", json=body)

    async def text(self, document_id: str, start: int, end: int) -> Json:
        """Characters `[start, end)` of a document."""
        span = {"start": str(start), "end": str(end)}
        return await self._json("GET", f"/documents/{document_id}/text", params=span)

    async def page_image(
        self, document_id: str, number: int, span: tuple[int, int] | None = None
    ) -> bytes:
        """A page as PNG with the characters of `span` marked."""
        marks = {} if span is None else {"start": str(span[0]), "end": str(span[1])}
        path = f"/documents/{document_id}/pages/{number}.png"
        return (await self._request("GET", path, params=marks)).content

    async def ahead(self, answer_id: str) -> int | None:
        """How many questions are taken up before this answer's; None once it is itself."""
        return cast("int | None", (await self._json("GET", f"/answers/{answer_id}"))["ahead"])

    async def cancel_answer(self, answer_id: str) -> None:
        """Stops an answer on the server."""
        await self._json("POST", f"/answers/{answer_id}/cancel")

    async def conversations(self, document_id: str) -> Json:
        """The newest conversations about a document, with how many there are."""
        about = {"document_id": document_id, "limit": str(_CONVERSATIONS)}
        return await self._json("GET", "/conversations", params=about)

    async def conversation(self, conversation_id: str) -> Json:
        """One conversation with its messages."""
        return await self._json("GET", f"/conversations/{conversation_id}")

    async def ask(
        self, question: str, document_ids: list[str], conversation_id: str | None
    ) -> AsyncGenerator[StreamEvent, None]:
        """The events of an answer, which is settled only when the documents are read: one that
        comes before is a framework until then. The first event is `answer.accepted` with the
        answer's `id`, made here from the reply's head so that a waiting answer can be stopped.
        Closing the iterator leaves the stream, which cancels the answer on the server after a
        short grace."""
        body: Json = {
            "question": question,
            "document_ids": document_ids,
            "stream": True,
            "until_read": True,
        }
        if conversation_id is not None:
            body["conversation_id"] = conversation_id
        answer_id, seen, over = "", 0, False
        for attempt in range(_RESUMES + 1):
            if attempt == 0:
                request = self._client.build_request(
                    "POST", "/answers", json=body, timeout=_STREAM_TIMEOUT
                )
            else:
                request = self._client.build_request(
                    "GET",
                    f"/answers/{answer_id}/stream",
                    headers={"Last-Event-ID": str(seen)},
                    timeout=_STREAM_TIMEOUT,
                )
            try:
                async with self._streamed(request) as response:
                    if attempt == 0:
                        answer_id = response.headers.get("location", "").rpartition("/")[2]
                        yield StreamEvent("answer.accepted", {"id": answer_id}, 0)
                    async for event in read_events(response.aiter_lines()):
                        seen = event.id or seen
                        over = event.name in ("answer.completed", "error")
                        yield event
            except httpx.TransportError as error:
                if not answer_id or attempt == _RESUMES:
                    raise ApiUnreachable(str(error)) from error
            if over:
                return
        raise ApiUnreachable("the answer's stream ended too early")

    @asynccontextmanager
    async def _streamed(self, request: httpx.Request) -> AsyncIterator[httpx.Response]:
        response = await self._client.send(request, stream=True)
        try:
            if response.is_error:
                await response.aread()
                raise _problem(response)
            yield response
        finally:
            await response.aclose()

    async def _json(self, method: str, path: str, **options: Any) -> Json:
        response = await self._request(method, path, **options)
        try:
            return cast(Json, response.json())
        except ValueError as error:
            raise ApiUnreachable(f"{path} did not answer with JSON") from error

    async def _request(self, method: str, path: str, **options: Any) -> httpx.Response:
        try:
            response = await self._client.request(method, path, **options)
        except httpx.TransportError as error:
            raise ApiUnreachable(str(error)) from error
        if response.is_error:
            raise _problem(response)
        return response


async def _sign(request: httpx.Request) -> None:
    key = current_key()
    if key is not None:
        request.headers["Authorization"] = f"Bearer {key}"


def _problem(response: httpx.Response) -> ApiProblem | ApiUnreachable:
    try:
        body = response.json()
        return ApiProblem(str(body["code"]), str(body["detail"]), response.status_code)
    except (ValueError, KeyError, TypeError):
        return ApiUnreachable(f"HTTP {response.status_code} without a reason")
