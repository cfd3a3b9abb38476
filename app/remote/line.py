"""The connection of one request to a model server, so that any thread can cut it.

A server that has sent nothing yet is left only by closing its connection, and a thread that waits
in the client for its first byte can't do that. The client tells of the connection it opens, when a
request is told to be traced. Knows sockets, not what is sent.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

_CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class Line:
    """The connections of one thread's requests, one after the other. `cut` is for any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._cut = False

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Requests of this thread are made over this line meanwhile."""
        token = _LINE.set(self)
        try:
            yield
        finally:
            _LINE.reset(token)

    def cut(self) -> None:
        """Ends the connection, and each that is opened later."""
        with self._lock:
            self._cut = True
            self._shut()

    def trace(self, event: str, facts: dict[str, Any]) -> None:
        """Called by the client with every step of a request."""
        if event not in _CONNECTED:
            return
        with self._lock:
            self._socket = facts["return_value"].get_extra_info("socket")
            if self._cut:
                self._shut()

    def _shut(self) -> None:
        if self._socket is None:
            return
        # Not `close`: that would neither wake the thread that reads nor tell the server. And not
        # the method of a TLS socket, which would take the reading thread's state away.
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


_LINE: ContextVar[Line | None] = ContextVar("line", default=None)


def tracing(request: Any) -> None:
    """A hook for the client: has the line of this thread told of the request's connection."""
    line = _LINE.get()
    if line is not None:
        request.extensions["trace"] = line.trace
