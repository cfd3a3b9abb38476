"""One request on its way through the engine: a document arrives and is asked about three times.

    at once      a first question with the document, a second when it is read, a third when both are
                 answered
    read first   no question before it is read; the first one is then the grounded one too
    dense        one question on the whole document, in its place in the queue; a document that is
                 longer than the model's window is only read, and its first token came no sooner

Times are the engine's: a question's first token is that of `EngineTimings.ttft_ms`. Whatever goes
wrong ends the request and is recorded.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from backend.engine import Engine
from backend.errors import BackendError
from backend.stream import TokenStream
from backend.ticket import ReadTicket
from eval.benchmarks.first_token import fits
from eval.benchmarks.protocol.arms import Order
from eval.benchmarks.protocol.bounds import Bound
from eval.benchmarks.protocol.types import Planned, RequestRecord, Status

_log = logging.getLogger(__name__)
POLL_S = 1.0
"""How often a client that waits for a document looks whether its time is over."""
ROLES = ("any", "grounded", "warm")
"""Of the three questions."""


class GivenUp(Exception):
    """The cell's time is over."""


class Limit:
    """The end of a cell's time: requests under way are cancelled, and none is sent any more. Safe
    from any thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._over = False
        self._asked: set[str] = set()

    @property
    def over(self) -> bool:
        """Whether it has come."""
        return self._over

    def watch(self, request_id: str) -> None:
        """This question is to be cancelled then."""
        with self._lock:
            self._asked.add(request_id)
            over = self._over
        if over:
            self._engine.cancel(request_id)

    def come(self) -> None:
        """It has come."""
        with self._lock:
            self._over = True
            asked = set(self._asked)
        for request_id in asked:
            self._engine.cancel(request_id)


@dataclass(frozen=True, slots=True)
class _Asked:
    role: str
    request_id: str
    at: float
    stream: TokenStream


class Visit:
    """For one thread, and one request."""

    def __init__(self, engine: Engine, planned: Planned, order: Order, limit: Limit) -> None:
        self._engine = engine
        self._planned = planned
        self._order = order
        self._limit = limit
        self._ticket: ReadTicket | None = None
        self._open: dict[str, _Asked] = {}
        self._times: dict[str, Bound] = {}
        self._read_for: dict[str, int] = {}
        self._arrival = self._warm_asked = 0.0
        self._computed_first: int | None = None

    def run(self, began: float) -> RequestRecord:
        """All of it; the engine has forgotten the document afterwards, unless it is kept. `began`:
        when the cell did."""
        stories: Mapping[Order, Callable[[], None]] = {
            "at once": self._ask_at_once,
            "read first": self._read_first,
            "dense": self._read_densely,
        }
        status: Status = "done"
        fault = ""
        self._arrival = time.perf_counter()
        try:
            stories[self._order]()
            self._mark("total")
        except GivenUp:
            status = "unfinished"
            self._end_given_up()
        except Exception as error:
            _log.info("a request of the benchmark failed", exc_info=True)
            status, fault = "failed", f"{type(error).__name__}: {error}"
            for asked in self._open.values():
                asked.stream.close()
        computed = 0 if self._ticket is None else self._ticket.progress().computed_tokens
        reused = None
        if self._computed_first is not None:
            reused = max(self._planned.tokens - self._computed_first, 0)
        if not self._planned.kept:
            self._forget()
        return RequestRecord(
            name=self._planned.name,
            kind=self._planned.kind,
            tokens=self._planned.tokens,
            again=self._planned.again,
            status=status,
            fault=fault,
            arrival=(self._arrival - began) * 1e3,
            times=dict(self._times),
            computed=computed,
            reused=reused,
            read_for=dict(self._read_for),
        )

    def _ask_at_once(self) -> None:
        ticket = self._give()
        first = self._ask(0)
        self._wait(ticket)
        second = self._ask(1)
        self._times["ttft_grounded"] = self._hear(second)
        self._times["ttft_any"] = self._hear(first)
        self._ask_warm()

    def _read_first(self) -> None:
        self._wait(self._give())
        found = self._hear(self._ask(0))
        self._times["ttft_any"] = self._times["ttft_grounded"] = found
        self._ask_warm()

    def _read_densely(self) -> None:
        lazy = fits(self._engine, self._planned.questions[0])
        ticket = self._give(lazy=lazy)
        if lazy:
            found = self._hear(self._ask(0))
            self._computed_first = ticket.progress().computed_tokens
        else:
            self._wait(ticket)
            found = Bound(self._times["read"].value, at_least=True)
        self._times["ttft_any"] = self._times["ttft_grounded"] = found

    def _ask_warm(self) -> None:
        third = self._ask(2)
        self._warm_asked = third.at
        self._times["ttft_warm"] = self._hear(third, since=third.at)

    def _give(self, *, lazy: bool = False) -> ReadTicket:
        self._ticket = self._engine.read(self._planned.given, lazy=lazy)
        return self._ticket

    def _wait(self, ticket: ReadTicket) -> None:
        """Until the document is read."""
        while (state := ticket.wait(POLL_S)).status in ("queued", "reading"):
            if self._limit.over:
                raise GivenUp
        if self._limit.over and state.status == "cancelled":
            raise GivenUp
        if state.status != "done":
            raise BackendError(f"The document was not read: {state.error or state.status}")
        self._mark("read")
        self._computed_first = state.computed_tokens

    def _ask(self, place: int) -> _Asked:
        if self._limit.over:
            raise GivenUp
        request = self._planned.questions[place]
        at = time.perf_counter()
        stream = self._engine.generate(request)
        asked = _Asked(ROLES[place], request.request_id, at, stream)
        self._open[asked.role] = asked
        self._limit.watch(request.request_id)
        return asked

    def _hear(self, asked: _Asked, *, since: float | None = None) -> Bound:
        """The whole answer; its first token's time after the document's arrival, or after `since`.
        Raises GivenUp for an answer that was cancelled."""
        last = list(asked.stream)[-1]
        del self._open[asked.role]
        if last.usage is not None:
            self._read_for[asked.role] = last.usage.read_tokens
        if last.finish_reason == "error" or last.timings is None or last.usage is None:
            raise BackendError(f"{asked.role}: {last.error or 'the answer has no times'}")
        start = self._arrival if since is None else since
        found = Bound((asked.at - start) * 1e3 + last.timings.ttft_ms)
        if last.finish_reason == "cancelled":
            if last.usage.completion_tokens:
                self._times[f"ttft_{asked.role}"] = found
            raise GivenUp
        return found

    def _end_given_up(self) -> None:
        """What was under way is over, and took at least as long as it was waited for."""
        gone = time.perf_counter()
        if self._ticket is not None:
            self._ticket.cancel()
        for asked in list(self._open.values()):
            self._engine.cancel(asked.request_id)
            try:
                self._times.setdefault(f"ttft_{asked.role}", self._hear(asked))
            except (GivenUp, BackendError):
                continue
        if self._order != "at once" and "ttft_any" in self._times:
            self._times["ttft_grounded"] = self._times["ttft_any"]
        waited = Bound((gone - self._arrival) * 1e3, at_least=True)
        for metric in ("ttft_any", "ttft_grounded", "read", "total"):
            self._times.setdefault(metric, waited)
        if self._warm_asked:
            longer = Bound((gone - self._warm_asked) * 1e3, at_least=True)
            self._times.setdefault("ttft_warm", longer)

    def _forget(self) -> None:
        try:
            self._engine.forget(self._planned.given.key)
        except BackendError:
            _log.info("a document could not be forgotten", exc_info=True)

    def _mark(self, metric: str) -> None:
        self._times[metric] = Bound((time.perf_counter() - self._arrival) * 1e3)
