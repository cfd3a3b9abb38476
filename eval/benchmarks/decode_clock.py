"""Times decoding of sequences that run at the same time.

The engine starts them one after the other, so those that began first are ahead. Time runs from the
moment at which the last of them has its first token, and stops when each has made the wanted number
of tokens since; the requests are then cancelled. It knows nothing of how the engine schedules.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from backend.engine import Engine
from backend.errors import BackendError
from backend.types import Request, TokenEvent
from eval.errors import EvalError

_LOOK_S = 0.005


@dataclass(frozen=True, slots=True)
class DecodeTime:
    """`tokens` of all sequences in `seconds`, at a mean context of `context` tokens."""

    seconds: float
    tokens: int
    sequences: int
    context: float

    @property
    def tokens_per_s(self) -> float:
        """Of all sequences together."""
        return self.tokens / self.seconds

    @property
    def ms_per_token(self) -> float:
        """From one token of a sequence to its next."""
        return self.seconds * 1e3 * self.sequences / self.tokens


class _Follower(threading.Thread):
    """Takes the events of one request and notes when they came."""

    def __init__(self, engine: Engine, request: Request) -> None:
        super().__init__(name=request.request_id, daemon=True)
        self.times: list[float] = []
        self.last: TokenEvent | None = None
        self.error: BackendError | None = None
        self._stream = engine.generate(request)

    def run(self) -> None:
        try:
            for event in self._stream:
                if event.token_id is not None:
                    self.times.append(time.perf_counter())
                self.last = event
        except BackendError as error:
            self.error = error

    @property
    def over(self) -> bool:
        return self.error is not None or (
            self.last is not None and self.last.finish_reason is not None
        )


def decode_together(engine: Engine, requests: Sequence[Request], tokens: int) -> DecodeTime:
    """Run the requests at once. Raises EvalError when one ends before all have made `tokens`
    tokens together, and BackendError when one fails."""
    followers = [_Follower(engine, request) for request in requests]
    for follower in followers:
        follower.start()
    try:
        while not all(follower.over for follower in followers):
            if all(follower.times for follower in followers):
                began = max(follower.times[0] for follower in followers)
                if all(_since(follower.times, began) >= tokens for follower in followers):
                    break
            time.sleep(_LOOK_S)
    finally:
        for request in requests:
            engine.cancel(request.request_id)
        for follower in followers:
            follower.join()
    return _evaluate(followers, tokens)


def _evaluate(followers: Sequence[_Follower], tokens: int) -> DecodeTime:
    for follower in followers:
        if follower.error is not None:
            raise follower.error
        if follower.last is not None and follower.last.error:
            raise BackendError(f"{follower.name} failed: {follower.last.error}")
    if not all(follower.times for follower in followers):
        raise EvalError("A sequence was over before another had begun: ask for fewer --tokens")
    began = max(follower.times[0] for follower in followers)
    skipped = [bisect_right(follower.times, began) for follower in followers]
    for follower, first in zip(followers, skipped, strict=True):
        if len(follower.times) - first < tokens:
            raise EvalError(
                f"{follower.name} made only {len(follower.times) - first} of {tokens} tokens while "
                "all sequences ran: ask for fewer --tokens or smaller --batch"
            )
    # All in step: what any of them made before the slowest was done counts.
    ended = max(f.times[first + tokens - 1] for f, first in zip(followers, skipped, strict=True))
    made = [_since(follower.times, began, ended) for follower in followers]
    contexts = [
        _start_context(follower) + first + count / 2
        for follower, first, count in zip(followers, skipped, made, strict=True)
    ]
    return DecodeTime(ended - began, sum(made), len(followers), sum(contexts) / len(contexts))


def _start_context(follower: _Follower) -> int:
    """Tokens that the sequence attended to before its answer began."""
    if follower.last is None or follower.last.usage is None:
        raise BackendError(f"{follower.name} ended without an account")
    return follower.last.usage.prompt_tokens


def _since(times: Sequence[float], began: float, ended: float | None = None) -> int:
    """How many of the ascending `times` lie after `began` (and not after `ended`)."""
    last = len(times) if ended is None else bisect_right(times, ended)
    return last - bisect_right(times, began)
