"""Prompts of megabytes to /v1: refused at a bounded cost, a few at a time."""

from __future__ import annotations

import threading
import time
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from fastapi import Request
from fastapi.testclient import TestClient

from app.api import create_app
from app.api.openai.long_prompts import LONG_CHARS, PromptThreads
from app.errors import BadRequest, ClientLeft, TimedOut
from app.stored_texts import SHORTEST


def status_of(client: TestClient, model: str, address: str, text: str) -> tuple[int, str, str]:
    asked = (
        {"prompt": text}
        if address == "completions"
        else {"messages": [{"role": "user", "content": text}]}
    )
    reply = client.post(f"/v1/{address}", json={"model": model, **asked})
    error = reply.json()["error"]
    return reply.status_code, error["code"], error["param"]


@pytest.mark.parametrize("address", ["completions", "chat/completions"])
@pytest.mark.parametrize(
    "text", ["foo bar " * 1_900_000, "a" * 15_000_000, " " * 15_000_000, "合" * 5_000_000]
)
def test_a_prompt_of_megabytes_is_refused_at_a_bounded_cost(
    tiny: TestClient, tiny_services: Any, address: str, text: str
) -> None:
    # Of this process, so that a busy machine changes nothing.
    started = time.process_time()
    said = status_of(tiny, tiny_services.settings.model, address, text)
    param = "prompt" if address == "completions" else "messages"
    assert said == (400, "context_length_exceeded", param)
    # Turning all of it into tokens took 28 to 48 seconds.
    assert time.process_time() - started < 12


