"""Sends one load to an engine: so many clients at a time, each of which takes the next request when
its own is over. Whatever happens, it ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

from backend.engine import Engine
from backend.types import EngineCounters
from eval.benchmarks.protocol.arms import Arm
from eval.benchmarks.protocol.types import CellRecord, Planned, RequestRecord
from eval.benchmarks.protocol.visit import Limit, Visit
from eval.errors import EvalError

_COUNTED = ("hits", "misses", "evicted", "read_tokens")


def run_cell(
    engine: Engine,
    planned: Sequence[Planned],
    *,
    arm: Arm,
    cell: str,
    round_number: int,
    concurrency: int,
    limit_s: float,
    grace_s: float,
) -> CellRecord:
    """Sends the load. After `limit_s` seconds what is under way is given up.

    Raises EvalError when the engine does not come back `grace_s` seconds after that.
    """
    before = engine.counters
    clients = _Clients(engine, planned, arm)
    cut = clients.run(concurrency, limit_s, grace_s)
    after = engine.counters
    done = {record.name: record for record in clients.records}
    return CellRecord(
        arm=arm.name,
        cell=cell,
        round=round_number,
        wall_s=clients.wall_s,
        cut=cut,
        peak=clients.peak,
        counters=_difference(before, after),
        records=tuple(done.get(one.name) or _not_sent(one) for one in planned),
    )


class _Clients:
    """The threads of a cell and what they bring back."""

    def __init__(self, engine: Engine, planned: Sequence[Planned], arm: Arm) -> None:
        self._engine = engine
        self._arm = arm
        self._next: Iterator[Planned] = iter(planned)
        self._count = len(planned)
        self._lock = threading.Lock()
        self._limit = Limit(engine)
        self._under_way = 0
        self._began = 0.0
        self.records: list[RequestRecord] = []
        self.peak = 0
        self.wall_s = 0.0

    def run(self, concurrency: int, limit_s: float, grace_s: float) -> bool:
        """Whether the limit was reached."""
        threads = [
            threading.Thread(target=self._serve, name=f"client-{number}", daemon=True)
            for number in range(min(concurrency, self._count))
        ]
        self._began = time.perf_counter()
        for thread in threads:
            thread.start()
        _join(threads, self._began + limit_s)
        cut = any(thread.is_alive() for thread in threads)
        if cut:
            self._limit.come()
            _join(threads, time.perf_counter() + grace_s)
        self.wall_s = time.perf_counter() - self._began
        if any(thread.is_alive() for thread in threads):
            raise EvalError(
                f"The engine has not ended what was cancelled {grace_s:.0f} s ago: it hangs, or "
                "one of its steps takes longer than that"
            )
        return cut

    def _serve(self) -> None:
        while not self._limit.over:
            with self._lock:
                planned = next(self._next, None)
                if planned is None:
                    return
                self._under_way += 1
                self.peak = max(self.peak, self._under_way)
            record = Visit(self._engine, planned, self._arm.order, self._limit).run(self._began)
            with self._lock:
                self._under_way -= 1
                self.records.append(record)


def _join(threads: Sequence[threading.Thread], until: float) -> None:
    for thread in threads:
        thread.join(max(until - time.perf_counter(), 0.0))


def _not_sent(planned: Planned) -> RequestRecord:
    return RequestRecord(
        planned.name, planned.kind, planned.tokens, planned.again, status="not sent"
    )


def _difference(before: EngineCounters, after: EngineCounters) -> dict[str, float]:
    found: dict[str, float] = {
        name: getattr(after, name) - getattr(before, name) for name in _COUNTED
    }
    for kind, count in after.lost.items():
        found[f"lost_{kind}"] = count - before.lost.get(kind, 0)
    return found | {"pages_used": after.pages_used, "pages_total": after.pages_total}
