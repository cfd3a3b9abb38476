"""Attention of a few new tokens on a buffer that is partly filled: decoding, with and without
guessed tokens. Bound by reading keys and values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from backend.ops.decode_attention import decode_attention
from eval.benchmarks.kernels.case import (
    Case,
    Contender,
    ModelShape,
    Setup,
    copies_to_stream,
    name_of,
    size_of,
)
from eval.benchmarks.kernels.peers import masked_peers

_SPARE = 64
"""Tokens of the buffer that are not filled, as while decoding."""
_TIMED = ((1, 512), (1, 2048), (4, 2048), (1, 8192))
_ODD = ((1, 63), (3, 111), (15, 1000))
_DTYPES = {"cpu": (torch.float32, torch.bfloat16), "cuda": (torch.float16, torch.bfloat16)}
_TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 1e-2, torch.float16: 2e-3}


def cases(setup: Setup) -> Iterator[Case]:
    """See the package."""
    dtypes = _DTYPES[setup.device.type]
    for shape in setup.shapes:
        for dtype in dtypes:
            for new, filled in _ODD:
                yield _case(setup, shape, dtype, new, filled, timed=False)
        for new, filled in _TIMED:
            yield _case(setup, shape, dtypes[-1], new, filled, timed=True)


def _case(
    setup: Setup, shape: ModelShape, dtype: torch.dtype, new: int, filled: int, *, timed: bool
) -> Case:
    generator = setup.generator(shape.heads, shape.head_dim, new, filled, dtype.itemsize, 1)
    capacity, width = filled + _SPARE, shape.head_dim
    q = setup.normal(generator, shape.kv_heads, shape.group, new, width, dtype=dtype)
    k = setup.normal(generator, shape.kv_heads, capacity, width, dtype=dtype)
    v = setup.normal(generator, shape.kv_heads, capacity, width, dtype=dtype)
    hidden = torch.full((new, capacity), float("-inf"), dtype=dtype, device=setup.device)
    hidden = hidden.triu_(filled - new + 1)
    moved, gemm = size_of(q, q) + size_of(k, v) * filled // capacity, name_of(dtype)
    count = copies_to_stream(setup, size_of(k, v)) if timed else 0
    copies = [(k, v), *((k.clone(), v.clone()) for _ in range(count))]
    calls = [partial(decode_attention, q, *kv, hidden, impl="tiled") for kv in copies]
    ours = Contender("batched", calls[0], moved, gemm, others=tuple(calls[1:]))
    peers = masked_peers(q, copies, hidden, moved, gemm) if timed else ()
    pairs = sum(filled - new + 1 + row for row in range(new))
    return Case(
        op="decode_attention",
        shape=f"{shape.label}, {new} new, {filled:,} filled",
        dtype=gemm,
        reference=lambda: decode_attention(q, k, v, hidden, impl="reference"),
        contenders=(ours, *peers),
        flops=4.0 * shape.heads * width * pairs,
        tolerance=_TOLERANCE[dtype],
        timed=timed,
    )
