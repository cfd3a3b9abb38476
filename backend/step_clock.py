"""Times what the engine's thread does: for each request when it was admitted, read for and
answered, token by token, and how long the steps take, by kind.

Everything that happens to a request is noted, which takes some microseconds a step. How long a step
took is measured on a CPU for every step, by the clock; on a GPU by CUDA events around one step in
`every`, which nobody waits for: they are looked at when they are over. A step that was left (see
`backend.step_watch`) counts as none. Knows no tensors.
"""

from __future__ import annotations

import threading
import time
import weakref
from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

import torch

from backend.batch import Batch, Prefill, ReadBlocks
from backend.sequence import Sequence as Request
from backend.step_times import RequestSteps, StepHistogram, StepKind, StepRange, StepTimes
from backend.step_watch import StepLeft

BOUNDS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds of the histograms."""
KEPT = 512
"""Requests whose steps are remembered; of those that are over the oldest is forgotten first, those
that go on are not."""
MOST_RANGES = 256
MOST_TOKENS = 4096
"""Of one request; what comes after them is counted in the histograms only."""
KINDS: tuple[StepKind, ...] = ("gather", "read", "prefill", "decode")


class StepClock:
    """Owned by the engine's thread; `of` and `times` may be asked from any.

    `every`: measure one step in so many of each kind, 0 none; None is every step on a CPU and none
    on a GPU, where the events have not been tried yet.
    """

    def __init__(self, device: torch.device, every: int | None = None) -> None:
        self._on_gpu = device.type == "cuda"
        self._every = (0 if self._on_gpu else 1) if every is None else every
        self._counted = dict.fromkeys(KINDS, 0)
        self._lasting = {kind: _Histogram() for kind in KINDS}
        self._between = _Histogram()
        self._requests: dict[str, _Steps] = {}
        self._lock = threading.Lock()
        self._open: deque[_Events] = deque()

    @contextmanager
    def step(self, batch: Batch) -> Iterator[None]:
        """Around the run of a batch."""
        kind, requests = _parts(batch)
        with self._timed(kind, requests):
            yield
        now = time.perf_counter()
        for request in requests:
            steps = self._steps(request)
            if kind == "read":
                steps.read_done = now
            elif len(request.tokens) > steps.generated:
                self._token(steps, now, len(request.tokens))

    @contextmanager
    def gather(self, request: Request) -> Iterator[None]:
        """Around the opening of a request's context."""
        with self._timed("gather", (request,)):
            yield
        steps = self._steps(request)
        steps.admitted = steps.admitted or time.perf_counter()
        # An answer that is made again comes under the id of the first one.
        steps.generated = 0

    def of(self, request_id: str) -> RequestSteps | None:
        """What happened to a request; None for one that is not known (any more)."""
        self._collect()
        steps = self._requests.get(request_id)
        return None if steps is None else steps.told()

    def times(self) -> StepTimes:
        """What was measured since the engine opened."""
        self._collect()
        return StepTimes(
            {kind: one.told() for kind, one in self._lasting.items()}, self._between.told()
        )

    @contextmanager
    def _timed(self, kind: StepKind, requests: Sequence[Request]) -> Iterator[None]:
        due = self._every > 0 and self._counted[kind] % self._every == 0
        self._counted[kind] += 1
        started = time.perf_counter()
        for request in requests:
            steps = self._steps(request)
            if kind == "read":
                steps.read_begun(started)
        ids = tuple(request.request.request_id for request in requests)
        events = _Events(kind, started, ids) if due and self._on_gpu else None
        try:
            yield
        except StepLeft:
            due, events = False, None
            raise
        finally:
            if events is not None:
                events.end.record()
                with self._lock:
                    self._open.append(events)
                self._collect()
            elif due:
                self._note(StepRange(kind, started, time.perf_counter() - started), ids)

    def _token(self, steps: _Steps, now: float, generated: int) -> None:
        if steps.generated:
            self._between.add(now - steps.last_token)
        steps.generated, steps.last_token = generated, now
        if len(steps.tokens) < MOST_TOKENS:
            steps.tokens.append(now)

    def _note(self, step: StepRange, request_ids: Sequence[str]) -> None:
        self._lasting[step.kind].add(step.seconds)
        for request_id in request_ids:
            steps = self._requests.get(request_id)
            if steps is not None and len(steps.ranges) < MOST_RANGES:
                steps.ranges.append(step)

    def _collect(self) -> None:
        """Take what the device has told by now. Waits for nothing."""
        if not self._open:
            return
        with self._lock:
            while self._open and self._open[0].end.query():
                events = self._open.popleft()
                seconds = events.start.elapsed_time(events.end) / 1000
                self._note(StepRange(events.kind, events.started, seconds), events.request_ids)

    def _steps(self, request: Request) -> _Steps:
        request_id = request.request.request_id
        steps = self._requests.get(request_id)
        if steps is None:
            self._make_room()
            steps = self._requests[request_id] = _Steps(request)
        elif steps.request() is not request:
            steps.request = weakref.ref(request)
        return steps

    def _make_room(self) -> None:
        surplus = len(self._requests) - KEPT + 1
        if surplus > 0:
            over = (request_id for request_id, steps in self._requests.items() if steps.over)
            for request_id in tuple(islice(over, surplus)):
                del self._requests[request_id]


