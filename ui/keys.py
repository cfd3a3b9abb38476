"""Whose API key an action of the page is done with, where the server needs keys.

The key stands in a cookie of the browser session (`ui.sign_in`). Gradio hands a handler the request
of its event; here the cookie of that request becomes the key of all calls to the API that the
handler makes, and of nobody else's. Nothing is kept.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, cast

import gradio as gr

COOKIE = "fineprint_key"
_REQUEST = "request_with_key"

_current: ContextVar[str | None] = ContextVar("key", default=None)

Actions = TypeVar("Actions")


def current_key() -> str | None:
    """The key of the action that is being done; None: it has none."""
    return _current.get()


@contextmanager
def using(key: str | None) -> Iterator[None]:
    """Calls to the API within the block have this key."""
    token = _current.set(key)
    try:
        yield
    finally:
        _current.reset(token)


def keyed(actions: Actions) -> Actions:
    """The same handlers, each done with the key of whoever acts. For connecting to events; who
    calls a handler himself has its key already."""
    return cast("Actions", _Keyed(actions))


class _Keyed:
    def __init__(self, actions: object) -> None:
        self._actions = actions

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return _with_key(getattr(self._actions, name))


def _with_key(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler with one more parameter, by whose type Gradio knows to give it the request."""
    if inspect.isasyncgenfunction(handler):

        async def in_steps(*given: Any) -> AsyncIterator[Any]:
            *arguments, request = given
            key = request.cookies.get(COOKIE)
            steps = handler(*arguments)
            try:
                while True:
                    # Each step anew: Gradio may take every one in another context.
                    with using(key):
                        try:
                            changes = await anext(steps)
                        except StopAsyncIteration:
                            return
                    yield changes
            finally:
                with using(key):
                    await steps.aclose()

        return _described(in_steps, handler)

    async def at_once(*given: Any) -> Any:
        *arguments, request = given
        with using(request.cookies.get(COOKIE)):
            return await handler(*arguments)

    return _described(at_once, handler)


def _described(done: Any, handler: Callable[..., Any]) -> Callable[..., Any]:
    one_more = inspect.Parameter(_REQUEST, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    taken = inspect.signature(handler)
    described = taken.replace(parameters=[*taken.parameters.values(), one_more])
    done.__signature__ = described
    done.__annotations__ = {**typing.get_type_hints(handler), _REQUEST: gr.Request}
    done.__name__ = handler.__name__
    return cast("Callable[..., Any]", done)
