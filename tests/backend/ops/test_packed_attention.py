"""Attention on lists with packed pages: the kernel against the reference, the reference against
attention on pages that were decoded before.

As in `test_page_attention`, Triton's interpreter has a process of its own here, and the tests
marked `gpu` run the kernel compiled, with the GPU's own conversion of e4m3.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest
import torch

from backend.ops.page_attention import (
    Implementation,
    PackedPages,
    PageLists,
    mixed_lists,
    page_attention,
    page_lists,
)
from kvstore.formats import FormatName, page_format
from kvstore.formats.packed import PackedFormat
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable
from tests.backend.ops.warp_launches import by_warps

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 products wrong without a word (triton 3.7), so it is given float16.
EXACT, ROUNDED = torch.float32, torch.float16 if INTERPRETED else torch.bfloat16
LIMITS = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 1e-2}
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu
NAMES: tuple[FormatName, ...] = ("fp8_tokens32", "fp8_token_head", "int8", "int4")
LAYERS, LAYER, PAGES = 2, 1, 24

Pieces = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Case:
    """Heads, and for each request its query rows and (first token, tokens) of the pages before the
    packed ones, of those, and of the pages after them."""

    heads: int
    kv_heads: int
    width: int
    requests: tuple[tuple[int, Pieces, Pieces, Pieces], ...]


WHOLE = (0, 64)
CASES = {
    "one token, one packed page": Case(2, 1, 64, ((1, (), (WHOLE,), ((0, 1),)),)),
    "decoding a batch": Case(
        6,
        2,
        64,
        (
            (1, ((0, 21),), (WHOLE, WHOLE, (0, 7)), ((0, 17),)),
            (1, (WHOLE, (0, 3)), (), ((0, 2),)),
            (1, (), ((5, 40), (63, 1), (32, 32)), (WHOLE, (0, 3))),
            (1, ((0, 9),), (WHOLE,) * 5, ((0, 64),)),
        ),
    ),
    "guessed tokens": Case(4, 1, 128, ((3, (), (WHOLE, (33, 9)), ((0, 5),)),)),
    "short questions": Case(
        9, 3, 64, ((9, ((0, 4),), (WHOLE, WHOLE), ((0, 30),)), (9, (), (), ((0, 9),)))
    ),
    "a head size that is no power of two": Case(
        6, 2, 80, ((2, ((0, 5),), (WHOLE, (0, 33)), ((0, 6),)),)
    ),
    "small heads": Case(6, 2, 10, ((1, ((0, 5),), (WHOLE, (3, 60)), ((0, 1),)),)),
}
RUNS: tuple[tuple[str, int | None, torch.dtype], ...] = (
    ("one token, one packed page", 1, ROUNDED),
    ("decoding a batch", None, EXACT),
    ("decoding a batch", 3, ROUNDED),
    ("guessed tokens", 100, ROUNDED),
    ("short questions", 1, EXACT),
    ("a head size that is no power of two", 100, EXACT),
    ("small heads", 2, EXACT),
)
# A kernel of its own reads codes of a byte for eight query rows at most.
BY_WARPS = {
    "decoding a batch": CASES["decoding a batch"],
    "two rows": Case(
        4,
        1,
        128,
        (
            (2, (), (WHOLE, (33, 9), WHOLE, WHOLE), ((0, 5),)),
            (1, ((0, 7),), (WHOLE, (5, 3)), ((0, 1),)),
            (2, ((0, 7),), (), ((0, 64), (0, 2))),
        ),
    ),
    "eight rows": Case(16, 2, 128, ((1, ((0, 9),), (WHOLE,) * 6, ((0, 3),)),)),
}
every_format = pytest.mark.parametrize("name", NAMES)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tensors of a case, and the tables as they were made."""

    q: torch.Tensor
    pool: PagePool
    packed: PagePool
    lists: PageLists
    pages: PackedPages
    made: tuple[tuple[PageTable, PageTable, PageTable], ...]
    cos: torch.Tensor
    sin: torch.Tensor

    def run(self, impl: Implementation, parts: int | None = None) -> torch.Tensor:
        return page_attention(
            self.q, self.pool.data, LAYER, self.lists, cos=self.cos, sin=self.sin, impl=impl,
            parts=parts, packed=self.pages,
        )  # fmt: skip


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fresh memory is full of what is no number, or of large ones."""
    empty = torch.empty

    def full(*size: object, **options: object) -> torch.Tensor:
        made = empty(*size, **options)  # type: ignore[call-overload]
        return made.fill_(torch.nan if made.is_floating_point() else 99)

    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", full)
        yield


def tables(length: int, width: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and signed sin as `backend.layers.rope.Rope` gives them."""
    frequencies = 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1).to(device), torch.cat((-sin, sin), -1).to(device)


