"""Opens the context of a request, once all that it is to see has KV."""

from __future__ import annotations

from backend.context_plan import ContextPlan
from backend.lookup import PromptLookup
from backend.runner import Runner
from backend.sequence import Sequence
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS


def open_context(
    sequence: Sequence,
    plan: ContextPlan,
    runner: Runner,
    store: KVStore,
    *,
    guessed: int | None = None,
    extra: int = 0,
) -> None:
    """Give the request its context, with room for prompt, answer and `extra` tokens, and its
    guesses of `guessed` tokens (None: the best for the device)."""
    table = plan.table(store)
    request = sequence.request
    room = sequence.room_left + extra
    context = runner.open_context(plan.sinks, plan.anchor_places(store), table, room)
    sequence.context = context
    evidence = (
        token
        for first, last in plan.evidence
        for token in plan.reading.document.token_ids[first:last]
    )
    seen = (*evidence, *request.prompt_ids)
    sequence.lookup = PromptLookup(seen, runner.guessed if guessed is None else guessed)
    sequence.context_tokens = context.length - request.sink_len
    sequence.cached_tokens = max(context.length - sequence.read_tokens, 0)


def demand(sequence: Sequence, plan: ContextPlan) -> tuple[int, int]:
    """(tokens that the context sees, tokens that may be appended). Evidence is counted as if each
    of its ranges began and ended inside a page."""
    evidence = sum(last - first + 2 * PAGE_TOKENS for first, last in plan.evidence)
    return len(plan.sinks) + len(plan.anchors) + evidence, sequence.room_left
