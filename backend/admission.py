"""What a request must be to be taken in at all, whatever the engine is doing."""

from __future__ import annotations

from backend.errors import RequestTooLarge
from backend.types import Request


def check_request(request: Request, extra: int, max_positions: int) -> None:
    """Raises RequestTooLarge for a prompt that is empty or all sinks, or that needs more positions
    than the model has, together with its evidence, its answer and `extra` tokens."""
    if not request.prompt_ids:
        raise RequestTooLarge("The prompt is empty; give at least one token")
    if not 0 <= request.sink_len < len(request.prompt_ids):
        raise RequestTooLarge(
            f"The first {request.sink_len} of {len(request.prompt_ids)} prompt tokens are to "
            "be sinks; at least one must follow them"
        )
    evidence = sum(last - first for first, last in request.evidence)
    tokens = len(request.prompt_ids) + evidence + extra + request.sampling.max_tokens
    if tokens > max_positions:
        raise RequestTooLarge(
            f"The prompt, its evidence and the answer need {tokens} tokens and the model takes "
            f"{max_positions}: give less evidence or a lower max_tokens"
        )