def test_many_long_messages_are_not_all_looked_through(
    tiny: TestClient, tiny_services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[int] = []
    texts = tiny.app.state.generation_prompts._texts  # type: ignore[attr-defined]
    monkeypatch.setattr(texts, "find", lambda text, owner: looked_at.append(len(text)))
    messages = [{"role": "user", "content": f"{number} " * 1000} for number in range(2000)]
    body = {"model": tiny_services.settings.model, "messages": messages}
    reply = tiny.post("/v1/chat/completions", json=body)
    assert reply.json()["error"]["code"] == "context_length_exceeded"
    assert 0 < len(looked_at) <= 64


class Client:
    """The connection of one request; `leave` ends it."""

    def __init__(self) -> None:
        self._left = anyio.Event()
        self.request = Request({"type": "http"}, self._receive)

    def leave(self) -> None:
        self._left.set()

    async def _receive(self) -> dict[str, str]:
        await self._left.wait()
        return {"type": "http.disconnect"}


LONG = ["x" * (LONG_CHARS + 1)]
HOLDING = ["x" * SHORTEST]
"""A prompt that may hold a document."""


def test_long_prompts_leave_a_thread_to_others_and_short_ones_do_not_wait() -> None:
    at_work: list[str] = []
    go_on = threading.Event()

    def work(name: str) -> str:
        at_work.append(name)
        assert go_on.wait(60)
        return name

    async def ask() -> None:
        threads = PromptThreads(several=True)
        done: list[str] = []

        async def one(owner: str, name: str) -> None:
            done.append(await threads.run(owner, LONG, Client().request, lambda: work(name)))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                for number in range(5):
                    group.start_soon(one, "greedy", f"greedy {number}")
                while len(at_work) < 1:
                    await anyio.sleep(0.01)
                group.start_soon(one, "other", "other")
                while len(at_work) < 2:
                    await anyio.sleep(0.01)
                assert "other" in at_work
                short = await threads.run("greedy", ["x"], Client().request, lambda: "short")
                assert (short, len(at_work), done) == ("short", 2, [])
                go_on.set()
        assert sorted(done) == sorted(["other", *(f"greedy {number}" for number in range(5))])

    anyio.run(ask)


def test_a_client_that_leaves_waits_no_more() -> None:
    go_on = threading.Event()
    begun = threading.Event()
    asked: list[str] = []

    def hold() -> str:
        begun.set()
        assert go_on.wait(60)
        return "held"

    async def ask() -> None:
        threads = PromptThreads(several=True)
        left = Client()
        held: list[str] = []

        async def first() -> None:
            held.append(await threads.run("one", LONG, Client().request, hold))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(first)
                while not begun.is_set():
                    await anyio.sleep(0.01)
                left.leave()
                with pytest.raises(ClientLeft) as refused:
                    await threads.run("one", LONG, left.request, lambda: asked.append("late") or "")
                assert refused.value.code == "client_left"
                go_on.set()
        assert (held, asked) == (["held"], [])

    anyio.run(ask)


@pytest.mark.parametrize("texts", [LONG, HOLDING])
def test_its_time_counts_while_a_prompt_waits_for_its_turn(texts: list[str]) -> None:
    go_on = threading.Event()
    begun = threading.Semaphore(0)
    asked: list[str] = []

    def hold() -> str:
        begun.release()
        assert go_on.wait(60)
        return "held"

    async def ask() -> None:
        threads = PromptThreads(several=True)
        held: list[str] = []

        async def first(timeout_s: float | None) -> None:
            held.append(
                await threads.run(
                    "one",
                    texts,
                    Client().request,
                    hold,
                    matched=texts,
                    arrived=time.perf_counter() - 3600,
                    timeout_s=timeout_s,
                )
            )

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                # One that is at work already is told by what it gives.
                for timeout_s in (3660, None, None, None):
                    group.start_soon(first, timeout_s)
                for _ in range(1 if texts is LONG else 4):
                    while not begun.acquire(blocking=False):
                        await anyio.sleep(0.01)
                with pytest.raises(TimedOut, match="within 3600 seconds"):
                    await threads.run(
                        "one",
                        texts,
                        Client().request,
                        lambda: asked.append("late") or "",
                        matched=texts,
                        arrived=time.perf_counter() - 3599.95,
                        timeout_s=3600,
                    )
                go_on.set()
        assert (held, asked) == (["held"] * 4, [])

    anyio.run(ask)


def test_one_at_work_when_its_time_is_up_comes_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = threading.Event()
    over = threading.Event()

    def work() -> str:
        begun.set()
        assert over.wait(60)
        return "made ready"

    async def ask() -> list[str]:
        clock = anyio.CancelScope()
        monkeypatch.setattr(anyio, "move_on_after", lambda _: clock)
        threads = PromptThreads(several=True)
        done: list[str] = []

        async def one() -> None:
            client = Client().request
            done.append(await threads.run("one", LONG, client, work, timeout_s=1))

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                group.start_soon(one)
                while not begun.is_set():
                    await anyio.sleep(0.01)
                clock.cancel()
                await anyio.sleep(0.05)
                over.set()
        return done

    assert anyio.run(ask) == ["made ready"]


def test_what_work_raises_is_raised() -> None:
    def fail() -> str:
        raise BadRequest("no", code="invalid_value")

    async def ask() -> None:
        with pytest.raises(BadRequest, match="no"):
            await PromptThreads(several=True).run("one", LONG, Client().request, fail)

    anyio.run(ask)


def test_prompts_that_wait_for_their_owners_texts_hold_neither_others_nor_the_general_threads() -> (
    None
):
    at_work: list[str] = []
    go_on = threading.Event()

    def work(name: str) -> str:
        at_work.append(name)
        assert go_on.wait(60)
        return name

    async def ask() -> None:
        threads = PromptThreads(several=True)
        general = anyio.to_thread.current_default_thread_limiter()
        done: list[str] = []

        async def one(owner: str, name: str) -> None:
            client = Client().request
            matched = HOLDING
            done.append(
                await threads.run(owner, HOLDING, client, lambda: work(name), matched=matched)
            )

        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:
                try:
                    for number in range(20):
                        group.start_soon(one, "greedy", f"greedy {number}")
                    while len(at_work) < 4:
                        await anyio.sleep(0.01)
                    group.start_soon(one, "other", "other")
                    while "other" not in at_work:
                        await anyio.sleep(0.01)
                    assert (len(at_work), general.borrowed_tokens) == (5, 0)
                finally:
                    go_on.set()
        assert len(done) == 21

    anyio.run(ask)


def test_the_first_prompts_after_a_start_leave_the_other_addresses_their_threads(
    tiny_services: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = create_app(tiny_services)
    waiting = threading.Semaphore(0)
    go_on = threading.Event()

    def find(text: str, owner: str) -> None:
        # As while the owner's texts are read. Then the prompt has served.
        waiting.release()
        assert go_on.wait(60)
        raise BadRequest("enough")

    monkeypatch.setattr(app.state.generation_prompts._texts, "find", find)
    body = {"model": tiny_services.settings.model, "prompt": "x" * SHORTEST}

    async def ask() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            statuses: list[int] = []

            async def one() -> None:
                statuses.append((await client.post("/v1/completions", json=body)).status_code)

            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    try:
                        for _ in range(50):
                            group.start_soon(one)
                        for _ in range(16):
                            while not waiting.acquire(blocking=False):
                                await anyio.sleep(0.01)
                        # The rest stand in line by now, wherever that is.
                        await anyio.sleep(0.2)
                        listed = await client.get("/api/v1/documents")
                        assert listed.status_code == 200
                    finally:
                        go_on.set()
            assert statuses == [400] * 50

    anyio.run(ask)


@pytest.mark.parametrize(
    "not_matched",
    [
        ("completions", {"prompt": "x" * SHORTEST, "match_documents": False}),
        ("completions", {"prompt": ["x" * (SHORTEST - 1)] * 2}),
        (
            "chat/completions",
            {"messages": [{"role": "user", "content": "x" * SHORTEST}], "match_documents": False},
        ),
        (
            "chat/completions",
            {
                "messages": [
                    {"role": "system", "content": "x" * SHORTEST},
                    {"role": "user", "content": "x"},
                ]
            },
        ),
    ],
)
def test_what_is_not_looked_through_does_not_wait_behind_what_is(
    tiny_services: Any,
    monkeypatch: pytest.MonkeyPatch,
    not_matched: tuple[str, dict[str, Any]],
) -> None:
    app = create_app(tiny_services)
    prompts = app.state.generation_prompts
    waiting = threading.Semaphore(0)
    go_on = threading.Event()

    def find(text: str, owner: str) -> None:
        if len(text) < SHORTEST:
            return
        waiting.release()
        assert go_on.wait(60)
        raise BadRequest("enough")

    def refuse(text: str, param: str) -> None:
        raise BadRequest("had its turn", code="made_ready")

    monkeypatch.setattr(prompts._texts, "find", find)
    monkeypatch.setattr(prompts, "_encoded", refuse)
    named = {"model": tiny_services.settings.model}
    matched = {**named, "prompt": "x" * SHORTEST}
    path, body = not_matched

    async def ask() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:

            async def one() -> None:
                await client.post("/v1/completions", json=matched)

            with anyio.fail_after(60):
                async with anyio.create_task_group() as group:
                    try:
                        for _ in range(16):
                            group.start_soon(one)
                        for _ in range(16):
                            while not waiting.acquire(blocking=False):
                                await anyio.sleep(0.01)
                        reply = await client.post(f"/v1/{path}", json=named | body)
                        assert reply.json()["error"]["code"] == "made_ready"
                    finally:
                        go_on.set()

    anyio.run(ask)
