"""The codecs on a GPU keep what they keep on a CPU."""

from __future__ import annotations

import pytest
import torch

from kvstore.formats import FORMATS, FormatName, page_format
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

SHAPE = KVShape(layers=2, kv_heads=3, head_dim=80)
TOKENS = 200


def filled(name: FormatName, device: str) -> tuple[PagePool, tuple[int, ...]]:
    """A pool that holds the same 200 tokens on any device, written as a group of blocks."""
    pool = PagePool(SHAPE, 6, torch.bfloat16, device, page_format(name, torch.bfloat16))
    pool.data.view(torch.uint8).fill_(255)
    pages = pool.allocate(4)
    generator = torch.Generator().manual_seed(3)
    size = (2, SHAPE.layers, TOKENS, SHAPE.kv_heads, SHAPE.head_dim)
    kv = torch.randn(size, generator=generator).bfloat16()
    kv[..., 7] += 600.0
    kv = kv.to(device)
    places = torch.tensor(pages).repeat_interleave(PAGE_TOKENS)[:TOKENS].to(device)
    slots = (torch.arange(TOKENS) % PAGE_TOKENS).to(device)
    for layer in range(SHAPE.layers):
        pool.write_tokens(places, slots, layer, kv[0, layer], kv[1, layer])
    return pool, pages


@pytest.mark.parametrize("name", FORMATS)
def test_pages_are_as_on_a_cpu(name: FormatName) -> None:
    counts = (PAGE_TOKENS, PAGE_TOKENS, PAGE_TOKENS, TOKENS % PAGE_TOKENS)
    results = []
    for device in ("cpu", "cuda"):
        pool, pages = filled(name, device)
        refs = (PageRef(page, 0, count) for page, count in zip(pages, counts, strict=True))
        gathered = torch.stack(pool.gather(PageTable(tuple(refs))))
        single = torch.stack(pool.gather_tokens([(pages[3], 1), (pages[0], 63)]))
        assert gathered.isfinite().all()
        assert torch.equal(single, gathered[:, :, :, [193, 63]])
        raw = pool.export_pages(pages, TOKENS)
        pool.import_pages(pages, bytearray(raw.numpy().tobytes()))
        assert torch.equal(pool.export_pages(pages, TOKENS), raw)
        results.append(gathered.cpu().float())
    cpu, gpu = results
    # A logarithm that is rounded otherwise may give int4 the next step, a tenth larger.
    differing = (cpu != gpu).float().mean()
    assert differing <= (0.02 if name == "int4" else 0.0005)
