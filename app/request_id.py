"""The id of the request being served, for error bodies and log lines."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_request_id: ContextVar[str] = ContextVar("request_id", default="")


def current_request_id() -> str:
    """Empty outside a request."""
    return _request_id.get()


def begin(offered: str | None) -> str:
    """Takes over the client's id when it is harmless in logs and headers, else makes one."""
    accepted = offered is not None and _ACCEPTED.fullmatch(offered)
    request_id = offered if accepted and offered else f"req_{secrets.token_hex(8)}"
    _request_id.set(request_id)
    return request_id


@contextmanager
def serving(request_id: str) -> Iterator[None]:
    """In a thread that works for many: what it logs inside the block is of this request."""
    before = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(before)
