"""Log-probabilities of a given continuation, for measuring answers. It knows no requests."""

from __future__ import annotations

from collections.abc import Sequence

from backend.runner import AnyContext, Runner


def score_continuation(
    runner: Runner,
    context: AnyContext,
    prompt: Sequence[int],
    continuation: Sequence[int],
    chunk: int,
) -> tuple[float, ...]:
    """Of the continuation's tokens after the context and the prompt, which are appended to the
    context in steps of at most `chunk` tokens."""
    rest = (*prompt, *continuation)
    scores: list[float] = []
    for start in range(0, len(rest) - 1, chunk):
        ids = rest[start : min(start + chunk, len(rest) - 1)]
        hidden = runner.extend([context], [ids])[0]
        first = max(len(prompt) - 1 - start, 0)
        if first < len(ids):
            targets = rest[start + first + 1 : start + len(ids) + 1]
            scores += runner.log_probabilities(hidden[first:], targets)
    return tuple(scores)
