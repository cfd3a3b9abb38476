"""What the engine tells of its own time: values, made by `backend.step_clock`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StepKind = Literal["gather", "read", "prefill", "decode"]
"""`gather`: the context of a request is opened, its pages are brought together; `read`: blocks of a
document; `prefill`: a piece of a prompt; `decode`: one step of all running answers."""


@dataclass(frozen=True, slots=True)
class StepRange:
    """One measured step: when it began (`time.perf_counter`) and how many seconds it took."""

    kind: StepKind
    started: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RequestSteps:
    """What happened to one request, in seconds of `time.perf_counter`. `marks` are (name, moment)
    for as far as it came: `read_begun` and `read_done` of blocks that it needed, `admitted` when
    its context was open, `first_token`, `last_token`. `tokens` are the moments at which one or more
    tokens were there. `ranges` are the steps that it took part in, as far as they were measured."""

    request_id: str
    marks: tuple[tuple[str, float], ...]
    ranges: tuple[StepRange, ...]
    tokens: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class StepHistogram:
    """`counts[i]` durations were over `bounds[i - 1]` and up to `bounds[i]` seconds; the last count
    is of those beyond all bounds. `total` is their sum in seconds."""

    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


@dataclass(frozen=True, slots=True)
class StepTimes:
    """Since the engine opened: measured steps by kind, and the time between two decoding steps of
    one request, of all requests."""

    steps: dict[StepKind, StepHistogram]
    between_tokens: StepHistogram