def make(case: Case, name: FormatName, dtype: torch.dtype, device: str = "cpu") -> Inputs:
    """Every plain token that no list names, every packed page and all other layers are faulty."""
    generator = torch.Generator().manual_seed(100 * NAMES.index(name) + case.width)
    form = page_format(name, torch.float32)
    assert isinstance(form, PackedFormat)
    shape = KVShape(LAYERS, case.kv_heads, case.width)
    pool = PagePool(shape, PAGES, dtype, device)
    pool.data.fill_(torch.nan)
    packed = PagePool(shape, PAGES, dtype, device, form)
    packed.data.fill_(255)
    plain_free = torch.randperm(PAGES, generator=generator).tolist()
    packed_free = torch.randperm(PAGES, generator=generator).tolist()
    made = []
    for _, *pieces in case.requests:
        free = (plain_free, packed_free, plain_free)
        before, middle, after = (
            PageTable(tuple(PageRef(names.pop(), *piece) for piece in part))
            for names, part in zip(free, pieces, strict=True)
        )
        made.append((before, middle, after))
        for ref in (*before.refs, *after.refs):
            place = pool.data[ref.page, LAYER, :, :, ref.first : ref.first + ref.count]
            place.copy_(torch.randn(place.shape, generator=generator))
        for ref in middle.refs:
            kv = torch.randn((2, PAGE_TOKENS, case.kv_heads, case.width), generator=generator)
            kv[:, :, :, 1] += 5.0
            kv = kv.to(device, dtype)
            packed.write((ref.page,), LAYER, kv[0], kv[1])
    rows = [request[0] for request in case.requests]
    lists, pages = mixed_lists(made, rows, packed.data, form)
    cos, sin = tables(lists.positions, case.width, device)
    # As the decoder gives them: a slice of one product, so rows are far apart.
    both = case.heads + 2 * case.kv_heads
    product = torch.randn((sum(rows), both, case.width), generator=generator).to(device, dtype)
    return Inputs(product[:, : case.heads], pool, packed, lists, pages, tuple(made), cos, sin)


def error(out: torch.Tensor, expected: torch.Tensor) -> float:
    assert out.shape == expected.shape
    assert out.dtype == expected.dtype
    return ((out.float() - expected.float()).norm() / expected.float().norm()).item()


@kernels
@every_format
@pytest.mark.parametrize(("case", "parts", "dtype"), RUNS)
def test_triton_equals_reference(
    case: str, parts: int | None, dtype: torch.dtype, name: FormatName, device: str, poisoned: None
) -> None:
    inputs = make(CASES[case], name, dtype, device)
    out = inputs.run("triton", parts)
    assert error(out, inputs.run("reference")) < LIMITS[dtype]


@kernels
@every_format
def test_triton_does_not_hide_a_fault(name: FormatName, device: str) -> None:
    inputs = make(CASES["decoding a batch"], name, torch.float32, device)
    page = inputs.made[0][1].refs[1].page
    kv = torch.randn((2, PAGE_TOKENS, 2, 64)).to(device)
    kv[0, 9, 1, 3] = torch.nan
    inputs.packed.write((page,), LAYER, kv[0], kv[1])
    out = inputs.run("triton", 2)
    # Key-value head 1 of the first request: its three query heads.
    assert out[0, 3:].isnan().all()
    out[0, 3:] = 0
    assert out.isfinite().all()


warp_formats = pytest.mark.parametrize("name", ["fp8_tokens32", "fp8_token_head", "int8"])


