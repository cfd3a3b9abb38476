"""Chooses the next token of one request from its logits. It knows no model and no batch."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from backend.drawing import FIRST_LOOK, Draw
from backend.errors import BackendError, InvalidSampling
from backend.types import SamplingParams

MOST_LOGPROBS = 20
"""Best tokens that an event can tell of, as in OpenAI's API."""
_NOT_NUMBERS = (
    "The model gave logits that are not numbers. Check the weights, or use a wider precision."
)


def validate_sampling(params: SamplingParams) -> None:
    """Raise InvalidSampling, naming the parameter and its range."""
    if params.max_tokens < 1:
        raise InvalidSampling(f"max_tokens must be at least 1, not {params.max_tokens}")
    if not (math.isfinite(params.temperature) and params.temperature >= 0):
        raise InvalidSampling(f"temperature must be 0 (greedy) or more, not {params.temperature}")
    if not 0 < params.top_p <= 1:
        raise InvalidSampling(f"top_p must be above 0 and at most 1, not {params.top_p}")
    if params.top_k < 0:
        raise InvalidSampling(f"top_k must be 0 (off) or more, not {params.top_k}")
    if not (math.isfinite(params.repetition_penalty) and params.repetition_penalty > 0):
        problem = f"must be above 0 (1 is off), not {params.repetition_penalty}"
        raise InvalidSampling(f"repetition_penalty {problem}")
    if not 0 <= params.min_tokens <= params.max_tokens:
        raise InvalidSampling(
            f"min_tokens must be between 0 and max_tokens ({params.max_tokens}), not "
            f"{params.min_tokens}"
        )
    if params.logprobs is not None and not 0 <= params.logprobs <= MOST_LOGPROBS:
        raise InvalidSampling(
            f"logprobs must be between 0 and {MOST_LOGPROBS}, not {params.logprobs}"
        )
    if params.seed is not None and not -(2**63) <= params.seed < 2**63:
        raise InvalidSampling(f"seed must fit in 64 bits, not {params.seed}")
    if any(stop == "" for stop in params.stop):
        raise InvalidSampling("stop holds an empty string; leave it out")


class Sampler:
    """One request's sampler, with its own random numbers: the same seed and logits give the same
    tokens whatever runs beside it. On a GPU other kernels may serve larger steps, so that logits
    are the same up to rounding.

    Order: repetition penalty, temperature, top-k, top-p (of what top-k left).
    """

    def __init__(self, params: SamplingParams) -> None:
        """Raises InvalidSampling."""
        validate_sampling(params)
        self._params = params
        self._random = torch.Generator(device="cpu")
        if params.seed is None:
            self._random.seed()
        else:
            self._random.manual_seed(params.seed)
        # Where in the distribution the next token lies, if that is known already.
        self._point: float | None = None

    @property
    def takes_best(self) -> bool:
        """Whether the likeliest token is always chosen, so that no logits need be looked at."""
        return self._params.temperature == 0 and self._params.repetition_penalty == 1.0

    def check(self, best: tuple[int, float]) -> tuple[int, float]:
        """The likeliest token and its log-probability. Raises BackendError when that is NaN: the
        logits were."""
        if not math.isfinite(best[1]):
            raise BackendError(_NOT_NUMBERS)
        return best

    def draw(self) -> Draw | None:
        """How a device may draw the next token; None where `next` has to choose it. Asked again
        before there is a token it says the same."""
        params = self._params
        if params.temperature == 0 or params.repetition_penalty != 1.0 or params.top_k > FIRST_LOOK:
            return None
        if self._point is None:
            self._point = self._next_point()
        return Draw(params.temperature, params.top_k, params.top_p, self._point)

    def take(self, drawn: tuple[int, float]) -> tuple[int, float]:
        """The token that a device drew as `draw` said, and its log-probability. Raises BackendError
        when that is no number: the logits were none."""
        self._point = None
        return self.check(drawn)

    def next(
        self, logits: torch.Tensor, history: Sequence[int], banned: Sequence[int] = ()
    ) -> tuple[int, float]:
        """(token, its log-probability under the model, before penalty, temperature and cuts).

        `logits` is [vocab], left unchanged. `history` holds the tokens that the repetition penalty
        applies to; `banned` ones are not chosen. Raises BackendError when the logits hold NaN.
        """
        scores = logits.detach().float()
        total = torch.logsumexp(scores, dim=0)
        if not torch.isfinite(total):
            raise BackendError(_NOT_NUMBERS)
        allowed = self._penalised(scores, history)
        if banned:
            places = torch.tensor(tuple(banned), device=scores.device)
            allowed = allowed.index_fill(0, places, -math.inf)
        chosen = self._choose(allowed)
        return chosen, float(scores[chosen] - total)

    def best(self, logits: torch.Tensor) -> tuple[tuple[int, float], ...]:
        """The tokens with the highest log-probabilities under the model, as many as were asked
        for."""
        count = min(self._params.logprobs or 0, len(logits))
        if count == 0:
            return ()
        scores, ids = logits.detach().float().log_softmax(0).topk(count)
        return tuple(zip(ids.tolist(), scores.tolist(), strict=True))

    def _penalised(self, scores: torch.Tensor, history: Sequence[int]) -> torch.Tensor:
        """As in transformers: a token's score is pushed down once, however often it occurred."""
        penalty = self._params.repetition_penalty
        if penalty == 1.0 or not history:
            return scores
        seen = torch.tensor(sorted(set(history)), device=scores.device)
        old = scores[seen]
        return scores.index_put((seen,), torch.where(old > 0, old / penalty, old * penalty))

    def _choose(self, scores: torch.Tensor) -> int:
        if self._params.temperature == 0:
            return int(scores.argmax())
        # The best score becomes 0 first, so that a tiny temperature can't overflow.
        scaled = (scores.double() - scores.max()) / self._params.temperature
        probabilities, ids = self._cut(scaled)
        cumulative = probabilities.cpu().cumsum(0)
        point = self._next_point() if self._point is None else self._point
        self._point = None
        place = int(torch.searchsorted(cumulative, point * cumulative[-1], right=True))
        place = min(place, len(cumulative) - 1)
        return place if ids is None else int(ids[place])

    def _next_point(self) -> float:
        return float(torch.rand((), generator=self._random, dtype=torch.float64))

    def _cut(self, scaled: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(probabilities up to a factor, their token ids or None for all in order)."""
        vocab, top_k, top_p = len(scaled), self._params.top_k, self._params.top_p
        if 0 < top_k < vocab:
            best, ids = scaled.topk(top_k)
            weights = best.exp()
            return self._nucleus(weights, ids, float(weights.sum()) * top_p)
        weights = scaled.exp()
        if top_p == 1.0:
            return weights, None
        wanted = float(weights.sum()) * top_p
        best, ids = weights.topk(min(FIRST_LOOK, vocab))
        if float(best.sum()) < wanted:
            best, ids = weights.sort(descending=True)
        return self._nucleus(best, ids, wanted)

    def _nucleus(
        self, weights: torch.Tensor, ids: torch.Tensor, wanted: float
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The fewest best tokens that together weigh at least `wanted`; `weights` descend."""
        if self._params.top_p == 1.0:
            return weights, ids
        before = weights.cumsum(0) - weights
        keep = max(1, int((before < wanted).sum()))
        return weights[:keep], ids[:keep]
