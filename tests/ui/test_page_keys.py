"""Actions are done with the key of whoever acts, each for himself, step by step."""

from __future__ import annotations

import asyncio
import contextvars
import typing
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import gradio as gr
import httpx
from gradio.helpers import special_args

from ui.client import Api
from ui.keys import COOKIE, current_key, keyed, using


class Acts:
    """Handlers that tell the key they are done with."""

    def __init__(self) -> None:
        self.closed_with: str | None = None

    async def once(self, word: str) -> str:
        return f"{word} {current_key()}"

    async def clicked(self, word: str, event: gr.EventData) -> str:
        return f"{word} {current_key()}"

    async def steps(self, count: int) -> AsyncIterator[str]:
        try:
            for number in range(count):
                yield f"{number} {current_key()}"
        finally:
            self.closed_with = current_key()


def by(key: str | None) -> Any:
    return SimpleNamespace(cookies={} if key is None else {COOKIE: key})


def test_an_action_has_the_key_of_its_request_and_leaves_none() -> None:
    acts: Any = keyed(Acts())

    async def run() -> list[str]:
        both = await asyncio.gather(acts.once("a", by("A")), acts.once("b", by("B")))
        return [*both, await acts.once("c", by(None))]

    assert asyncio.run(run()) == ["a A", "b B", "c None"]
    assert current_key() is None


def test_every_step_has_it_in_whatever_context() -> None:
    own = Acts()
    acts: Any = keyed(own)

    async def run() -> list[str]:
        steps = acts.steps(3, by("A"))
        found = []
        for _ in range(2):
            # As Gradio does it: a task of its own for each step.
            step = asyncio.get_running_loop().create_task(
                anext(steps), context=contextvars.Context()
            )
            found.append(await step)
            assert current_key() is None
        await steps.aclose()
        return found

    assert asyncio.run(run()) == ["0 A", "1 A"]
    assert own.closed_with == "A"


def test_gradio_sees_what_a_handler_takes() -> None:
    acts: Any = keyed(Acts())
    request = gr.Request(session_hash="s")
    hints = typing.get_type_hints(acts.clicked)
    assert gr.EventData in hints.values() and gr.Request in hints.values()
    inputs, _, at, _ = special_args(acts.clicked, ["word"], request, gr.EventData(None, {}))
    assert inputs[0] == "word" and at == 1 and inputs[2] is request
    assert acts.steps.__name__ == "steps"


def test_a_call_carries_the_key_and_no_other_call_does() -> None:
    sent: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request.headers.get("authorization"))
        return httpx.Response(200, json={"data": [], "has_more": False})

    async def run() -> None:
        api = Api("http://fineprint.test/api/v1", httpx.MockTransport(answer))
        with using("fp_a"):
            await api.documents()
        await api.documents()
        await api.close()

    asyncio.run(run())
    assert sent == ["Bearer fp_a", None]
