"""Attention on page lists: decoding and short questions of one request or many. Bound by reading
keys and values; the rotation of the keys is part of it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch
from torch.nn import functional

from backend.layers.rope import rotate
from backend.ops.page_attention import page_attention, page_lists
from eval.benchmarks.kernels.case import Case, Contender, ModelShape, Setup, name_of
from eval.benchmarks.kernels.libraries import library_peers
from eval.benchmarks.kernels.rotation import rotation
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

_TIMED = ((1, 2_048, 1), (16, 2_048, 1), (1, 131_072, 1), (16, 32_768, 1), (1, 2_048, 64))
"""Requests, tokens of each list, query rows of each."""
_ODD = ((3, 111, 1), (2, 700, 5))
_TOLERANCE = {torch.bfloat16: 1e-2, torch.float16: 4e-3, torch.float32: 1e-5}


def cases(setup: Setup) -> Iterator[Case]:
    """See the package. On a CPU there is no kernel, so no case."""
    if setup.device.type != "cuda":
        return
    for shape in setup.shapes:
        for dtype in (torch.float16, torch.bfloat16):
            for requests, tokens, rows in _ODD:
                yield make_case(setup, shape, dtype, requests, tokens, rows, timed=False)
        for requests, tokens, rows in _TIMED:
            yield make_case(setup, shape, torch.bfloat16, requests, tokens, rows, timed=True)


def make_case(
    setup: Setup,
    shape: ModelShape,
    dtype: torch.dtype,
    requests: int,
    tokens: int,
    rows: int,
    *,
    timed: bool,
) -> Case:
    """Lists of so many tokens and query rows each, on pages in any order."""
    generator = setup.generator(shape.heads, shape.head_dim, requests, tokens, rows)
    width, each = shape.head_dim, -(-tokens // PAGE_TOKENS)
    kv_shape = KVShape(1, shape.kv_heads, width)
    pool = PagePool(kv_shape, requests * each, dtype, setup.device)
    pool.data.normal_(generator=generator)
    order = torch.randperm(requests * each, generator=generator, device=setup.device).tolist()
    tables = []
    for place in range(requests):
        sizes = [PAGE_TOKENS] * (each - 1) + [tokens - (each - 1) * PAGE_TOKENS]
        pages = order[place * each : (place + 1) * each]
        tables.append(
            PageTable(tuple(PageRef(p, 0, size) for p, size in zip(pages, sizes, strict=True)))
        )
    lists = page_lists(tables, [rows] * requests, setup.device)
    cos, sin = rotation(lists.positions, width, setup.device)
    q = setup.normal(generator, requests * rows, shape.heads, width, dtype=dtype)
    moved = requests * tokens * 2 * shape.kv_heads * width * dtype.itemsize
    call = partial(page_attention, q, pool.data, 0, lists, cos=cos, sin=sin)
    contenders = [Contender("pages", partial(call, impl="triton"), moved, name_of(dtype))]
    if timed:
        # The same tokens in one piece, keys and queries rotated before.
        named = torch.tensor(order, device=setup.device).view(requests, each)
        keys, values = (
            pool.data[:, 0, part][named].transpose(1, 2).flatten(2, 3) for part in (0, 1)
        )
        last = slice(tokens - rows, tokens)
        asked = rotate(q.view(requests, rows, *q.shape[1:]), cos[last, None], sin[last, None])
        turned = rotate(keys, cos[:tokens], sin[:tokens])
        contenders.append(
            Contender(
                "torch sdpa, one piece",
                partial(_dense, asked.transpose(1, 2), turned, values),
                moved,
                name_of(dtype),
                peer=True,
            )
        )
        contenders += library_peers(asked, turned, values, named, moved)
    return Case(
        op="page_attention",
        shape=f"{shape.label}, {requests} lists of {tokens:,}, {rows} rows",
        dtype=name_of(dtype),
        reference=partial(call, impl="reference"),
        contenders=tuple(contenders),
        flops=4.0 * requests * rows * shape.heads * width * (tokens - (rows - 1) / 2),
        tolerance=_TOLERANCE[dtype],
        timed=timed,
    )


def _dense(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    rows, tokens = q.shape[2], k.shape[2]
    mask = None
    if rows > 1:
        mask = torch.ones(rows, tokens, dtype=torch.bool, device=q.device).tril_(tokens - rows)
    out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)
    return out.transpose(1, 2).flatten(0, 1)
