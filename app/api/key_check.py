"""Lets requests below some addresses through only with an API key, and notes whose key it is.

One ASGI layer before all routes, so that no route can be forgotten and nothing of a body is read
for nobody. What a key's owner may see is narrowed by the routes (`app.api.deps`).
"""

from __future__ import annotations

from collections.abc import Callable

import anyio
import anyio.to_thread
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problems
from app.api_keys import Caller
from app.errors import AppError

CALLER = "caller"
"""The `Caller` in `request.state`."""
_THREADS = 8
"""For look-ups, apart from the threads that slow routes may all have taken."""


class KeyCheck:
    """Wraps the application; `prefixes` are the addresses that need a key, with all below them."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        authenticate: Callable[[str | None], Caller],
        prefixes: tuple[str, ...],
    ) -> None:
        self._app = app
        self._authenticate = authenticate
        self._prefixes = prefixes
        self._threads = anyio.CapacityLimiter(_THREADS)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self._covers(scope["path"]):
            await self._app(scope, receive, send)
            return
        key = given_key(Headers(scope=scope))
        try:
            caller = await anyio.to_thread.run_sync(self._authenticate, key, limiter=self._threads)
        except AppError as error:
            await problems.app_problem(error)(scope, receive, send)
            return
        scope.setdefault("state", {})[CALLER] = caller
        await self._app(scope, receive, send)

    def _covers(self, path: str) -> bool:
        return any(path == one or path.startswith(f"{one}/") for one in self._prefixes)


def given_key(headers: Headers) -> str | None:
    """The key of a request: `Authorization: Bearer …`, else `X-API-Key`; None without either. An
    `Authorization` of another kind is a proxy's matter."""
    kind, _, value = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer" and value.strip():
        return value.strip()
    return headers.get("x-api-key", "").strip() or None
