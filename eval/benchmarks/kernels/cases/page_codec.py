"""Pages in packed formats: encoding a group of blocks, decoding a page list. Ours against the
torch codecs on the same device, which the store uses without the kernels.

Encoded pages are compared as bytes with those of the codec on a CPU: a GPU's torch multiplies by
reciprocals where it divides by constants, the kernels divide. The codec's decoding has one copy
more, which puts keys and values together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from backend.ops.page_attention import page_lists
from backend.ops.page_codec import decode_pages, encode_pages, page_rows
from eval.benchmarks.kernels.case import Case, Contender, ModelShape, Setup, size_of
from kvstore.formats import FormatName, page_format
from kvstore.formats.packed import PackedFormat
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

PACKED: tuple[FormatName, ...] = ("fp8_tokens32", "fp8_token_head", "int8", "int4")
_ENCODED = ((32_768, True), (333, False))
"""Tokens read in one group of blocks of 4,096, and whether they are timed."""
_DECODED = ((2_048, True), (16_384, True), (333, False))
"""Tokens of a question's evidence, of eight layers."""
_LAYERS = 8
_BLOCK = 4_096
_TOLERANCE = 2e-2
"""Of bytes: a code that falls next to the middle of two numbers may go either way."""


def cases(setup: Setup) -> Iterator[Case]:
    """See the package. On a CPU there is no kernel, so no case."""
    if setup.device.type != "cuda":
        return
    for shape in setup.shapes:
        for name in PACKED:
            for tokens, timed in _ENCODED:
                yield _encoding(setup, shape, name, tokens, timed=timed)
            for tokens, timed in _DECODED:
                yield _decoding(setup, shape, name, tokens, timed=timed)


def packed_format(name: FormatName) -> PackedFormat:
    """The format of a name that is a packed one's."""
    form = page_format(name, torch.bfloat16)
    if not isinstance(form, PackedFormat):
        raise ValueError(f"{name} is not packed")
    return form


def _encoding(
    setup: Setup, shape: ModelShape, name: FormatName, tokens: int, *, timed: bool
) -> Case:
    generator = setup.generator(shape.kv_heads, shape.head_dim, tokens, PACKED.index(name))
    form, pool = _filled_pool(setup, shape, name, tokens, 1)
    product = setup.normal(
        generator, tokens, 2 * shape.kv_heads, shape.head_dim, dtype=torch.bfloat16
    )
    k, v = product.chunk(2, 1)
    blocks, pages = [], iter(range(pool.total))
    for first in range(0, tokens, _BLOCK):
        size = min(_BLOCK, tokens - first)
        blocks.append((size, [next(pages) for _ in range(-(-size // PAGE_TOKENS))]))
    rows = page_rows(blocks, setup.device)
    own = torch.cat([torch.tensor(owned).repeat_interleave(PAGE_TOKENS)[:size]
                     for size, owned in blocks]).to(setup.device)  # fmt: skip
    slots = torch.cat([torch.arange(size) % PAGE_TOKENS for size, _ in blocks]).to(setup.device)

    def kernel() -> torch.Tensor:
        encode_pages(pool.data, 0, k, v, rows, form, impl="triton")
        return pool.data

    def codec() -> torch.Tensor:
        pool.write_tokens(own, slots, 0, k, v)
        return pool.data

    def reference() -> torch.Tensor:
        on_cpu = PagePool(pool.shape, pool.total, torch.bfloat16, form=form)
        encode_pages(on_cpu.data, 0, k.cpu(), v.cpu(), rows.cpu(), form, impl="reference")
        return on_cpu.data.to(setup.device)

    moved = size_of(k, v, pool.data)
    return Case(
        op="page_codec",
        shape=f"{shape.label}, encode {tokens:,} tokens of a layer",
        dtype=name,
        reference=reference,
        contenders=(
            Contender("kernel", kernel, moved, "float32"),
            Contender("torch codec", codec, moved, "float32", peer=True),
        ),
        flops=2.0 * (k.numel() + v.numel()),
        tolerance=_TOLERANCE,
        timed=timed,
    )


def _decoding(
    setup: Setup, shape: ModelShape, name: FormatName, tokens: int, *, timed: bool
) -> Case:
    form, pool = _filled_pool(setup, shape, name, tokens, _LAYERS)
    generator = setup.generator(shape.kv_heads, shape.head_dim, tokens, 100 + PACKED.index(name))
    for layer in range(_LAYERS):
        k = setup.normal(generator, tokens, shape.kv_heads, shape.head_dim, dtype=torch.bfloat16)
        pool.write(range(pool.total), layer, k, k.flip(0))
    order = torch.randperm(pool.total, generator=generator, device=setup.device).tolist()
    table = PageTable(tuple(PageRef(page, 0, PAGE_TOKENS) for page in order))
    refs = page_lists([table], [1], setup.device).refs
    call = partial(
        decode_pages, pool.data, refs, table.tokens, form, shape.head_dim, torch.bfloat16
    )
    size = 2 * _LAYERS * shape.kv_heads * table.tokens * shape.head_dim
    moved = size_of(pool.data) + 2.0 * size
    return Case(
        op="page_codec",
        shape=f"{shape.label}, decode {tokens:,} tokens of {_LAYERS} layers",
        dtype=name,
        reference=partial(call, impl="reference"),
        contenders=(
            Contender("kernel", partial(call, impl="triton"), moved, "float32"),
            Contender(
                "torch codec", lambda: torch.stack(pool.gather(table)), moved, "float32", peer=True
            ),
        ),
        flops=2.0 * size,
        tolerance=_TOLERANCE,
        timed=timed,
    )


def _filled_pool(
    setup: Setup, shape: ModelShape, name: FormatName, tokens: int, layers: int
) -> tuple[PackedFormat, PagePool]:
    form = packed_format(name)
    kv_shape = KVShape(layers, shape.kv_heads, shape.head_dim)
    each = [min(_BLOCK, tokens - first) for first in range(0, tokens, _BLOCK)]
    pages = sum(-(-size // PAGE_TOKENS) for size in each)
    pool = PagePool(kv_shape, pages, torch.bfloat16, setup.device, form)
    pool.data.zero_()
    return form, pool
