"""When requests are sent: as many at a time as allowed, or at their own times.

In the open loop every request has the time at which it is due as its arrival, also when the client
or the server is late: a stall then shows in every request that had to wait for it, not in one (Gil
Tene's "coordinated omission"). Knows no server.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from eval.benchmarks.mixed.clock import Clock
from eval.benchmarks.mixed.types import LoadRequest, RequestRecord

Serve = Callable[[LoadRequest, float, Clock], Awaitable[RequestRecord]]
"""Sends one request, whose arrival (milliseconds on the clock) is given, and records its end. It
does not raise for what goes wrong with the server."""


@dataclass(slots=True)
class Traffic:
    """What was sent. `peak` is the highest number of requests under way at once."""

    records: list[RequestRecord]
    peak: int = 0
    _under_way: int = 0

    async def one(self, serve: Serve, request: LoadRequest, arrival: float, clock: Clock) -> None:
        """Sends a request and keeps its record."""
        self._under_way += 1
        self.peak = max(self.peak, self._under_way)
        try:
            self.records.append(await serve(request, arrival, clock))
        finally:
            self._under_way -= 1


async def send(
    requests: Sequence[LoadRequest], serve: Serve, concurrency: int, clock: Clock
) -> Traffic:
    """Sends all requests, at their times where they have one, otherwise `concurrency` at a time in
    the given order. Records are in order of their ends."""
    traffic = Traffic([])
    timed = [(request.at_ms, request) for request in requests if request.at_ms is not None]
    free = iter([request for request in requests if request.at_ms is None])

    async def worker() -> None:
        for request in free:
            await traffic.one(serve, request, clock.now_ms(), clock)

    async def due(at_ms: float, request: LoadRequest) -> None:
        await asyncio.sleep(max(0.0, at_ms - clock.now_ms()) / 1000)
        await traffic.one(serve, request, at_ms, clock)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(concurrency, len(requests) - len(timed))):
            group.create_task(worker())
        for at_ms, request in timed:
            group.create_task(due(at_ms, request))
    return traffic


def poisson_times(count: int, per_second: float, seed: int) -> tuple[float, ...]:
    """Arrival times in milliseconds of a Poisson process, the first at its first arrival."""
    chosen = random.Random(seed)
    times, now = [], 0.0
    for _ in range(count):
        now += chosen.expovariate(per_second) * 1000
        times.append(now)
    return tuple(times)
