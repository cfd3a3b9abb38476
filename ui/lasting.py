"""Changes of a handler that goes on in steps, so told that none is lost in the browser.

Gradio sends the second and later steps of an event as differences to the step before, and its
page applies them to the very object it was given for that step. When the page hears of several
steps at once, as it does whenever the answer to the event's request comes after its first steps,
a property that a later step doesn't name is taken out of the earlier one before it was applied: a
view that was to open stays shut. A step that repeats the properties set so far takes nothing out.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, ParamSpec, cast

from ui.parts import Changes

Given = ParamSpec("Given")


def lasting(
    handler: Callable[Given, AsyncIterator[Changes]],
) -> Callable[Given, AsyncIterator[Changes]]:
    """The handler with every property it set (`gr.update`) repeated in its later steps, until one
    sets the component anew. Values alone are not repeated: whoever types meanwhile keeps what he
    typed."""

    @functools.wraps(handler)
    async def told(*given: Given.args, **named: Given.kwargs) -> AsyncIterator[Changes]:
        properties: Changes = {}
        async with aclosing(cast("Any", handler(*given, **named))) as steps:
            async for step in steps:
                whole = {**properties, **step}
                yield whole
                properties = {part: one for part, one in whole.items() if _sets_properties(one)}

    return told


def _sets_properties(change: object) -> bool:
    return isinstance(change, dict) and change.get("__type__") == "update"
