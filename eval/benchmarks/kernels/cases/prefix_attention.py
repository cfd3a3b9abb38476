"""Attention of new tokens on a prefix and causally on each other: reading a block, a question, and
a whole document as dense reading does."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from backend.ops.prefix_attention import Implementation, prefix_attention
from eval.benchmarks.kernels.case import Case, Contender, ModelShape, Setup, name_of, size_of
from eval.benchmarks.kernels.peers import causal_peers

_TIMED = {
    # new tokens, prefix: a block on its sinks, a question on its evidence, dense.
    "cpu": ((512, 64), (48, 1600), (2048, 0), (4096, 0)),
    "cuda": ((4096, 64), (48, 1600), (4096, 0), (8192, 0)),
}
_ODD = ((1, 1000), (63, 0), (111, 17), (1000, 63))
_DTYPES = {"cpu": (torch.float32, torch.bfloat16), "cuda": (torch.bfloat16, torch.float16)}
_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}
_OURS: tuple[Implementation, ...] = ("tiled", "fused")


def cases(setup: Setup) -> Iterator[Case]:
    """See the package."""
    kind = setup.device.type
    for shape in setup.shapes:
        for dtype in _DTYPES[kind]:
            for new, prefix in _ODD:
                yield _case(setup, shape, dtype, new, prefix, timed=False)
        timed = _DTYPES[kind][-1] if kind == "cpu" else _DTYPES[kind][0]
        for new, prefix in _TIMED[kind]:
            yield _case(setup, shape, timed, new, prefix, timed=True)


def _case(
    setup: Setup, shape: ModelShape, dtype: torch.dtype, new: int, prefix: int, *, timed: bool
) -> Case:
    generator = setup.generator(shape.heads, shape.head_dim, new, prefix, dtype.itemsize)
    length, width = prefix + new, shape.head_dim
    q = setup.normal(generator, shape.kv_heads, shape.group, new, width, dtype=dtype)
    k = setup.normal(generator, shape.kv_heads, length, width, dtype=dtype)
    v = setup.normal(generator, shape.kv_heads, length, width, dtype=dtype)
    moved, gemm = size_of(q, q, k, v), name_of(dtype)
    ours = [
        Contender(impl, partial(prefix_attention, q, k, v, impl=impl), moved, gemm)
        for impl in _OURS
    ]
    peers = causal_peers(q, k, v, moved, gemm) if timed else ()
    pairs = new * prefix + new * (new + 1) // 2
    return Case(
        op="prefix_attention",
        shape=f"{shape.label}, {new:,} new on {prefix:,}",
        dtype=gemm,
        reference=lambda: prefix_attention(q, k, v, impl="reference"),
        contenders=(*ours, *peers),
        flops=4.0 * shape.heads * width * pairs,
        tolerance=_TOLERANCE[dtype],
        timed=timed,
    )
