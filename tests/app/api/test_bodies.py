"""Bodies of requests are bounded in sum, by owner, and in how long they may take to arrive."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.exceptions import HTTPException
from starlette.types import Message, Receive, Scope, Send

from app.api import bodies, create_app
from app.api.bodies import LONG_SHARE, PROMPT_LIMIT, SHORT_BYTES, BodyBytes, BodyLimits
from app.api.key_check import CALLER
from app.api_keys import Caller
from app.settings import Settings

if TYPE_CHECKING:
    from app.services import Services

TOTAL = 1_000_000
ROOM = int(TOTAL * LONG_SHARE)
"""For long bodies."""
OWN = int(ROOM * 0.75)

Reply = tuple[int, dict[str, str], bytes]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", heartbeat_s=0.5, request_bodies_mb=32)


def layer(room: BodyBytes, inner: Callable[[Receive], Awaitable[None]] | None = None) -> BodyLimits:
    """Around an application that reads its body, does `inner` and says 200."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body", False):
            pass
        if inner is not None:
            await inner(receive)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    return BodyLimits(app, limits={"/": TOTAL}, upload_path="/upload", room=room)


async def send_body(
    to: BodyLimits, parts: list[bytes], *, owner: str = "a", length: int | None = None
) -> Reply:
    """What comes back. `length` is announced; of parts that are not asked for none may be read."""
    headers = [] if length is None else [(b"content-length", str(length).encode())]
    state = {CALLER: Caller(owner, "user")}
    scope = {"type": "http", "method": "POST", "path": "/x", "headers": headers, "state": state}
    left = list(parts)
    told: list[Message] = []

    async def receive() -> Message:
        body = left.pop(0)
        return {"type": "http.request", "body": body, "more_body": bool(left)}

    async def send(message: Message) -> None:
        told.append(message)

    await to(scope, receive, send)
    start, last = told
    fields = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], fields, last["body"]


def test_what_does_not_fit_is_refused_unread_and_fits_once_the_other_is_over() -> None:
    room = BodyBytes(TOTAL, several=False)

    async def run() -> None:
        inside, go = anyio.Event(), anyio.Event()

        async def hold(_: Receive) -> None:
            inside.set()
            await go.wait()

        async with anyio.create_task_group() as tasks:
            held = [b"x" * ROOM]
            tasks.start_soon(lambda: send_body(layer(room, hold), held, length=ROOM))
            await inside.wait()
            assert room.held == ROOM
            # No part to be read: whoever asks for one fails.
            status, headers, body = await send_body(layer(room), [], length=SHORT_BYTES + 1)
            assert (status, headers["retry-after"]) == (429, "5")
            assert headers["content-type"] == "application/problem+json"
            assert b'"too_many_bytes"' in body
            # A question is no long body, and has room of its own.
            short = [b"y" * SHORT_BYTES]
            assert (await send_body(layer(room), short, length=SHORT_BYTES))[0] == 200
            assert room.held == ROOM
            go.set()
        assert room.held == 0
        assert (await send_body(layer(room), held, length=ROOM))[0] == 200

    anyio.run(run)


def test_one_owner_leaves_room_to_others() -> None:
    room = BodyBytes(TOTAL, several=True)

    async def run() -> None:
        assert room.take("greedy", OWN, long=True)
        assert (await send_body(layer(room), [], owner="greedy", length=SHORT_BYTES + 1))[0] == 429
        other = await send_body(layer(room), [b"x" * 200_000], owner="other", length=200_000)
        assert other[0] == 200
        room.give_back("greedy", OWN)

    anyio.run(run)
    assert room.held == 0 and not room._held


def test_a_body_without_a_length_is_counted_as_it_comes() -> None:
    room = BodyBytes(TOTAL, several=False)

    async def run() -> None:
        assert room.take("b", ROOM - 100_000, long=True)
        with pytest.raises(HTTPException) as refused:
            await send_body(layer(room), [b"x" * 60_000] * 3)
        assert refused.value.status_code == 429
        assert refused.value.headers == {"Retry-After": "5"}
        assert room.held == ROOM - 100_000
        assert (await send_body(layer(room), [b"x" * 50_000] * 2))[0] == 200
        room.give_back("b", ROOM - 100_000)

    anyio.run(run)
    assert room.held == 0


def test_more_than_was_announced_is_counted_too() -> None:
    room = BodyBytes(TOTAL, several=False)

    async def run() -> None:
        held: list[int] = []

        async def look(_: Receive) -> None:
            held.append(room.held)

        await send_body(layer(room, look), [b"x" * 500], length=10)
        assert held == [500]
        status, _, body = await send_body(layer(room), [], length=TOTAL + 1)
        assert status == 413 and b'"too_large"' in body

    anyio.run(run)
    assert room.held == 0


@pytest.mark.parametrize("fault", [RuntimeError("defect"), None])
def test_a_request_that_breaks_off_gives_its_bytes_back(fault: Exception | None) -> None:
    """By an error, or by being cancelled."""
    room = BodyBytes(TOTAL, several=False)

    async def run() -> None:
        with anyio.CancelScope() as scope:

            async def fail(_: Receive) -> None:
                assert room.held == 300_000
                if fault is not None:
                    raise fault
                scope.cancel()
                await anyio.sleep_forever()

            await send_body(layer(room, fail), [b"x" * 300_000], length=300_000)

    if fault is None:
        anyio.run(run)
    else:
        with pytest.raises(RuntimeError, match="defect"):
            anyio.run(run)
    assert room.held == 0