@pytest.mark.gpu
@warp_formats
@pytest.mark.parametrize("parts", [1, 2, None])
@pytest.mark.parametrize("case", BY_WARPS)
def test_warps_equal_reference(
    case: str, parts: int | None, name: FormatName, device: str, poisoned: None
) -> None:
    inputs = make(BY_WARPS[case], name, torch.bfloat16, device)
    with by_warps("int8" if name == "int8" else "fp8"):
        out = inputs.run("triton", parts)
    assert error(out, inputs.run("reference")) < LIMITS[torch.bfloat16]


@pytest.mark.gpu
@warp_formats
def test_warps_do_not_hide_a_fault(name: FormatName, device: str) -> None:
    inputs = make(CASES["decoding a batch"], name, torch.bfloat16, device)
    page = inputs.made[0][1].refs[1].page
    kv = torch.randn((2, PAGE_TOKENS, 2, 64)).to(device)
    kv[0, 9, 1, 3] = torch.nan
    inputs.packed.write((page,), LAYER, kv[0], kv[1])
    with by_warps("int8" if name == "int8" else "fp8"):
        out = inputs.run("triton", 2)
    assert out[0, 3:].isnan().all()
    out[0, 3:] = 0
    assert out.isfinite().all()


@pytest.mark.gpu
@warp_formats
def test_warps_read_values_that_float16_cannot_hold(name: FormatName, device: str) -> None:
    inputs = make(BY_WARPS["two rows"], name, torch.bfloat16, device)
    for ref in inputs.made[0][1].refs:
        kv = torch.randn((2, PAGE_TOKENS, 1, 128)).to(device)
        kv[1] *= 1e-7
        kv[1, ::3] *= 1e-3
        inputs.packed.write((ref.page,), LAYER, kv[0], kv[1])
    with by_warps("int8" if name == "int8" else "fp8"):
        out = inputs.run("triton", 2)
    assert error(out, inputs.run("reference")) < LIMITS[torch.bfloat16]


@every_format
@pytest.mark.parametrize("case", CASES)
def test_reference_is_attention_on_decoded_pages(case: str, name: FormatName) -> None:
    inputs = make(CASES[case], name, torch.float32)
    pool = PagePool(inputs.pool.shape, 2 * PAGES, torch.float32)
    pool.data[:PAGES] = inputs.pool.data
    lists = []
    for before, middle, after in inputs.made:
        for ref in middle.refs:
            one = PageTable((PageRef(ref.page, 0, PAGE_TOKENS),))
            pool.data[PAGES + ref.page] = torch.stack(inputs.packed.gather(one)).transpose(0, 1)
        moved = (replace(ref, page=PAGES + ref.page) for ref in middle.refs)
        lists.append(PageTable((*before.refs, *moved, *after.refs)))
    rows = [request[0] for request in CASES[case].requests]
    expected = page_attention(
        inputs.q, pool.data, LAYER, page_lists(lists, rows), cos=inputs.cos, sin=inputs.sin,
        impl="reference",
    )  # fmt: skip
    torch.testing.assert_close(inputs.run("reference"), expected)


def test_query_rows_stand_behind_packed_pages() -> None:
    inputs = make(CASES["guessed tokens"], "int8", torch.float32)
    form = inputs.pages.form
    with pytest.raises(ValueError, match="6 query rows behind packed pages, which have 5"):
        mixed_lists(inputs.made, [6], inputs.packed.data, form)
    with pytest.raises(ValueError, match="1 page lists and 2"):
        mixed_lists(inputs.made, [1, 1], inputs.packed.data, form)


def test_misfits_are_refused() -> None:
    inputs = make(CASES["decoding a batch"], "int8", torch.float32)
    pages = inputs.pages

    def refuse(message: str, **changes: object) -> None:
        wrong = replace(inputs, pages=replace(pages, **changes))  # type: ignore[arg-type]
        with pytest.raises(ValueError, match=message):
            wrong.run("reference")

    refuse("don't fit", data=pages.data[:, :1])
    refuse("don't fit", data=pages.data[..., None])
    refuse("holds no int4", form=page_format("int4", torch.float32))
    refuse("holds no int8", data=pages.data.view(torch.int8))
    refuse("3 packed lists for 4", requests=pages.requests[:3])


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_packed_kernel_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "test_triton", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(NAMES) * (len(RUNS) + 1)} passed" in done.stdout
