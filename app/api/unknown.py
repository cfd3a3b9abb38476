"""Addresses below the API that no route has.

A page mounted at "/" would answer them with its own 404 page; here they stay problems, and a wrong
method stays 405.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Mount, Route, Router
from starlette.types import Receive, Scope, Send

_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")


class _Unknown:
    """Takes every address that came so far."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        router: Router = scope["router"]
        others = [route for route in router.routes if not _is_unknown(route)]
        allowed = [
            method
            for method in _METHODS
            if any(route.matches({**scope, "method": method})[0] is Match.FULL for route in others)
        ]
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(allowed)})
        raise HTTPException(404)


def _is_unknown(route: BaseRoute) -> bool:
    # A mount (the page) takes every method of every address, so it says nothing either.
    return isinstance(route, Mount) or (
        isinstance(route, Route) and isinstance(route.endpoint, _Unknown)
    )


def unknown_addresses(*prefixes: str) -> list[BaseRoute]:
    """Routes to put behind all others and before any mount at "/"."""
    return [
        Route(address, endpoint=_Unknown(), include_in_schema=False)
        for prefix in prefixes
        for address in (prefix, f"{prefix}/{{rest:path}}")
    ]
