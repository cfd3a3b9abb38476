"""The two requests that one answer may take: their ids, and their account added up."""

from __future__ import annotations

from backend.types import EngineTimings, Usage


def request_ids(answer_id: str) -> tuple[str, str]:
    """Under which the engine knows the first and the second attempt at an answer."""
    return answer_id, f"{answer_id}-again"


def both(one: Usage | None, other: Usage | None) -> Usage | None:
    """Tokens of both attempts; None when neither has an account."""
    if one is None or other is None:
        return other or one
    return Usage(
        one.prompt_tokens + other.prompt_tokens,
        one.cached_tokens + other.cached_tokens,
        one.read_tokens + other.read_tokens,
        one.completion_tokens + other.completion_tokens,
    )


def spent(one: EngineTimings | None, other: EngineTimings | None) -> EngineTimings | None:
    """Times of both attempts; the first token is the first attempt's."""
    if one is None or other is None:
        return other or one
    return EngineTimings(
        one.queue_ms + other.queue_ms,
        one.prefill_ms + other.prefill_ms,
        one.ttft_ms,
        one.decode_ms + other.decode_ms,
    )
