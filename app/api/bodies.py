"""Limits on the bodies of requests that are no uploads: each one's length, how long it may take to
arrive, and how many bytes of them are held at once, with a share for each owner.

One ASGI layer around the routes, within the one that knows the caller. What a body takes is counted
until its request is over, however that ends: the routes keep its text as long. A `Content-Length`
is counted before anything is read, so whatever does not fit is refused unread; a body without one
is counted as it arrives. Does not know what a body says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.key_check import CALLER
from app.api.problems import RETRY_SECONDS, http_problem
from app.owners import LOCAL
from app.waiting import own_share

BODY_LIMIT = 1_000_000
"""Bytes of a request body that is no upload; the longest allowed question is far below."""
PROMPT_LIMIT = 16_000_000
"""Bytes of a request to /v1: a whole contract of 512K tokens gets through, to be told that it is
better uploaded."""
SHORT_BYTES = 65_536
"""A body up to this length is a short one: nearly every question."""
LONG_SHARE = 0.875
"""Of the bytes held at once, for longer ones, so that these never keep questions out."""
ARRIVAL_SECONDS = 300.0
"""In which a body has to be there: the longest at half a megabit a second."""
IDLE_SECONDS = 15.0
"""That may pass between two pieces of it: what was announced and does not come is held from others
no longer."""


class BodyBytes:
    """`total` bytes that bodies may take at the same time. `several`: whether one owner leaves some
    to others. For one event loop."""

    def __init__(self, total: int, *, several: bool) -> None:
        self._total = total
        self._several = several
        self._held: Counter[str] = Counter()

    @property
    def held(self) -> int:
        """Bytes that are counted now, of all owners."""
        return self._held.total()

    def take(self, owner: str, size: int, *, long: bool) -> bool:
        """Counts so many bytes more if there is room for them, of a body that is `long` or not."""
        room = int(self._total * LONG_SHARE) if long else self._total
        own = own_share(room, several=self._several)
        if self._held[owner] + size > own or self.held + size > room:
            return False
        self._held[owner] += size
        return True

    def give_back(self, owner: str, size: int) -> None:
        """So many are no longer held."""
        self._held[owner] -= size
        # Owners who come and go leave nothing behind.
        self._held = +self._held


class BodyLimits:
    """Wraps the application; `limits` are bytes of one body by address prefix. `upload_path` is
    exempt (it counts for itself, and passes on what it receives)."""

    def __init__(
        self, app: ASGIApp, *, limits: Mapping[str, int], upload_path: str, room: BodyBytes
    ) -> None:
        self._app = app
        self._limits = dict(limits)
        self._upload_path = upload_path
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit = self._limit(scope)
        if limit is None:
            await self._app(scope, receive, send)
            return
        caller = scope.get("state", {}).get(CALLER)
        body = _Body(receive, self._room, LOCAL if caller is None else caller.owner, limit)
        try:
            try:
                body.announce(Headers(scope=scope).get("content-length", ""))
            except HTTPException as error:
                await http_problem(error)(scope, receive, send)
                return
            await self._app(scope, body.receive, send)
        finally:
            body.leave()

    def _limit(self, scope: Scope) -> int | None:
        if scope["type"] != "http" or scope["path"] == self._upload_path:
            return None
        path = scope["path"]
        limits = [size for prefix, size in self._limits.items() if path.startswith(prefix)]
        return min(limits, default=None)


class _Body:
    """One body on its way in. Its errors are of the kind that FastAPI lets through while it reads a
    body."""

    def __init__(self, receive: Receive, room: BodyBytes, owner: str, limit: int) -> None:
        self._receive = receive
        self._room = room
        self._owner = owner
        self._limit = limit
        self._held = 0
        self._seen = 0
        self._over = False
        self._until = anyio.current_time() + ARRIVAL_SECONDS

    def announce(self, length: str) -> None:
        """Counts a body of this `Content-Length`."""
        if length.isdecimal():
            self._hold(int(length))

    async def receive(self) -> Message:
        """The next message; its bytes are counted."""
        if self._over:
            return await self._receive()
        left = max(0.0, self._until - anyio.current_time())
        with anyio.move_on_after(min(left, IDLE_SECONDS)) as clock:
            message = await self._receive()
        if clock.cancelled_caught:
            raise HTTPException(
                408,
                f"Nothing of the body came for {IDLE_SECONDS:.0f} seconds. Send it again."
                if left > IDLE_SECONDS
                else f"The body was not there within {ARRIVAL_SECONDS:.0f} seconds. Send it again.",
                {"Connection": "close"},
            )
        self._over = not message.get("more_body", False)
        self._seen += len(message.get("body", b""))
        self._hold(self._seen)
        return message

    def leave(self) -> None:
        """Its request is over."""
        self._room.give_back(self._owner, self._held)
        self._held = 0

    def _hold(self, size: int) -> None:
        if size > self._limit:
            raise HTTPException(413, f"The body is over the limit of {self._limit:,} bytes.")
        more = size - self._held
        if more <= 0:
            return
        if not self._room.take(self._owner, more, long=size > SHORT_BYTES):
            raise HTTPException(
                429,
                "Too many bytes of requests are held already. Try again in "
                f"{RETRY_SECONDS} s, with fewer long requests at a time.",
                {"Retry-After": str(RETRY_SECONDS)},
            )
        self._held = size
