"""A step of decoding on KV of any length, dense or a few pages, outside of the engine.

The engine copies what a question attends to, and a model's window ends long before 512K tokens. So
here the step that the engine runs is given lists of pages of one pool: all pages of a document that
several requests share, or some for each. Contents are random numbers; times depend on sizes only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

import torch

from backend.layers.rope import Rope
from backend.paged.arena import Arena, PagedContext
from backend.paged.step import PagedStep
from backend.parts import EngineParts
from eval.errors import EvalError
from kvstore.types import PAGE_TOKENS

Fields = dict[str, object]
_WARM = 3


def decode_steps(
    parts: EngineParts, contexts: Sequence[int], batches: Sequence[int], *, steps: int = 20
) -> list[Fields]:
    """Milliseconds of a step, median of `steps`, for each context length (tokens) and batch.

    With a batch, requests share the first pages where the pool has too few for each its own
    (`shared`). Raises EvalError for a pool that can't hold the longest context.
    """
    pool = parts.store.pool
    longest = max(contexts) // PAGE_TOKENS
    spare = max(batches)
    if longest + spare + 1 > pool.free:
        raise EvalError(f"{longest + spare + 1} pages are needed and {pool.free} free")
    pool.data.normal_()
    arena = Arena(pool, contexts=spare, context_pages=longest + 1)
    step = PagedStep(parts.model, Rope(parts.model.config, parts.model.device), arena)
    found: list[Fields] = []
    for tokens in contexts:
        for batch in batches:
            pages = tokens // PAGE_TOKENS
            shared = batch * (pages + 1) > pool.free
            before = pool.allocate(pages if shared else batch * pages)
            made = []
            for place in range(batch):
                own = before if shared else before[place * pages : (place + 1) * pages]
                row = place + 1
                made.append(PagedContext(arena, row, (*own, *pool.allocate(1)), tokens))
                names = torch.tensor(made[-1].pages, dtype=torch.int32)
                arena.table[row, : len(names), 0] = names.to(arena.table.device)
            found.append(
                {"context": tokens, "batch": batch, "shared": shared} | _time(step, made, steps)
            )
            pool.release(before)
            for context in made:
                pool.release(context.pages[-1:])
    return found


def _time(step: PagedStep, contexts: list[PagedContext], steps: int) -> Fields:
    times = []
    for _ in range(_WARM + steps):
        began = time.perf_counter()
        step.run(contexts, [[7]] * len(contexts))
        times.append((time.perf_counter() - began) * 1e3)
    taken = times[_WARM:]
    return {"ms_per_token": median(taken), "fastest_ms": min(taken), "slowest_ms": max(taken)}
