"""What our engine writes after a prompt, as a reply with its times and counts.

Knows neither how the prompt came about nor whether the words are any good.
"""

from __future__ import annotations

import time
from contextlib import closing
from itertools import count
from typing import TYPE_CHECKING

from app.prompt import STOPS, PromptPlan
from backend.errors import BackendError
from backend.types import Request, SamplingParams, TokenEvent
from eval.runs.free_text import is_refusal
from eval.types import Reply, ReplyTimings, ReplyUsage

if TYPE_CHECKING:
    from backend.engine import Engine

_numbers = count(1)


def request_number() -> int:
    """A number that no other request of this process has."""
    return next(_numbers)


def written(engine: Engine, plan: PromptPlan, max_tokens: int, started: float) -> Reply:
    """What the model writes after a prompt, greedily. `started`: arrival of the question, by
    `time.perf_counter`. Raises BackendError."""
    request = Request(
        request_id=f"eval-{request_number()}",
        prompt_ids=plan.prompt_ids,
        sampling=SamplingParams(max_tokens=max_tokens, stop=STOPS),
        document_key=plan.document_key,
        evidence=plan.evidence,
        sink_len=plan.sink_len,
    )
    text, first, last = "", None, None
    with closing(engine.generate(request)) as events:
        for event in events:
            if event.text and first is None:
                first = 1000 * (time.perf_counter() - started)
            text += event.text
            last = event
    total = 1000 * (time.perf_counter() - started)
    return _reply_of(text.strip(), first, total, last)


def _reply_of(text: str, first: float | None, total: float, last: TokenEvent | None) -> Reply:
    if last is None or last.usage is None or last.timings is None:
        raise BackendError("The engine's stream ended without an account")
    if last.finish_reason == "error":
        raise BackendError(last.error or "The engine stopped with an error")
    refused = is_refusal(text)
    return Reply(
        status="not_found" if refused else "answered",
        shown=text,
        prediction="" if refused else text,
        timings=ReplyTimings(
            first, total, queue_ms=last.timings.queue_ms, decode_ms=last.timings.decode_ms
        ),
        claims=text,
        finish_reason=last.finish_reason or "",
        usage=ReplyUsage(
            prompt_tokens=last.usage.prompt_tokens,
            cached_tokens=last.usage.cached_tokens,
            read_tokens=last.usage.read_tokens,
            completion_tokens=last.usage.completion_tokens,
        ),
    )
