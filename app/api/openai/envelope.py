"""OpenAI's error shape. Below /v1 every problem, whoever made it, leaves as
`{"error": {"message", "type", "param", "code"}}` with the same status and headers.

One ASGI layer around all others, so that none has to know two shapes.
"""

from __future__ import annotations

import json
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import MEDIA_TYPE

ERROR_RESPONSE: dict[str, Any] = {
    "description": "An error in OpenAI's shape.",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "error": {
                        "type": "object",
                        "properties": {
                            "message": {"type": "string"},
                            "type": {"type": "string"},
                            "param": {"type": ["string", "null"]},
                            "code": {"type": ["string", "null"]},
                        },
                    }
                },
            }
        }
    },
}
"""For the OpenAPI description."""
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class ErrorEnvelope:
    """Translates problems (RFC 9457) of addresses below `prefix`."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self._app = app
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not _below(scope["path"], self._prefix):
            await self._app(scope, receive, send)
            return
        held: Message | None = None
        body = bytearray()

        async def send_translated(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_problem(message):
                held = message
            elif held is None:
                await send(message)
            else:
                body.extend(message.get("body", b""))
                if not message.get("more_body", False):
                    await _send_error(held, bytes(body), send)

        await self._app(scope, receive, send_translated)


def error_body(status: int, code: str | None, message: str, param: object = None) -> dict[str, Any]:
    """The envelope. `param` names the faulty parameter of the request."""
    kind = _TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


async def _send_error(start: Message, body: bytes, send: Send) -> None:
    problem = json.loads(body)
    told = error_body(problem["status"], problem["code"], problem["detail"], problem.get("param"))
    content = json.dumps(told, ensure_ascii=False).encode()
    headers = MutableHeaders(scope=start)
    headers["Content-Type"] = "application/json"
    headers["Content-Length"] = str(len(content))
    await send(start)
    await send({"type": "http.response.body", "body": content})


def _is_problem(start: Message) -> bool:
    content_type = MutableHeaders(scope=start).get("content-type", "")
    return content_type.startswith(MEDIA_TYPE)


def _below(path: str, prefix: str) -> bool:
    return path == prefix or path.startswith(f"{prefix}/")
