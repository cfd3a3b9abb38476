"""Pages of latents: one head, no values of its own, in every format."""

from __future__ import annotations

import pytest
import torch

from kvstore.formats import FORMATS, FormatName, page_format
from kvstore.pool import PagePool, page_bytes
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

SHAPE = KVShape(layers=2, kv_heads=1, head_dim=576, latent=512)
TOKENS = 150


def make_pool(name: FormatName) -> PagePool:
    pool = PagePool(SHAPE, 8, torch.bfloat16, form=page_format(name, torch.bfloat16))
    # 255 is a NaN in every field and every dtype.
    pool.data.view(torch.uint8).fill_(255)
    return pool


def kept() -> torch.Tensor:
    """[layers, tokens, 1, channels]."""
    generator = torch.Generator().manual_seed(4)
    return torch.randn((2, TOKENS, 1, 576), generator=generator).bfloat16()


def fill(pool: PagePool) -> tuple[int, ...]:
    pages = pool.allocate(3)
    for layer, rows in enumerate(kept()):
        pool.write(pages, layer, rows, rows[..., :512])
    return pages


def table_of(pages: tuple[int, ...]) -> PageTable:
    return PageTable(tuple(PageRef(p, 0, c) for p, c in zip(pages, (64, 64, 22), strict=True)))


@pytest.mark.parametrize("name", FORMATS)
def test_what_is_kept_comes_back_and_values_are_its_beginning(name: FormatName) -> None:
    pool = make_pool(name)
    pages = fill(pool)
    keys, values = pool.gather(table_of(pages))
    assert (keys.shape, values.shape) == ((2, 1, TOKENS, 576), (2, 1, TOKENS, 512))
    assert values.data_ptr() == keys.data_ptr(), "nothing is copied"
    assert torch.equal(values, keys[..., :512])
    off = (keys.float() - kept().transpose(1, 2).float()).abs().max()
    assert off < (0.01 if name in ("auto", "bf16", "fp16") else 0.35)
    single = pool.gather_tokens([(pages[2], 21), (pages[0], 5)])
    assert torch.equal(single[0], keys[:, :, [149, 5]])
    assert torch.equal(single[1], values[:, :, [149, 5]])


@pytest.mark.parametrize("name", FORMATS)
def test_groups_and_copies_are_the_same_pages(name: FormatName) -> None:
    pool, group = make_pool(name), make_pool(name)
    pages = fill(pool)
    assert group.allocate(3) == pages
    places = torch.tensor(pages).repeat_interleave(PAGE_TOKENS)[:TOKENS]
    for layer, rows in enumerate(kept()):
        group.write_tokens(places, torch.arange(TOKENS) % PAGE_TOKENS, layer, rows, rows[..., :512])
    raw = pool.export_pages(pages, TOKENS)
    assert raw.shape == (3, pool.page_bytes)
    assert torch.equal(raw, group.export_pages(pages, TOKENS))
    other = make_pool(name)
    other.allocate(2)
    moved = other.allocate(3)
    other.import_pages(moved, bytearray(raw.numpy().tobytes()))
    assert torch.equal(other.gather(table_of(moved))[0], pool.gather(table_of(pages))[0])


def test_bytes_of_a_page() -> None:
    sizes = {
        name: page_bytes(SHAPE, page_format(name, torch.bfloat16)) / (2 * PAGE_TOKENS * 576 * 2)
        for name in FORMATS
    }
    assert make_pool("bf16").page_bytes == 2 * PAGE_TOKENS * 576 * 2
    assert sizes["auto"] == sizes["bf16"] == sizes["fp16"] == 1
    assert sizes["fp8_tokens32"] <= 0.54 and sizes["fp8_token_head"] <= 0.54
    assert sizes["int8"] <= 0.54
    assert sizes["int4"] <= 0.31
    both = KVShape(layers=2, kv_heads=1, head_dim=576)
    form = page_format("int8", torch.bfloat16)
    assert page_bytes(both, form) == 2 * page_bytes(SHAPE, form)
