"""The client against a scripted transport: pages of lists, problems, broken streams."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ui.client import Api
from ui.errors import ApiProblem, ApiUnreachable
from ui.events import StreamEvent, read_events

URL = "http://fineprint.test/api/v1"
Answer = Callable[[httpx.Request], httpx.Response]


def use(answer: Answer, work: Callable[[Api], Any]) -> Any:
    """Run `work` with a client whose requests are answered by `answer`."""

    async def run() -> Any:
        api = Api(URL, httpx.MockTransport(answer))
        try:
            return await work(api)
        finally:
            await api.close()

    return asyncio.run(run())


async def lines_of(text: str) -> AsyncIterator[str]:
    for line in text.split("\n"):
        yield line


def event(name: str, number: int, **data: Any) -> str:
    body = json.dumps({"type": name, **data}, ensure_ascii=False)
    return f"event: {name}\nid: {number}\ndata: {body}\n\n"


async def heard(api: Api) -> list[StreamEvent]:
    return [one async for one in api.ask("q", ["d"], None)]


@settings(deadline=None)
@given(st.lists(st.dictionaries(st.text(), st.text() | st.integers() | st.none()), max_size=5))
def test_events_survive_the_wire(bodies: list[dict[str, Any]]) -> None:
    text = "".join(
        f": ping\n\nevent: e{n}\nid: {n}\ndata: {json.dumps(body)}\n\n"
        for n, body in enumerate(bodies)
    )

    async def collect() -> list[StreamEvent]:
        return [one async for one in read_events(lines_of(text))]

    assert asyncio.run(collect()) == [
        StreamEvent(f"e{n}", body, n) for n, body in enumerate(bodies)
    ]


def test_documents_follow_every_page_of_the_list() -> None:
    pages = {None: (["a", "b"], True), "b": (["c"], False)}

    def answer(request: httpx.Request) -> httpx.Response:
        ids, more = pages[request.url.params.get("after")]
        return httpx.Response(
            200, json={"data": [{"id": i} for i in ids], "has_more": more, "last_id": ids[-1]}
        )

    found = use(answer, lambda api: api.documents())
    assert [one["id"] for one in found] == ["a", "b", "c"]


def test_problem_carries_code_and_words() -> None:
    problem = {"code": "too_large", "detail": "Over 200 MB.", "status": 413}
    with pytest.raises(ApiProblem, match="Over 200 MB") as caught:
        use(lambda _: httpx.Response(413, json=problem), lambda api: api.delete("x"))
    assert (caught.value.code, caught.value.status) == ("too_large", 413)


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"[]", b'{"detail": "x"}'])
def test_foreign_error_pages_are_not_taken_for_the_api(body: bytes) -> None:
    with pytest.raises(ApiUnreachable):
        use(lambda _: httpx.Response(502, content=body), lambda api: api.document("x"))


def test_no_connection_is_told_as_such() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    with pytest.raises(ApiUnreachable):
        use(answer, lambda api: api.documents())
    with pytest.raises(ApiUnreachable):
        use(answer, heard)


def test_upload_keeps_the_name(tmp_path: Path) -> None:
    path = tmp_path / "stored"
    path.write_bytes(b"text")
    sent: list[bytes] = []

    async def answer(request: httpx.Request) -> httpx.Response:
        sent.append(await request.aread())
        return httpx.Response(202, json={"id": "d", "duplicate": False})

    async def run() -> None:
        api = Api(URL, httpx.MockTransport(answer))
        await api.upload(path, "采购合同（2024）.pdf")
        await api.close()

    asyncio.run(run())
    assert 'filename="采购合同（2024）.pdf"'.encode() in sent[0]


def test_answer_id_comes_before_the_first_event() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert json.loads(request.content) == {
            "question": "q",
            "document_ids": ["d"],
            "stream": True,
            "until_read": True,
        }
        stream = event("answer.created", 1) + event("answer.completed", 2)
        return httpx.Response(200, text=stream, headers={"location": "/api/v1/answers/msg_7"})

    events = use(answer, heard)
    assert events[0] == StreamEvent("answer.accepted", {"id": "msg_7"}, 0)
    assert [one.name for one in events[1:]] == ["answer.created", "answer.completed"]


def test_broken_stream_is_taken_up_after_the_last_event_seen() -> None:
    resumed: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            cut = event("answer.created", 1) + event("answer.delta", 2, text="a") + "event: answer"
            return httpx.Response(200, text=cut, headers={"location": "/api/v1/answers/msg_7"})
        assert request.url.path.endswith("/answers/msg_7/stream")
        resumed.append(request.headers["last-event-id"])
        return httpx.Response(200, text=event("answer.completed", 3))

    names = [one.name for one in use(answer, heard)]
    assert names == ["answer.accepted", "answer.created", "answer.delta", "answer.completed"]
    assert resumed == ["2"]


def test_stream_that_never_ends_well_is_an_error() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="", headers={"location": "/api/v1/answers/msg_7"})

    with pytest.raises(ApiUnreachable, match="too early"):
        use(answer, heard)


def test_refused_question_is_a_problem() -> None:
    problem = {"code": "bad_question", "detail": "Too long.", "status": 422}
    with pytest.raises(ApiProblem, match="Too long"):
        use(lambda _: httpx.Response(422, json=problem), heard)
