"""Addresses below the API that no route has.

A page mounted at "/" would answer them with its own 404 page; here they stay problems, and a wrong
method stays 405.
"""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Receive, Scope, Send


class _Unknown:
    """Takes every address that came so far."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        router: Router = scope["router"]
        for route in router.routes:
            match, matched = route.matches(scope)
            if match is Match.PARTIAL:
                scope.update(matched)
                await route.handle(scope, receive, send)
                return
        raise HTTPException(404)


def unknown_addresses(*prefixes: str) -> list[BaseRoute]:
    """Routes to put behind all others and before any mount at "/"."""
    return [
        Route(f"{prefix}/{{rest:path}}", endpoint=_Unknown(), include_in_schema=False)
        for prefix in prefixes
    ]
