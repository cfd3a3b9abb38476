"""The servers that a remote engine may ask, which of them is up, and who is asked next.

One that fails is left alone for a while, twice as long each time, up to a minute; the next request
that finds none better tries it again. One that failed, or from which nothing was heard for a while,
is asked for its models now and then. Knows addresses and health, not what is asked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import openai

from app.remote.line import Line, tracing

logger = logging.getLogger(__name__)

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
CONNECT_S = 5.0
HEALTH_S = 5.0
"""How long a server may take to list its models."""
LOOK_S = 5.0
"""Between two looks at servers that failed."""
IDLE_S = 30.0
"""A server from which nothing was heard for this long is looked at too."""


@dataclass(slots=True)
class Server:
    """One server. `down_until`, `failed_at` and `heard_at` are times of `time.monotonic`; `problem`
    says what is wrong with it, empty from its next success on. `answers`: it did what was asked
    the last time."""

    url: str
    client: openai.OpenAI
    in_flight: int = 0
    failures: int = 0
    down_until: float = 0.0
    failed_at: float = 0.0
    heard_at: float = 0.0
    answers: bool = False
    problem: str = ""


class Servers:
    """Thread-safe. `api_key` is sent to every server."""

    def __init__(
        self,
        urls: Sequence[str],
        model: str,
        *,
        api_key: str = "none",
        timeout_s: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.model = model
        self._clock = clock
        self._lock = threading.Lock()
        # Servers stand in the user's own network: no proxy of the environment has a part in it.
        self._http = openai.DefaultHttpxClient(
            timeout=openai.Timeout(timeout_s, connect=CONNECT_S),
            trust_env=False,
            event_hooks={"request": [tracing]},
        )
        self._closing = threading.Event()
        self._line = Line()
        self._watcher: threading.Thread | None = None
        self._servers = tuple(
            Server(
                url,
                openai.OpenAI(
                    base_url=url,
                    api_key=api_key,
                    http_client=self._http,
                    max_retries=0,
                    # A connection is one request's own, so that it can be cut (`app.remote.line`).
                    default_headers={"Connection": "close"},
                ),
            )
            for url in urls
        )

    def __len__(self) -> int:
        return len(self._servers)

    def in_order(self) -> list[Server]:
        """Whom to ask first: those that are up by load, then those that will be back soonest."""
        with self._lock:
            now = self._clock()
            return sorted(
                self._servers, key=lambda one: (max(0.0, one.down_until - now), one.in_flight)
            )

    @contextmanager
    def busy(self, server: Server) -> Iterator[None]:
        """Counts one request at `server`."""
        with self._lock:
            server.in_flight += 1
        try:
            yield
        finally:
            with self._lock:
                server.in_flight -= 1

    def well(self, server: Server) -> None:
        """`server` did what was asked."""
        with self._lock:
            server.failures, server.down_until, server.problem = 0, 0.0, ""
            server.heard_at, server.answers = self._clock(), True

    def failed(
        self, server: Server, problem: str, *, asked_at: float | None = None, pause_s: float = 0.0
    ) -> None:
        """`server` did not; it is left alone for a while, `pause_s` at least. However many requests
        meet one outage, it counts once: what was asked (`asked_at`, `time.monotonic`) before the
        last failure, or while the server should be left alone, tells nothing new."""
        with self._lock:
            now = self._clock()
            known = now < server.down_until or (
                server.failures > 0 and asked_at is not None and asked_at < server.failed_at
            )
            if not known:
                pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**server.failures)
                server.failures += 1
                server.failed_at = now
                server.down_until = now + pause
            told_until = now + min(pause_s, LONGEST_PAUSE_S)
            server.down_until = max(server.down_until, told_until)
            server.problem, server.heard_at, server.answers = problem, now, False

    def now(self) -> float:
        """The time by which failures are counted."""
        return self._clock()

    def check(self) -> list[str]:
        """Asks every server for its models, now; what is wrong, one line a server that has a
        fault. Empty: all are well."""
        return [
            f"{server.url}: {problem}"
            for server in self._servers
            if (problem := self._looked_at(server))
        ]

    def watch(self) -> None:
        """Looks at servers that failed, and at those from which nothing is heard, from now on."""
        self._watcher = threading.Thread(target=self._watch, name="model-servers", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        with self._line.held():
            while not self._closing.wait(LOOK_S):
                try:
                    self.look()
                except Exception as error:
                    # Without this thread an outage would never be over.
                    logger.error("the model servers could not be looked at", exc_info=error)

    def look(self) -> None:
        """Asks the servers that failed, and those from which nothing was heard for a while."""
        for server in self._servers:
            with self._lock:
                idle = not server.in_flight and self._clock() - server.heard_at >= IDLE_S
                due = bool(server.problem) or idle
                before = server.problem
            if not due or self._closing.is_set():
                continue
            problem = self._looked_at(server)
            if bool(problem) != bool(before):
                logger.warning("model server %s: %s", server.url, problem or "it is back")

    def _looked_at(self, server: Server) -> str:
        asked_at = self._clock()
        problem = self._problem_of(server)
        with self._lock:
            if not problem and (server.failures == 0 or server.failed_at <= asked_at):
                # How long it is left alone stays: one that lists its models may still be loading.
                server.problem, server.heard_at = "", self._clock()
        if problem:
            self.failed(server, problem, asked_at=asked_at)
        return problem

    def _problem_of(self, server: Server) -> str:
        try:
            listed = [one.id for one in server.client.with_options(timeout=HEALTH_S).models.list()]
        except openai.OpenAIError as error:
            return said(error)
        # Some servers take any name; one that has just answered has the model.
        if listed and self.model not in listed and not server.answers:
            return f"it serves {', '.join(listed[:5])}, not {self.model}"
        return ""

    @property
    def problem(self) -> str:
        """Why none can be asked: what was last wrong with each. Empty while one has no fault."""
        with self._lock:
            if not all(one.problem for one in self._servers):
                return ""
            return "; ".join(f"{one.url}: {one.problem}" for one in self._servers)

    def close(self) -> None:
        """Closes the connections."""
        self._closing.set()
        self._line.cut()
        if self._watcher is not None:
            self._watcher.join(2 * HEALTH_S)
        self._http.close()


def said(error: Exception) -> str:
    """An error of the client in a line, with its cause when there is one."""
    cause = error.__cause__
    detail = f" ({cause})" if cause is not None and str(cause) not in str(error) else ""
    return f"{str(error)[:300] or type(error).__name__}{detail}"
