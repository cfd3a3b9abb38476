"""What happens around every request: its id, origin check, security headers, metrics and the last
catch for unexpected errors.

One plain ASGI layer, so that streams and disconnects pass through untouched. It does not know the
routes.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import request_id
from app.api import problems
from app.api.metrics import Metrics
from app.timeline import begin_request

_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
_HTML_POLICY = "frame-ancestors 'self'; object-src 'none'; base-uri 'self'"


class RequestLayer:
    """Wraps the application; `prefixes` are those of the API's own addresses. With `local_only`, a
    foreign Host header is refused, which stops a web page from reaching a local server through a
    name of its own (DNS rebinding)."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        metrics: Metrics,
        prefixes: tuple[str, ...],
        local_only: bool,
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._prefixes = prefixes
        self._local_only = local_only

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        assigned = request_id.begin(headers.get("x-request-id"))
        clock = begin_request()
        status = 500
        response_started = False

        async def send_marked(message: Message) -> None:
            nonlocal status, response_started
            if message["type"] == "http.response.start":
                status = message["status"]
                response_started = True
                _mark(MutableHeaders(scope=message), assigned)
            await send(message)
            if message["type"] == "http.response.body" and message.get("body"):
                clock.sent()

        try:
            refusal = self._refusal(scope, headers)
            if refusal is not None:
                await refusal(scope, receive, send_marked)
            else:
                await self._app(scope, receive, send_marked)
        except Exception as error:
            problem = problems.unexpected(error)
            if response_started:
                # Too late for another status: let the server break the connection off.
                raise
            await problem(scope, receive, send_marked)
        finally:
            self._metrics.observe_request(scope, status, clock.done())

    def _refusal(self, scope: Scope, headers: Headers) -> problems.Problem | None:
        host = headers.get("host", "")
        if self._local_only and _hostname(host) not in _LOCAL_HOSTS:
            return problems.Problem(
                403, "foreign_host", "This server answers only under localhost and 127.0.0.1."
            )
        origin = headers.get("origin")
        writes = scope["method"] not in _SAFE_METHODS
        own = scope["path"].startswith(self._prefixes)
        foreign = own and origin is not None and _netloc(origin) != host
        # The page's addresses too. A proxy may give the page another host than the browser knows,
        # so there only the browser's own word counts.
        if writes and (foreign or headers.get("sec-fetch-site") == "cross-site"):
            return problems.Problem(
                403, "foreign_origin", "Pages of other sites may not change anything here."
            )
        return None


def _hostname(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:  # as for "[", which opens an IPv6 address
        return ""


def _netloc(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _mark(headers: MutableHeaders, assigned: str) -> None:
    headers["X-Request-ID"] = assigned
    headers.setdefault("X-Content-Type-Options", "nosniff")
    headers.setdefault("Referrer-Policy", "same-origin")
    if headers.get("content-type", "").startswith("text/html"):
        headers.setdefault("Content-Security-Policy", _HTML_POLICY)
        headers.setdefault("X-Frame-Options", "SAMEORIGIN")
