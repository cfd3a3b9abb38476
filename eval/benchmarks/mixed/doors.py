"""What every way into a server shares: requests that wait when the server is full, errors as
faults, the journey of one request with its marks.

Knows HTTP and the two forms of error bodies (problem+json and OpenAI's), no addresses.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httpx

from eval.benchmarks.mixed.clock import Clock
from eval.benchmarks.mixed.streams import ServerEvent
from eval.benchmarks.mixed.types import (
    AnswerRecord,
    Fault,
    LoadRequest,
    RequestRecord,
    Reuse,
    Role,
)

Json = dict[str, Any]

BUSY = (429, 503)
"""Refusals that say "later"; anything else that is no success is a failure."""
LONGEST_WAIT_S = 30.0


class RequestFailed(Exception):
    """A request ended with `fault`."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Door(Protocol):
    """A way into a server."""

    @property
    def api(self) -> str:
        """Its name in the record."""

    async def prepare(self) -> Json:
        """Looks whether the server answers; facts about it for the record. Raises PeerError."""

    async def counters(self) -> Mapping[str, float]:
        """The server's own counters, empty where it has none."""

    async def serve(self, request: LoadRequest, arrival: float, clock: Clock) -> RequestRecord:
        """One request from its arrival to its last answer. Failures are in the record."""

    def reuse(
        self,
        records: tuple[RequestRecord, ...],
        before: Mapping[str, float],
        after: Mapping[str, float],
    ) -> Reuse:
        """What a cell's documents found in the cache; the counters are of its begin and end."""

    async def forget(self) -> None:
        """Removes what was stored for this benchmark."""

    async def close(self) -> None:
        """Closes the connections."""


def open_client(url: str, headers: Mapping[str, str] | None = None) -> httpx.AsyncClient:
    """A client without limits of its own: the benchmark says how many requests there are, and each
    of them has one time limit. Uncompressed, because compression holds events back."""
    return httpx.AsyncClient(
        base_url=url.rstrip("/"),
        timeout=httpx.Timeout(None, connect=10.0),
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=None),
        headers={"Accept-Encoding": "identity", **(headers or {})},
        # The server is named by its address; a proxy of the environment has no part in it.
        trust_env=False,
    )


class Journey:
    """One request on its way. `retries` counts the refusals that were waited out so far."""

    def __init__(
        self, client: httpx.AsyncClient, request: LoadRequest, arrival: float, clock: Clock
    ) -> None:
        self.client = client
        self.request = request
        self.clock = clock
        self.marks: dict[str, float] = {"arrival": arrival}
        self.answers: list[AnswerRecord] = []
        self.retries = 0

    def mark(self, name: str) -> None:
        """Notes the time at which `name` was reached for the first time."""
        self.marks.setdefault(name, self.clock.now_ms())

    def fail(self, stage: str, code: str, message: str) -> RequestFailed:
        """The error to raise."""
        return RequestFailed(Fault(stage, code, message))

    @asynccontextmanager
    async def reply(
        self, stage: str, method: str, path: str, **options: Any
    ) -> AsyncIterator[httpx.Response]:
        """A successful reply, its body still to come. Waits and asks again while the server says
        that it is full. Raises RequestFailed for any other refusal and lost connections."""
        try:
            while True:
                async with self.client.stream(method, path, **options) as response:
                    if response.is_success:
                        yield response
                        return
                    await response.aread()
                if response.status_code not in BUSY or "retry-after" not in response.headers:
                    raise RequestFailed(fault_of(response, stage))
                self.retries += 1
                await asyncio.sleep(_wait(response.headers["retry-after"]))
        except httpx.TransportError as error:
            reason = str(error) or type(error).__name__
            raise self.fail(stage, "connection", f"The connection failed: {reason}") from error

    async def json(self, stage: str, method: str, path: str, **options: Any) -> Json:
        """The JSON object of a reply."""
        async with self.reply(stage, method, path, **options) as response:
            await response.aread()
            return parse(stage, response.text)


class Hearing:
    """Listens to one answer: when its first text came, and all of it."""

    def __init__(self, journey: Journey, role: Role, marks: tuple[str, ...]) -> None:
        self.journey = journey
        self.role = role
        self.text = ""
        self.first_kind = ""
        self._marks = marks
        self._asked = journey.clock.now_ms()
        self._first: float | None = None
        self._retries = journey.retries

    def hear(self, text: str, kind: str) -> None:
        """The next piece. Only text with a visible character counts as the first: roles, pings,
        status events and white space do not."""
        self.text += text
        if self._first is None and text.strip():
            self._first = self.journey.clock.now_ms()
            self.first_kind = kind
            for name in self._marks:
                self.journey.marks.setdefault(name, self._first)

    def record(
        self,
        expected: str,
        *,
        status: str = "",
        finish_reason: str = "",
        timings: Mapping[str, float] | None = None,
        usage: Mapping[str, object] | None = None,
    ) -> AnswerRecord:
        """The finished answer. Raises RequestFailed when no text came."""
        if self._first is None:
            raise self.journey.fail(
                self.role, "no_text", "The stream ended without any text; it has no first token."
            )
        now = self.journey.clock.now_ms()
        record = AnswerRecord(
            role=self.role,
            ttft_ms=self._first - self._asked,
            total_ms=now - self._asked,
            first_kind=self.first_kind,
            characters=len(self.text),
            retries=self.journey.retries - self._retries,
            right=expected in self.text,
            status=status,
            finish_reason=finish_reason,
            server_timings=dict(timings or {}),
            usage=dict(usage or {}),
        )
        self.journey.answers.append(record)
        return record


async def travelled(journey: Journey, story: Awaitable[None], timeout_s: float) -> Fault | None:
    """Awaits the story of a request within its time; the fault with which it ended, if any."""
    fault: Fault | None = None
    try:
        async with asyncio.timeout(timeout_s):
            try:
                await story
            except* RequestFailed as group:
                fault = _first_fault(group)
    except TimeoutError:
        reached = max(journey.marks, key=lambda name: journey.marks[name])
        fault = Fault(reached, "timeout", f"Not done after {timeout_s:g} s; reached: {reached}.")
    return fault


def fault_of(response: httpx.Response, stage: str) -> Fault:
    """The server's own words about a refusal, whichever form they have."""
    code, message = f"http_{response.status_code}", response.text[:500]
    try:
        body = json.loads(response.text)
    except ValueError:
        body = None
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict):
            code = str(inner.get("code") or inner.get("type") or code)
            message = str(inner.get("message") or inner.get("detail") or message)
        elif isinstance(inner, str):
            message = inner
    return Fault(stage, code, message or f"HTTP {response.status_code} without a reason.")


def parse(stage: str, text: str) -> Json:
    """A JSON object. Raises RequestFailed."""
    try:
        body = json.loads(text)
    except ValueError:
        body = None
    if not isinstance(body, dict):
        message = f"Not a JSON object: {text[:200]!r}"
        raise RequestFailed(Fault(stage, "bad_reply", message))
    return body


def event_json(role: Role, event: ServerEvent) -> Json:
    """The object in an event's data. Raises RequestFailed."""
    return parse(role, event.data)


def _wait(header: str) -> float:
    """Seconds of a Retry-After header; one second for a date, which model servers don't send."""
    return min(float(header), LONGEST_WAIT_S) if header.strip().isdigit() else 1.0


def _first_fault(group: BaseExceptionGroup[RequestFailed]) -> Fault:
    first = group.exceptions[0]
    return _first_fault(first) if isinstance(first, BaseExceptionGroup) else first.fault
