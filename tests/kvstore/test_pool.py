"""The page pool: layout, references, and an allocator that never loses a page."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kvstore.errors import IntegrityError, PoolExhausted
from kvstore.formats.plain import PlainFormat
from kvstore.pool import PagePool, page_bytes
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

SHAPE = KVShape(layers=3, kv_heads=2, head_dim=10)


def make_pool(pages: int) -> PagePool:
    pool = PagePool(SHAPE, pages, torch.float32)
    pool.data.fill_(torch.nan)
    return pool


@pytest.mark.parametrize("tokens", [1, 63, 64, 65, 200])
def test_gather_returns_what_was_written(tokens: int) -> None:
    pool = make_pool(9)
    pool.allocate(3)
    pages = pool.allocate(-(-tokens // PAGE_TOKENS))
    keys, values = torch.randn(2, SHAPE.layers, tokens, SHAPE.kv_heads, SHAPE.head_dim)
    for layer in range(SHAPE.layers):
        pool.write(pages, layer, keys[layer], values[layer])
    counts = [min(PAGE_TOKENS, tokens - i * PAGE_TOKENS) for i in range(len(pages))]
    table = PageTable(tuple(PageRef(p, 0, c) for p, c in zip(pages, counts, strict=True)))
    assert table.tokens == tokens
    got_keys, got_values = pool.gather(table)
    torch.testing.assert_close(got_keys, keys.transpose(1, 2))
    torch.testing.assert_close(got_values, values.transpose(1, 2))
    places = [(pages[t // PAGE_TOKENS], t % PAGE_TOKENS) for t in (0, tokens - 1)]
    one_keys, _ = pool.gather_tokens(places)
    torch.testing.assert_close(one_keys, keys.transpose(1, 2)[:, :, [0, tokens - 1]])


def test_a_page_is_given_back_once() -> None:
    pool = make_pool(2)
    pages = pool.allocate(1)
    assert pool.free == 1
    pool.release(pages)
    assert pool.free == 2
    with pytest.raises(IntegrityError, match="twice"):
        pool.release(pages)
    assert pool.free == 2
    pool.check_integrity()


def test_exhausted_pool_takes_nothing() -> None:
    pool = make_pool(3)
    pool.allocate(2)
    with pytest.raises(PoolExhausted, match="KV budget"):
        pool.allocate(2)
    assert pool.free == 1
    pool.check_integrity()


def test_page_bytes() -> None:
    assert page_bytes(SHAPE, PlainFormat(torch.float32)) == make_pool(1).data.numel() * 4


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40))
def test_any_order_of_allocating_and_releasing_keeps_the_books(steps: list[int]) -> None:
    pool = make_pool(8)
    held: list[tuple[int, ...]] = []
    for step in steps:
        if step == 0 and held:
            pool.release(held.pop(0))
        elif step and step <= pool.free:
            held.append(pool.allocate(step))
        pool.check_integrity()
    assert pool.free + sum(map(len, held)) == 8
    assert len({page for pages in held for page in pages}) == sum(map(len, held))
