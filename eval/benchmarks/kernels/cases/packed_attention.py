"""Attention on packed pages, which are decoded as they are read, against the same kernel on the
decoded pages in bf16: a packed format is to pay off in time on long lists."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from backend.ops.page_attention import mixed_lists, page_attention, page_lists
from eval.benchmarks.kernels.case import Case, Contender, ModelShape, Setup
from eval.benchmarks.kernels.cases.page_codec import PACKED, packed_format
from eval.benchmarks.kernels.rotation import rotation
from kvstore.formats import FormatName
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

_TIMED = ((16, 2_048), (1, 131_072), (16, 32_768))
"""Requests, and packed tokens of each list, whole pages; behind them one token in bf16 asks."""
_ODD = ((3, 192),)
_TOLERANCE = 1e-2
_WRITTEN = 65_536
"""Tokens that are packed at a time: in torch that takes several times their memory."""


def cases(setup: Setup) -> Iterator[Case]:
    """See the package. On a CPU there is no kernel, so no case."""
    if setup.device.type != "cuda":
        return
    for shape in setup.shapes:
        for name in PACKED:
            for requests, tokens in _ODD:
                yield make_case(setup, shape, name, requests, tokens, timed=False)
            for requests, tokens in _TIMED:
                yield make_case(setup, shape, name, requests, tokens, timed=True)


def make_case(
    setup: Setup, shape: ModelShape, name: FormatName, requests: int, tokens: int, *, timed: bool
) -> Case:
    """Lists of so many packed tokens, whole pages in any order, and one token that asks."""
    dtype, width, form = torch.bfloat16, shape.head_dim, packed_format(name)
    generator = setup.generator(shape.heads, width, requests, tokens, PACKED.index(name))
    each = tokens // PAGE_TOKENS
    count = requests * each
    kv_shape = KVShape(1, shape.kv_heads, width)
    packed = PagePool(kv_shape, count, dtype, setup.device, form)
    # The pages of the packed pool once more as they are decoded, then one for each who asks.
    plain = PagePool(kv_shape, count + requests, dtype, setup.device)
    step = _WRITTEN // PAGE_TOKENS
    for first in range(0, count, step):
        pages = range(first, min(first + step, count))
        size = (2, len(pages) * PAGE_TOKENS, shape.kv_heads, width)
        keys, values = setup.normal(generator, *size, dtype=dtype)
        packed.write(pages, 0, keys, values)
        for part in (0, 1):
            cells = packed.data[first : first + len(pages), :, part]
            plain.data[first : first + len(pages), :, part] = form.decode(
                cells, 0 if part == 0 else 1, width, dtype
            )
    plain.data[count:].normal_(generator=generator)
    order = torch.randperm(count, generator=generator, device=setup.device).tolist()
    lists = [
        tuple(PageRef(page, 0, PAGE_TOKENS) for page in order[place * each : (place + 1) * each])
        for place in range(requests)
    ]
    own = [PageRef(count + place, 0, 1) for place in range(requests)]
    tables = [
        (PageTable(()), PageTable(pages), PageTable((ref,)))
        for pages, ref in zip(lists, own, strict=True)
    ]
    mixed, evidence = mixed_lists(tables, [1] * requests, packed.data, form)
    whole = page_lists(
        [PageTable((*pages, ref)) for pages, ref in zip(lists, own, strict=True)],
        [1] * requests,
        setup.device,
    )
    cos, sin = rotation(mixed.positions, width, setup.device)
    q = setup.normal(generator, requests, shape.heads, width, dtype=dtype)
    call = partial(page_attention, q, plain.data, 0, cos=cos, sin=sin)
    ours = partial(call, mixed, packed=evidence)
    return Case(
        op="packed_attention",
        shape=f"{shape.label}, {requests} lists of {tokens:,}",
        dtype=name,
        reference=partial(ours, impl="reference"),
        contenders=(
            Contender("packed pages", partial(ours, impl="triton"), packed.data.nbytes, "bfloat16"),
            Contender(
                "the same kernel, bf16 pages",
                partial(call, whole, impl="triton"),
                plain.data[:count].nbytes,
                "bfloat16",
                peer=True,
            ),
        ),
        flops=4.0 * requests * shape.heads * width * (tokens + 1),
        tolerance=_TOLERANCE,
        timed=timed,
    )