class _Steps:
    """What is known of one request, in seconds of `time.perf_counter`; 0 where it has not come to
    that."""

    __slots__ = (
        "admitted", "first_read", "generated", "last_token", "ranges", "read_done", "request",
        "request_id", "tokens",
    )  # fmt: skip

    def __init__(self, request: Request) -> None:
        self.request_id = request.request.request_id
        # Weak: the clock keeps nobody's tokens.
        self.request = weakref.ref(request)
        self.first_read = self.read_done = self.admitted = self.last_token = 0.0
        self.generated = 0
        self.ranges: list[StepRange] = []
        self.tokens = array("d")

    @property
    def over(self) -> bool:
        """Nothing happens to it any more, unless it is made again."""
        request = self.request()
        return request is None or request.finished

    def read_begun(self, now: float) -> None:
        self.first_read = self.first_read or now

    def told(self) -> RequestSteps:
        tokens = tuple(self.tokens)
        marks = (
            ("read_begun", self.first_read),
            ("read_done", self.read_done),
            ("admitted", self.admitted),
            ("first_token", tokens[0] if tokens else 0.0),
            ("last_token", self.last_token),
        )
        known = tuple((name, at) for name, at in marks if at)
        return RequestSteps(self.request_id, known, tuple(self.ranges), tokens)


class _Histogram:
    """Counts by upper bound, the last one for what is beyond them."""

    __slots__ = ("_counts", "_sum")

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS_S) + 1)
        self._sum = 0.0

    def add(self, seconds: float) -> None:
        self._counts[bisect_left(BOUNDS_S, seconds)] += 1
        self._sum += seconds

    def told(self) -> StepHistogram:
        return StepHistogram(BOUNDS_S, tuple(self._counts), self._sum)


class _Events:
    """A step that the device may still be running."""

    __slots__ = ("end", "kind", "request_ids", "start", "started")

    def __init__(self, kind: StepKind, started: float, request_ids: tuple[str, ...]) -> None:
        self.kind = kind
        self.started = started
        self.request_ids = request_ids
        self.start = torch.cuda.Event(enable_timing=True)
        self.end = torch.cuda.Event(enable_timing=True)
        self.start.record()


def _parts(batch: Batch) -> tuple[StepKind, tuple[Request, ...]]:
    if isinstance(batch, ReadBlocks):
        return "read", () if batch.asker is None else (batch.asker,)
    if isinstance(batch, Prefill):
        return "prefill", (batch.sequence,)
    return "decode", batch.sequences