@pytest.mark.parametrize(
    ("limit", "said"),
    [("ARRIVAL_SECONDS", "was not there within"), ("IDLE_SECONDS", "Nothing of the body came")],
)
def test_a_body_that_stands_still_holds_its_bytes_for_a_time_only(
    monkeypatch: pytest.MonkeyPatch, limit: str, said: str
) -> None:
    monkeypatch.setattr(bodies, limit, 0.05)
    room = BodyBytes(TOTAL, several=False)
    parts = [b"x" * 1000] * 3

    async def run() -> None:
        async def receive() -> Message:
            if parts:
                return {"type": "http.request", "body": parts.pop(), "more_body": True}
            await anyio.sleep_forever()
            raise AssertionError

        async def send(_: Message) -> None:
            raise AssertionError

        headers = [(b"content-length", b"300000")]
        scope = {"type": "http", "method": "POST", "path": "/x", "headers": headers}
        with anyio.fail_after(60), pytest.raises(HTTPException, match=said) as late:
            await layer(room)(scope, receive, send)
        assert (late.value.status_code, late.value.headers) == (408, {"Connection": "close"})

    anyio.run(run)
    assert room.held == 0 and not parts


def test_once_the_body_is_there_a_request_may_take_its_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bodies, "ARRIVAL_SECONDS", 0.0)
    room = BodyBytes(TOTAL, several=False)
    came: list[str] = []

    async def run() -> None:
        messages = iter(({"type": "http.request", "body": b"x"}, {"type": "http.disconnect"}))

        async def receive() -> Message:
            message = next(messages)
            if message["type"] == "http.disconnect":
                await anyio.sleep(0.01)
            return message

        async def wait(receive: Receive) -> None:
            came.append((await receive())["type"])

        async def send(_: Message) -> None:
            pass

        scope = {"type": "http", "method": "POST", "path": "/x", "headers": []}
        await layer(room, wait)(scope, receive, send)

    anyio.run(run)
    assert came == ["http.disconnect"]


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 400_000), st.booleans())),
    st.booleans(),
)
def test_the_sum_is_never_over_the_total(
    wanted: list[tuple[str, int, bool]], several: bool
) -> None:
    room = BodyBytes(TOTAL, several=several)
    taken: list[tuple[str, int]] = []
    for owner, size, ends in wanted:
        if room.take(owner, size, long=size > SHORT_BYTES):
            taken.append((owner, size))
        assert room.held == sum(size for _, size in taken) <= TOTAL
        if several:
            assert all(held <= 0.75 * TOTAL for held in room._held.values())
        if ends and taken:
            room.give_back(*taken.pop(0))
    for owner, size in taken:
        room.give_back(owner, size)
    assert room.held == 0 and not room._held


def test_the_least_setting_has_room_for_the_longest_body_of_one_owner() -> None:
    least = Settings.model_fields["request_bodies_mb"].metadata[0].ge * 1_000_000
    assert BodyBytes(least, several=True).take("a", PROMPT_LIMIT, long=True)


def test_each_door_says_it_in_its_own_words_and_the_metrics_tell_the_sum(
    services: Services,
) -> None:
    app = create_app(services)

    async def run() -> None:
        transport = httpx.ASGITransport(app=app)
        begun, go = anyio.Semaphore(0), anyio.Event()

        async def slow() -> AsyncIterator[bytes]:
            begun.release()
            await go.wait()
            yield b"{}"

        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

            async def hold(size: int) -> None:
                headers = {"content-length": str(size), "content-type": "application/json"}
                await client.post("/v1/completions", content=slow(), headers=headers)

            async def shown() -> str:
                lines = (await client.get("/metrics")).text.splitlines()
                return next(line for line in lines if line.startswith("fineprint_http_body_bytes"))

            async with anyio.create_task_group() as tasks:
                for size in (15_000_000, 12_800_000):
                    tasks.start_soon(hold, size)
                    await begun.acquire()
                # 28 MB of the 32 are for long bodies.
                assert await shown() == "fineprint_http_body_bytes 2.78e+07"
                long: dict[str, Any] = {"content": b" " * 500_000}
                refused = await client.post("/v1/completions", **long)
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
                error = refused.json()["error"]
                assert (error["type"], error["code"]) == ("rate_limit_error", "too_many_bytes")
                refused = await client.post("/api/v1/answers", **long)
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
                assert refused.json()["code"] == "too_many_bytes"
                assert refused.json()["request_id"] == refused.headers["x-request-id"]

                async def parts() -> AsyncIterator[bytes]:
                    for _ in range(5):
                        yield b" " * 100_000

                refused = await client.post("/v1/completions", content=parts())
                assert refused.status_code == 429
                assert refused.json()["error"]["code"] == "too_many_bytes"
                asked = {"question": "Price?", "document_ids": ["doc_x"]}
                assert (await client.post("/api/v1/answers", json=asked)).status_code == 404
                go.set()
            assert await shown() == "fineprint_http_body_bytes 0.0"
            assert (await client.post("/v1/completions", **long)).status_code == 400

    anyio.run(run)
