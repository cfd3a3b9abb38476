"""What a step of a handler set stays set in its later steps, values excepted."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any

import gradio as gr

from ui.lasting import lasting


class Acts:
    """A handler in steps, which notes that it was closed."""

    closed = False

    @lasting
    async def steps(self, word: str) -> AsyncIterator[dict[str, Any]]:
        """What happens."""
        try:
            yield {"button": gr.update(visible=False), "box": ""}
            yield {"talk": word}
            yield {"button": gr.update(visible=True), "talk": "end"}
            yield {"button": "a value"}
            yield {"status": ""}
        finally:
            self.closed = True


def test_properties_are_repeated_until_set_anew_and_values_are_not() -> None:
    async def run() -> list[dict[str, Any]]:
        return [dict(step) async for step in Acts().steps("hello")]

    shut, shown = gr.update(visible=False), gr.update(visible=True)
    assert asyncio.run(run()) == [
        {"button": shut, "box": ""},
        {"button": shut, "talk": "hello"},
        {"button": shown, "talk": "end"},
        {"button": "a value"},
        {"status": ""},
    ]


def test_who_leaves_early_ends_the_handler() -> None:
    acts = Acts()

    async def run() -> None:
        steps: Any = acts.steps("hello")
        await anext(steps)
        await steps.aclose()

    asyncio.run(run())
    assert acts.closed


def test_the_handler_is_still_described() -> None:
    assert list(inspect.signature(Acts().steps).parameters) == ["word"]
    assert inspect.isasyncgenfunction(Acts().steps)
    assert Acts.steps.__doc__ == "What happens."
