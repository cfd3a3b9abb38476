"""Scores of all pages of a document for one decoding query, placed and without rotation, and the
bounds that they need."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from backend.ops.page_attention import page_lists
from backend.ops.page_score import page_bounds, page_score
from eval.benchmarks.kernels.case import Case, Contender, ModelShape, Setup, name_of, size_of
from eval.benchmarks.kernels.rotation import rotation
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

_TOKENS = ((32_768, True), (524_288, True), (700, False))
"""Of the document, and whether they are timed."""
_TOLERANCE = 1e-3


def cases(setup: Setup) -> Iterator[Case]:
    """See the package. On a CPU there is no kernel, so no case."""
    if setup.device.type != "cuda":
        return
    for shape in setup.shapes:
        for tokens, timed in _TOKENS:
            yield from _cases(setup, shape, tokens, timed=timed)


def _cases(setup: Setup, shape: ModelShape, tokens: int, *, timed: bool) -> Iterator[Case]:
    dtype, width = torch.bfloat16, shape.head_dim
    generator = setup.generator(shape.heads, width, tokens)
    count = -(-tokens // PAGE_TOKENS)
    pool = PagePool(KVShape(1, shape.kv_heads, width), count, dtype, setup.device)
    pool.data.normal_(generator=generator)
    sizes = [PAGE_TOKENS] * (count - 1) + [tokens - (count - 1) * PAGE_TOKENS]
    table = PageTable(tuple(PageRef(page, 0, size) for page, size in enumerate(sizes)))
    refs = page_lists([table], [1], setup.device).refs
    bounding = partial(page_bounds, pool.data, 0, refs, width)
    bounds = bounding(impl="triton" if timed else "reference")
    q = setup.normal(generator, 1, shape.heads, width, dtype=dtype)
    cos, sin = rotation(tokens + 1, width, setup.device)
    keys = size_of(pool.data) / 2
    label = f"{shape.label}, {tokens:,} tokens"
    yield Case(
        op="page_score",
        shape=f"{label}, bounds",
        dtype=name_of(dtype),
        reference=partial(bounding, impl="reference"),
        contenders=(Contender("kernel", partial(bounding, impl="triton"), keys, "float32"),),
        flops=2.0 * tokens * shape.kv_heads * width,
        tolerance=_TOLERANCE,
        timed=timed,
    )
    placed = {"refs": refs, "first": tokens, "cos": cos, "sin": sin}
    for name, given, distances in (("free", {}, 1), ("placed", placed, PAGE_TOKENS)):
        call = partial(page_score, q, bounds, **given)  # type: ignore[arg-type]
        yield Case(
            op="page_score",
            shape=f"{label}, {name}",
            dtype=name_of(dtype),
            reference=partial(call, impl="reference"),
            contenders=(
                Contender("kernel", partial(call, impl="triton"), size_of(bounds), "float32"),
            ),
            flops=4.0 * count * shape.heads * width * distances,
            tolerance=_TOLERANCE,
            timed=timed,
        )
