"""Draws tokens where the logits are, so that the host is told a token instead of all probabilities.

The same arithmetic as `backend.sampler`, in float64 and with the same point of a request's own
random numbers, so the same seed gives the same token on either, but where a point falls within
rounding of the border between two tokens. A row's token has nothing to do with the other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

FIRST_LOOK = 1024
"""Top-p looks at this many best tokens before it sorts the whole vocabulary, which is left to the
host."""


@dataclass(frozen=True, slots=True)
class Draw:
    """How one token is drawn: `top_k` 0 and `top_p` 1 cut nothing, and `top_k` is at most
    `FIRST_LOOK`. `point`, in [0, 1), is where in the cumulative distribution the token lies."""

    temperature: float
    top_k: int
    top_p: float
    point: float

    @property
    def cuts(self) -> bool:
        """Whether the least likely tokens are left out."""
        return self.top_k > 0 or self.top_p < 1.0

    def of(self, vocab: int) -> Draw:
        """The same among so many tokens: a top-k of all of them cuts nothing."""
        return self if self.top_k < vocab else replace(self, top_k=0)


_NOTHING = Draw(1.0, 0, 1.0, 0.0)
"""For a row in which nothing is drawn."""


class Drawer:
    """Draws of one step at a time, on one device."""

    def __init__(self, device: torch.device, rows: int) -> None:
        """`rows`: the most of a step."""
        pinned = device.type == "cuda"
        self._device = device
        self._asked = torch.zeros((rows, 4), dtype=torch.float64, pin_memory=pinned)
        self._told = torch.zeros((rows, 2), dtype=torch.int32, pin_memory=pinned)
        self._draws: Sequence[Draw | None] = ()

    def begin(self, logits: torch.Tensor, draws: Sequence[Draw | None]) -> None:
        """Draw from logits [rows, vocab] in float32. The host waits for nothing; it must have
        waited for the last draws."""
        self._draws = draws
        vocab = logits.shape[1]
        wanted = [(draw or _NOTHING).of(vocab) for draw in draws]
        given = [(one.temperature, one.top_k, one.top_p, one.point) for one in wanted]
        asked = self._asked[: len(given)].copy_(torch.tensor(given, dtype=torch.float64))
        cuts = {one.cuts for one in wanted}
        found = draw_tokens(
            logits,
            asked.to(self._device, non_blocking=True),
            some_cut=True in cuts,
            some_whole=False in cuts,
        )
        self._told[: len(given)].copy_(found, non_blocking=True)

    def told(self) -> list[tuple[int, float] | None]:
        """Each row's token and its log-probability under the model, once the device is done; None
        where nothing was to be drawn, or the host has to."""
        told = self._told[: len(self._draws)]
        tokens, scores = told[:, 0].tolist(), told[:, 1].contiguous().view(torch.float32).tolist()
        return [
            None if draw is None or token < 0 else (token, score)
            for draw, token, score in zip(self._draws, tokens, scores, strict=True)
        ]


def draw_tokens(
    logits: torch.Tensor, asked: torch.Tensor, *, some_cut: bool, some_whole: bool
) -> torch.Tensor:
    """int32 [rows, 2]: token, or -1 where more than `FIRST_LOOK` tokens would be looked at, and the
    bits of its log-probability. `asked` [rows, 4] in float64: a `Draw` each, of which some cut and
    some don't."""
    scores = logits.double()
    temperature, top_k, top_p, point = asked.split(1, 1)
    # The best score becomes 0 first, so that a tiny temperature can't overflow.
    weights = ((scores - scores.amax(1, keepdim=True)) / temperature).exp()
    token = torch.full_like(top_k, -1, dtype=torch.int64)
    if some_whole:
        token = _at(weights, point).clamp_max(logits.shape[1] - 1)
    if some_cut:
        cut = (top_k > 0) | (top_p < 1)
        token = torch.where(cut, _drawn_of_best(weights, top_k, top_p, point), token)
    chosen = logits.gather(1, token.clamp_min(0)) - logits.logsumexp(1, keepdim=True)
    return torch.cat((token.int(), chosen.view(torch.int32)), 1)


def _drawn_of_best(
    weights: torch.Tensor, top_k: torch.Tensor, top_p: torch.Tensor, point: torch.Tensor
) -> torch.Tensor:
    """[rows, 1]: a token of the fewest best that together weigh `top_p` of what `top_k` leaves, or
    -1."""
    best, ids = weights.topk(min(FIRST_LOOK, weights.shape[1]), 1)
    order = torch.arange(best.shape[1], device=best.device)
    few = top_k > 0
    best = best.where(~few | (order < top_k), 0.0)
    looked_at = best.sum(1, keepdim=True)
    wanted = torch.where(few, looked_at, weights.sum(1, keepdim=True)) * top_p
    before = best.cumsum(1) - best
    count = ((before < wanted) | (top_p >= 1)).sum(1, keepdim=True).clamp_min(1)
    count = torch.where(few, count.minimum(top_k), count)
    place = _at(best.where(order < count, 0.0), point).minimum(count - 1)
    return ids.gather(1, place.long()).where(few | (looked_at >= wanted), -1)


def _at(weights: torch.Tensor, point: torch.Tensor) -> torch.Tensor:
    """[rows, 1]: the place at which the cumulative weight passes the point's share of all."""
    cumulative = weights.cumsum(1)
    return torch.searchsorted(cumulative, point * cumulative[:, -1:], right=True)
