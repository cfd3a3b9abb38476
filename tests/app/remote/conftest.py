"""Scripted model servers on real sockets."""

from __future__ import annotations

import json
import select
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


class Scripted:
    """What one server says. `words` are its chunks; `statuses` are answered first, in order;
    `break_after` chunks the connection ends; `pace` seconds a chunk, `thinks` seconds before the
    first byte; `gone`: it lists no models."""

    def __init__(self) -> None:
        self.words = ["The cap ", "is ", "USD 5."]
        self.statuses: list[tuple[int, dict[str, str], str]] = []
        self.break_after: int | None = None
        self.pace = 0.0
        self.thinks = 0.0
        self.models = ["big"]
        self.gone = False
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.left = threading.Event()
        self.url = ""


def _handler(script: Scripted) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if script.gone:
                self._json(503, {"error": {"message": "gone"}})
                return
            self._json(200, {"object": "list", "data": [{"id": one} for one in script.models]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            script.bodies.append(body)
            script.headers.append(dict(self.headers))
            if self._left_while_thinking():
                script.left.set()
                self.close_connection = True
                return
            if script.statuses:
                status, headers, message = script.statuses.pop(0)
                self._json(status, {"error": {"message": message}}, headers)
                return
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            self.close_connection = True
            try:
                for number, word in enumerate(script.words):
                    if script.break_after == number:
                        return
                    time.sleep(script.pace)
                    self._chunk({"delta": {"content": word}, "finish_reason": None})
                self._chunk({"delta": {}, "finish_reason": "stop"})
                usage = {"prompt_tokens": 30, "completion_tokens": 3, "total_tokens": 33,
                         "prompt_tokens_details": {"cached_tokens": 16}}  # fmt: skip
                self._send({"choices": [], "usage": usage})
                self.wfile.write(b"data: [DONE]\n\n")
            except (BrokenPipeError, ConnectionResetError):
                script.left.set()

        def _left_while_thinking(self) -> bool:
            readable, _, _ = select.select([self.connection], [], [], script.thinks)
            return bool(readable)

        def _chunk(self, choice: dict[str, Any]) -> None:
            self._send({"choices": [{"index": 0, **choice}]})

        def _send(self, data: dict[str, Any]) -> None:
            full = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "big"}
            self.wfile.write(f"data: {json.dumps(full | data)}\n\n".encode())
            self.wfile.flush()

        def _json(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: Any) -> None:
            """Nothing."""

    return Handler


@pytest.fixture
def model_server() -> Iterator[Callable[[], Scripted]]:
    """model_server() -> a running scripted server."""
    running = []

    def start() -> Scripted:
        script = Scripted()
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(script))
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append(server)
        script.url = f"http://127.0.0.1:{server.server_port}/v1"
        return script

    yield start
    for server in running:
        server.shutdown()
        server.server_close()
