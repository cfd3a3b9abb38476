"""One request on its way through the engine: the only value here that changes."""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence as SequenceOf

import torch

from backend.admission import Place
from backend.context import Context
from backend.detokenizer import IncrementalDecoder
from backend.drawing import Draw
from backend.latent_context import LatentContext
from backend.lookup import PromptLookup
from backend.paged.arena import PagedContext
from backend.repetition import is_looping
from backend.sampler import Sampler
from backend.stop import StopMatcher
from backend.tokenizer import Tokenizer
from backend.types import EngineTimings, FinishReason, Request, TokenEvent, Usage


class Sequence:
    """State of a request: waiting, then filling its context, then decoding, then finished.

    Owned by the engine's thread; only `events` is read elsewhere.
    """

    def __init__(self, request: Request, tokenizer: Tokenizer, eos_ids: SequenceOf[int]) -> None:
        """Raises InvalidSampling."""
        self.request = request
        # In the queue, while it stands there.
        self.place: Place | None = None
        self.events: queue.SimpleQueue[TokenEvent] = queue.SimpleQueue()
        self.context: Context | LatentContext | PagedContext | None = None
        self.filled = request.sink_len
        self.tokens: list[int] = []
        self.finished = False
        self.cancelled = False
        self.context_tokens = 0
        self.cached_tokens = 0
        self.read_tokens = 0
        # Order among all that came, and tokens of the steps that were for it before its first own.
        self.arrival = 0
        self.spent = 0
        self.lookup: PromptLookup | None = None
        self._sampler = Sampler(request.sampling)
        self._decoder = IncrementalDecoder(tokenizer)
        self._stopper = StopMatcher(request.sampling.stop)
        self._eos_ids = frozenset(eos_ids)
        self._arrived = time.perf_counter()
        self._started: float | None = None
        self._first_token: float | None = None
        self._logprob: float | None = None
        self._best: tuple[tuple[int, float], ...] = ()

    @property
    def prompt_left(self) -> int:
        """Prompt tokens that are not in the context yet."""
        return len(self.request.prompt_ids) - self.filled

    @property
    def room_left(self) -> int:
        """Tokens that its context may still grow by."""
        return self.prompt_left + self.request.sampling.max_tokens - len(self.tokens)

    def guess(self) -> list[int]:
        """Tokens that may come next; none where a guess could change the answer or is too late."""
        sampling = self.request.sampling
        if self.lookup is None or sampling.temperature or sampling.repetition_penalty != 1.0:
            return []
        return self.lookup.guess()[: sampling.max_tokens - len(self.tokens) - 1]

    def start(self) -> None:
        """Work on this request begins (time in the queue ends)."""
        if self._started is None:
            self._started = time.perf_counter()

    @property
    def usage(self) -> Usage:
        """The tokens of this request so far. May be asked for from any thread."""
        return Usage(
            prompt_tokens=self.context_tokens + len(self.request.prompt_ids),
            cached_tokens=self.cached_tokens,
            read_tokens=self.read_tokens,
            completion_tokens=len(self.tokens),
        )

    @property
    def timings(self) -> EngineTimings:
        """Its times until now. May be asked for from any thread."""
        now = time.perf_counter()
        started = self._started or now
        first = self._first_token or now
        return EngineTimings(
            queue_ms=(started - self._arrived) * 1e3,
            prefill_ms=(first - started) * 1e3,
            ttft_ms=(first - self._arrived) * 1e3,
            decode_ms=(now - first) * 1e3,
        )

    def leave_queue(self) -> None:
        """It waits for its context no more; harmless the second time."""
        if self.place is not None:
            self.place.give_back()

    def draw(self) -> Draw | None:
        """How a device may draw the next token; None where the host has to choose it."""
        return None if self._banned() else self._sampler.draw()

    def accept(
        self,
        logits: torch.Tensor,
        best: tuple[int, float] | None = None,
        drawn: tuple[int, float] | None = None,
    ) -> None:
        """Choose the next token from logits [vocab] and emit its event, the last one if it ends
        the answer. `best`: the likeliest token and its log-probability, where they are known;
        `drawn`: those of the token that was drawn as `draw` said."""
        sampling = self.request.sampling
        short = len(self.tokens) < sampling.min_tokens
        banned = self._banned()
        if best is not None and self._sampler.takes_best and not banned:
            token, logprob = self._sampler.check(best)
        elif drawn is not None:
            token, logprob = self._sampler.take(drawn)
        else:
            token, logprob = self._sampler.next(logits, self.tokens, banned)
        if sampling.logprobs is not None:
            self._logprob, self._best = logprob, self._sampler.best(logits)
        if self._first_token is None:
            self._first_token = time.perf_counter()
        if token in self._eos_ids and not sampling.ignore_eos:
            self._emit_last(token, "stop", self._decoder.flush())
            return
        self.tokens.append(token)
        if self.lookup is not None:
            self.lookup.add(token)
        text, stopped = self._stopper.push(self._decoder.push(token))
        if stopped:
            self._finish(token, text, "stop")
        elif len(self.tokens) >= sampling.max_tokens:
            self._emit_last(token, "length", self._decoder.flush(), text)
        elif not (short or sampling.ignore_eos) and is_looping(self.tokens):
            self._emit_last(token, "repetition", self._decoder.flush(), text)
        else:
            self._put(token, text)

    def fail(self, error: str) -> None:
        """End with an error."""
        if not self.finished:
            self._finish(None, "", "error", error)

    def cancel(self) -> None:
        """End because the asker went away."""
        if not self.finished:
            self._finish(None, "", "cancelled")

    def _banned(self) -> tuple[int, ...]:
        """Tokens that would end the answer too early."""
        sampling = self.request.sampling
        short = len(self.tokens) < sampling.min_tokens
        return tuple(self._eos_ids) if short and not sampling.ignore_eos else ()

    def _emit_last(self, token: int, reason: FinishReason, rest: str, text: str = "") -> None:
        more, stopped = self._stopper.push(rest)
        held = "" if stopped else self._stopper.flush()
        self._finish(token, text + more + held, "stop" if stopped else reason)

    def _put(self, token: int, text: str) -> None:
        index = len(self.tokens) - 1
        self.events.put(
            TokenEvent(
                self.request.request_id,
                index,
                token,
                text,
                logprob=self._logprob,
                best=self._best,
            )
        )

    def _finish(self, token: int | None, text: str, reason: FinishReason, error: str = "") -> None:
        self.finished = True
        self.leave_queue()
        if self.context is not None:
            self.context.close()
        self.context = None
        self.events.put(
            TokenEvent(
                request_id=self.request.request_id,
                index=max(len(self.tokens) - 1, 0),
                token_id=token,
                text=text,
                finish_reason=reason,
                usage=self.usage,
                timings=self.timings,
                error=error,
                logprob=None if token is None else self._logprob,
                best=() if token is None else self._best,
            )
        )
