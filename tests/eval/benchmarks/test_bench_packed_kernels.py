"""Cases of packed pages, page scores and outside libraries: what they compare is the same work.

The kernels themselves need a GPU; here each contender's call is made with the reference.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from functools import partial
from typing import cast

import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from eval.benchmarks.kernels import libraries
from eval.benchmarks.kernels.case import Case, Contender, ModelShape, Setup
from eval.benchmarks.kernels.cases import packed_attention, page_attention, page_codec, page_score
from eval.benchmarks.kernels.comparison import compare
from eval.benchmarks.kernels.registry import find_ops
from kvstore.types import PAGE_TOKENS

CPU = torch.device("cpu")
SMALL = ModelShape("small", 2, 3, 64, 128, 192)
SETUP = Setup(CPU, 5, (SMALL,))
LIMITS = {"gemm_float32_gflops": 1e3, "gemm_bfloat16_gflops": 2e3, "read_gbytes_per_s": 20.0}


def by_reference(contender: Contender) -> torch.Tensor:
    call = cast("partial[torch.Tensor]", contender.call)
    assert call.keywords["impl"] == "triton"
    changed: Callable[[], torch.Tensor] = partial(
        call.func, *call.args, **{**call.keywords, "impl": "reference"}
    )
    return changed()


def off(found: torch.Tensor, case: Case) -> float:
    expected = case.reference().float()
    assert found.shape == expected.shape
    return float((found.float() - expected).norm() / expected.norm())


def test_without_a_gpu_there_is_no_case() -> None:
    names = ("packed_attention", "page_codec", "page_score")
    for make in find_ops(names).values():
        assert list(make(SETUP)) == []


@pytest.mark.parametrize("name", page_codec.PACKED)
def test_the_codec_of_the_store_makes_the_same_pages(name: str) -> None:
    form = page_codec.PACKED[page_codec.PACKED.index(name)]  # type: ignore[arg-type]
    for case in (
        page_codec._encoding(SETUP, SMALL, form, 333, timed=False),
        page_codec._decoding(SETUP, SMALL, form, 333, timed=False),
    ):
        kernel, codec = case.contenders
        assert not kernel.peer
        found = compare(
            Case(case.op, case.shape, case.dtype, case.reference, (codec,), 1.0, 0.0, False),
            CPU,
            LIMITS,
        )[0]
        assert (found.status, found.relative_error) == ("compared", 0.0)
        assert 0 < kernel.bytes < 4 * 333 * 8 * 2 * 2 * 64 * 2


@pytest.mark.parametrize("name", page_codec.PACKED)
def test_packed_pages_and_their_decoded_copies_hold_the_same(name: str) -> None:
    form = page_codec.PACKED[page_codec.PACKED.index(name)]  # type: ignore[arg-type]
    case = packed_attention.make_case(SETUP, SMALL, form, 3, 192, timed=False)
    packed, plain = case.contenders
    assert off(by_reference(packed), case) == 0.0
    assert plain.peer
    assert off(by_reference(plain), case) < case.tolerance
    assert packed.bytes <= 0.54 * plain.bytes


def test_scores_of_all_pages() -> None:
    bounds, free, placed = page_score._cases(SETUP, SMALL, 700, timed=False)
    assert bounds.reference().shape == (11, 2, 2, 64)
    for case in (free, placed):
        (kernel,) = case.contenders
        scores = by_reference(kernel)
        assert scores.shape == (2, 11)
        assert scores.isfinite().all()
    assert placed.flops == PAGE_TOKENS * free.flops


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """q [requests, heads, rows, d] on k, v [requests, kv_heads, tokens, d], causal at the end."""
    rows, tokens = q.shape[2], k.shape[2]
    mask = torch.ones(rows, tokens, dtype=torch.bool).tril(tokens - rows)
    return scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


class FakeWrapper:
    """Decodes as FlashInfer's documentation says, in torch."""

    def __init__(self, workspace: torch.Tensor, layout: str, **options: object) -> None:
        assert layout == "HND"
        assert workspace.dtype == torch.uint8

    def plan(
        self, starts: torch.Tensor, pages: torch.Tensor, last: torch.Tensor, *sizes: int,
        **options: object,
    ) -> None:  # fmt: skip
        assert sizes == (6, 2, 64, PAGE_TOKENS)
        self.starts, self.pages, self.last = starts.tolist(), pages.long(), last.tolist()

    def run(self, q: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        rows = []
        for place, asked in enumerate(q):
            own = cache[self.pages[self.starts[place] : self.starts[place + 1]]]
            keys, values = own.permute(1, 2, 0, 3, 4).flatten(2, 3)
            tokens = keys.shape[1] - PAGE_TOKENS + self.last[place]
            out = attention(asked[None, :, None], keys[None, :, :tokens], values[None, :, :tokens])
            rows.append(out[0, :, 0])
        return torch.stack(rows)


def flash_attn_with_kvcache(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, cache_seqlens: torch.Tensor, causal: bool
) -> torch.Tensor:
    assert causal
    assert cache_seqlens.unique().tolist() == [k.shape[1]]
    return attention(*(x.transpose(1, 2) for x in (q, k, v))).transpose(1, 2)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for both libraries."""
    flashinfer = types.ModuleType("flashinfer")
    flashinfer.BatchDecodeWithPagedKVCacheWrapper = FakeWrapper  # type: ignore[attr-defined]
    flash_attn = types.ModuleType("flash_attn")
    flash_attn.flash_attn_with_kvcache = flash_attn_with_kvcache  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "flashinfer", flashinfer)
    monkeypatch.setitem(sys.modules, "flash_attn", flash_attn)
    monkeypatch.setattr(libraries, "_found", lambda name: name in ("flashinfer", "flash_attn"))


def peers_of(rows: int) -> tuple[Case, list[Contender]]:
    case = page_attention.make_case(SETUP, SMALL, torch.float32, 2, 192, rows, timed=True)
    return case, [one for one in case.contenders if one.name.startswith("Flash")]


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("rows", [1, 3])
def test_libraries_that_are_there_compute_the_same(rows: int) -> None:
    case, peers = peers_of(rows)
    assert [one.name for one in peers] == ["FlashInfer, pages", "FlashAttention, one piece"]
    assert all(one.peer for one in peers)
    if rows == 1:
        assert off(peers[0].call(), case) < case.tolerance
    else:
        with pytest.raises(NotImplementedError, match="one query row"):
            peers[0].call()
    for _ in range(2):
        assert off(peers[1].call(), case) < case.tolerance


def test_libraries_that_are_not_there_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "_found", lambda name: False)
    case, peers = peers_of(1)
    quick = Case(case.op, case.shape, case.dtype, case.reference, tuple(peers), 1.0, 1e-5, False)
    results = compare(quick, CPU, LIMITS)
    assert [one.status for one in results] == ["unavailable", "unavailable"]
    assert results[0].why == "not installed (pip install flashinfer-python)"
    assert results[1].why == "not installed (pip install flash-attn)"


@pytest.mark.usefixtures("installed")
def test_a_library_that_fails_is_told_and_not_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise ValueError("no kernel for a group of 3")

    monkeypatch.setattr(FakeWrapper, "plan", refuse)
    case, peers = peers_of(1)
    quick = Case(case.op, case.shape, case.dtype, case.reference, (peers[0],), 1.0, 1e-5, False)
    (found,) = compare(quick, CPU, LIMITS)
    assert (found.status, found.why) == ("unavailable", "ValueError: no kernel for a group of 3")
