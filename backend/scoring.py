"""Log-probabilities of a given continuation, for measuring answers. It knows no requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Self

from backend.runner import AnyContext, Runner


class Scores(tuple[float, ...]):
    """Log-probabilities (nats), one a token, with what greedy decoding would have said.

    `greedy` tells of each token whether greedy decoding takes it when all tokens before it are as
    given (teacher forcing).
    """

    greedy: tuple[bool, ...]

    def __new__(cls, scored: Iterable[tuple[float, bool]]) -> Self:
        """Of pairs of log-probability and `greedy`."""
        pairs = tuple(scored)
        made = super().__new__(cls, (logprob for logprob, _ in pairs))
        made.greedy = tuple(greedy for _, greedy in pairs)
        return made


def score_continuation(
    runner: Runner,
    context: AnyContext,
    prompt: Sequence[int],
    continuation: Sequence[int],
    chunk: int,
) -> Scores:
    """Of the continuation's tokens after the context and the prompt, which are appended to the
    context in steps of at most `chunk` tokens."""
    rest = (*prompt, *continuation)
    scored: list[tuple[float, bool]] = []
    for start in range(0, len(rest) - 1, chunk):
        ids = rest[start : min(start + chunk, len(rest) - 1)]
        hidden = runner.extend([context], [ids])[0]
        first = max(len(prompt) - 1 - start, 0)
        if first < len(ids):
            targets = rest[start + first + 1 : start + len(ids) + 1]
            scored += runner.log_probabilities(hidden[first:], targets)
    return Scores(scored)
