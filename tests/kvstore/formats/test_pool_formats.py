"""Pages in every format: written at once or in groups, gathered whole or by token, copied out and
in."""

from __future__ import annotations

import pytest
import torch

from kvstore.formats import FORMATS, FormatName, Part, page_format
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

SHAPE = KVShape(layers=3, kv_heads=2, head_dim=80)
PARTS: tuple[Part, Part] = (0, 1)


def make_pool(name: FormatName, dtype: torch.dtype = torch.bfloat16) -> PagePool:
    pool = PagePool(SHAPE, 12, dtype, form=page_format(name, dtype))
    # 255 is a NaN in every field and every dtype.
    pool.data.view(torch.uint8).fill_(255)
    return pool


def random_kv(tokens: int, dtype: torch.dtype = torch.bfloat16) -> tuple[torch.Tensor, ...]:
    """Keys and values, each [layers, tokens, heads, channels]."""
    generator = torch.Generator().manual_seed(tokens)
    size = (2, SHAPE.layers, tokens, SHAPE.kv_heads, SHAPE.head_dim)
    return torch.randn(size, generator=generator).to(dtype).unbind(0)


def table_of(pages: tuple[int, ...], tokens: int) -> PageTable:
    counts = [min(PAGE_TOKENS, tokens - at * PAGE_TOKENS) for at in range(len(pages))]
    return PageTable(tuple(PageRef(p, 0, c) for p, c in zip(pages, counts, strict=True)))


def fill(pool: PagePool, tokens: int) -> tuple[tuple[int, ...], tuple[torch.Tensor, ...]]:
    pages = pool.allocate(-(-tokens // PAGE_TOKENS))
    kv = random_kv(tokens, pool.dtype)
    for layer in range(SHAPE.layers):
        pool.write(pages, layer, kv[0][layer], kv[1][layer])
    return pages, kv


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 200])
@pytest.mark.parametrize("name", FORMATS)
def test_gather_gives_what_the_format_keeps(name: FormatName, tokens: int) -> None:
    pool = make_pool(name)
    pool.allocate(3)
    pages, kv = fill(pool, tokens)
    gathered = pool.gather(table_of(pages, tokens))
    places = [(pages[t // PAGE_TOKENS], t % PAGE_TOKENS) for t in (0, tokens - 1, tokens // 2)]
    single = pool.gather_tokens(places)
    form = page_format(name, torch.bfloat16)
    filler = -tokens % PAGE_TOKENS
    for part in PARTS:
        padded = torch.cat((kv[part], kv[part][:, -1:].expand(-1, filler, -1, -1)), 1)
        paged = padded.transpose(1, 2).unflatten(2, (-1, PAGE_TOKENS))
        kept = form.decode(form.encode(paged, part), part, SHAPE.head_dim, torch.bfloat16)
        expected = kept.flatten(2, 3)[:, :, :tokens]
        assert gathered[part].dtype == torch.bfloat16
        assert torch.equal(gathered[part], expected)
        assert torch.equal(single[part], expected[:, :, [0, tokens - 1, tokens // 2]])


@pytest.mark.parametrize("name", FORMATS)
def test_blocks_in_a_group_are_kept_as_one_by_one(name: FormatName) -> None:
    alone, group = make_pool(name), make_pool(name)
    lengths = (64, 70, 1, 128)
    rows, pages, slots = [], [], []
    for tokens in lengths:
        own, kv = fill(alone, tokens)
        assert group.allocate(len(own)) == own
        rows.append(kv)
        pages.append(torch.tensor(own).repeat_interleave(PAGE_TOKENS)[:tokens])
        slots.append(torch.arange(tokens) % PAGE_TOKENS)
    for layer in range(SHAPE.layers):
        keys, values = (torch.cat([kv[part][layer] for kv in rows]) for part in PARTS)
        group.write_tokens(torch.cat(pages), torch.cat(slots), layer, keys, values)
    first = 0
    for tokens in lengths:
        own = tuple(range(first, first + -(-tokens // PAGE_TOKENS)))
        first += len(own)
        table = table_of(own, tokens)
        for one, other in zip(alone.gather(table), group.gather(table), strict=True):
            assert torch.equal(one, other)
        assert torch.equal(alone.export_pages(own, tokens), group.export_pages(own, tokens))


@pytest.mark.parametrize("name", FORMATS)
def test_copies_hold_the_same_and_nothing_of_before(name: FormatName) -> None:
    pool = make_pool(name)
    pages, _ = fill(pool, 70)
    raw = pool.export_pages(pages, 70)
    assert raw.shape == (2, pool.page_bytes)
    fresh = make_pool(name)
    fresh.data.view(torch.uint8).fill_(7)
    fresh.allocate(5)
    other = fresh.allocate(2)
    fresh.import_pages(other, bytearray(raw.numpy().tobytes()))
    for one, two in zip(
        pool.gather(table_of(pages, 70)), fresh.gather(table_of(other, 70)), strict=True
    ):
        assert torch.equal(one, two)
    clean = PagePool(SHAPE, 2, torch.bfloat16, form=page_format(name, torch.bfloat16))
    clean.data.zero_()
    same, _ = fill(clean, 70)
    assert torch.equal(clean.export_pages(same, 70), raw), "whatever the pages held before"


def test_a_wider_model_gets_its_own_dtype_back() -> None:
    pool = make_pool("bf16", torch.float32)
    pages, (keys, _) = fill(pool, 64)
    assert pool.page_bytes == SHAPE.layers * 2 * SHAPE.kv_heads * 64 * 80 * 2
    got, _ = pool.gather(table_of(pages, 64))
    assert got.dtype == torch.float32
    assert torch.equal(got, keys.transpose(1, 2).bfloat16().float())
