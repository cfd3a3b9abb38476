"""The servers that a remote engine may ask, which of them is up, and who is asked next.

One that fails is left alone for a while, twice as long each time, up to a minute; the next request
that finds none better tries it again. Knows addresses and health, not what is asked.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import openai

FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 60.0
CONNECT_S = 5.0
HEALTH_S = 5.0
"""How long a server may take to list its models."""


@dataclass(slots=True)
class Server:
    """One server. `down_until` is a time of `time.monotonic`; `problem` says what was last wrong
    with it, empty when nothing was."""

    url: str
    client: openai.OpenAI
    in_flight: int = 0
    failures: int = 0
    down_until: float = 0.0
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
            timeout=openai.Timeout(timeout_s, connect=CONNECT_S), trust_env=False
        )
        self._servers = tuple(
            Server(
                url,
                openai.OpenAI(base_url=url, api_key=api_key, http_client=self._http, max_retries=0),
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

    def failed(self, server: Server, problem: str) -> None:
        """`server` did not; it is left alone for a while."""
        with self._lock:
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0**server.failures)
            server.failures += 1
            server.down_until = self._clock() + pause
            server.problem = problem

    def check(self) -> list[str]:
        """Asks every server for its models, now; what is wrong, one line a server that has a
        fault. Empty: all are well."""
        problems = []
        for server in self._servers:
            problem = self._problem_of(server)
            if problem:
                self.failed(server, problem)
                problems.append(f"{server.url}: {problem}")
            else:
                self.well(server)
        return problems

    def _problem_of(self, server: Server) -> str:
        try:
            listed = [one.id for one in server.client.with_options(timeout=HEALTH_S).models.list()]
        except openai.OpenAIError as error:
            return said(error)
        if listed and self.model not in listed:
            return f"it serves {', '.join(listed[:5])}, not {self.model}"
        return ""

    @property
    def problem(self) -> str:
        """Why none can be asked, empty while at least one can."""
        with self._lock:
            now = self._clock()
            if any(one.down_until <= now for one in self._servers):
                return ""
            return "; ".join(f"{one.url}: {one.problem}" for one in self._servers)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()


def said(error: Exception) -> str:
    """An error of the client in a line, with its cause when there is one."""
    cause = error.__cause__
    detail = f" ({cause})" if cause is not None and str(cause) not in str(error) else ""
    return f"{str(error)[:300] or type(error).__name__}{detail}"
