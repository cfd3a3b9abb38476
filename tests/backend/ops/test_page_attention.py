"""Attention on page lists: the kernel against the reference, the reference against attention on one
buffer.

As in `test_block_attention`, Triton's interpreter has a process of its own here, and the tests
marked `gpu` run the kernel compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch

from backend.ops.page_attention import Implementation, PageLists, page_attention, page_lists
from backend.ops.prefix_attention import prefix_attention
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable
from tests.backend.ops.warp_launches import by_warps

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 products wrong without a word (triton 3.7), so it is given float16.
EXACT, ROUNDED = torch.float32, torch.float16 if INTERPRETED else torch.bfloat16
LIMITS = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 1e-2}
# In the interpreter's process no mark: the tests simply run.
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu
LAYERS, LAYER, PAGES = 3, 1, 40


@dataclass(frozen=True, slots=True)
class Case:
    """Heads, query rows of each request and tokens of the last page list's pages."""

    heads: int
    kv_heads: int
    width: int
    requests: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]


# (query rows, (first token, tokens) of each page); 64 is a whole page.
WHOLE = ((0, 64), (0, 64), (0, 64))
CASES = {
    "one token of one page": Case(2, 1, 64, ((1, ((0, 1),)),)),
    "decoding a batch": Case(
        6,
        2,
        64,
        (
            (1, (*WHOLE, (0, 17))),
            (1, ((5, 40), (63, 1), (0, 64), (0, 2))),
            (1, ((0, 3),)),
            (1, (*WHOLE, *WHOLE, *WHOLE, (0, 64))),
        ),
    ),
    "guessed tokens": Case(4, 1, 128, ((3, (*WHOLE, (10, 9))), (5, ((0, 64), (0, 5))))),
    "short questions": Case(9, 3, 64, ((23, (*WHOLE, (0, 20))), (30, ((1, 62), (0, 64))))),
    "a head size that is no power of two": Case(6, 2, 80, ((2, (*WHOLE, (0, 33))),)),
}
# A kernel of its own reads for eight query rows at most, whole pages without masks.
BY_WARPS = {
    "decoding a batch": CASES["decoding a batch"],
    "no group": Case(3, 3, 64, ((1, (*WHOLE, (9, 12))), (1, ((0, 30), (63, 1), *WHOLE, (0, 2))))),
    "two rows": Case(
        4, 1, 128, ((2, (*WHOLE, (10, 9))), (1, ((3, 61), (0, 5))), (2, (*WHOLE, (0, 1))))
    ),
    "eight rows": Case(16, 2, 128, ((1, (*WHOLE, *WHOLE)), (1, ((0, 1),)), (1, ((7, 50), (0, 3))))),
    "seven rows": Case(7, 1, 64, ((1, (*WHOLE, (0, 63))), (1, ((60, 4), (0, 64))))),
}
RUNS: list[tuple[str, int | None]] = [(name, parts) for name in CASES for parts in (1, 100)]
RUNS += [("decoding a batch", None), ("decoding a batch", 3)]


def tables(length: int, width: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and signed sin as `backend.layers.rope.Rope` gives them."""
    frequencies = 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1).to(device), torch.cat((-sin, sin), -1).to(device)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tensors of a case, and the lists as they were made."""

    q: torch.Tensor
    data: torch.Tensor
    lists: PageLists
    made: tuple[PageTable, ...]
    cos: torch.Tensor
    sin: torch.Tensor

    def run(self, impl: Implementation, parts: int | None = None) -> torch.Tensor:
        return page_attention(
            self.q,
            self.data,
            LAYER,
            self.lists,
            cos=self.cos,
            sin=self.sin,
            impl=impl,
            parts=parts,
        )


def make(case: Case, dtype: torch.dtype, device: str = "cpu") -> Inputs:
    """Every token that no list names, and all other layers, are NaN."""
    pool = PagePool(KVShape(LAYERS, case.kv_heads, case.width), PAGES, dtype, device)
    pool.data.fill_(torch.nan)
    made = []
    shared = int(torch.randint(PAGES, ()))
    for _, pieces in case.requests:
        # Pages in any order, the first one shared by all requests.
        pages = [shared, *torch.randperm(PAGES).tolist()[: len(pieces) - 1]]
        refs = [
            PageRef(page, *piece) for page, piece in zip(pages[: len(pieces)], pieces, strict=True)
        ]
        made.append(PageTable(tuple(refs)))
        for ref in refs:
            place = pool.data[ref.page, LAYER, :, :, ref.first : ref.first + ref.count]
            place.copy_(torch.randn(place.shape))
    rows = [count for count, _ in case.requests]
    lists = page_lists(made, rows, device)
    cos, sin = tables(lists.positions, case.width, device)
    # As the decoder gives them: a slice of one product, so rows are far apart.
    both = case.heads + 2 * case.kv_heads
    product = torch.randn(sum(rows), both, case.width).to(device, dtype)
    return Inputs(product[:, : case.heads], pool.data, lists, tuple(made), cos, sin)


def error(out: torch.Tensor, expected: torch.Tensor) -> float:
    assert out.shape == expected.shape
    assert out.dtype == expected.dtype
    return ((out.float() - expected.float()).norm() / expected.float().norm()).item()


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


@kernels
@pytest.mark.parametrize("dtype", [EXACT, ROUNDED])
@pytest.mark.parametrize(("name", "parts"), RUNS)
def test_triton_equals_reference(
    name: str, parts: int | None, dtype: torch.dtype, device: str
) -> None:
    inputs = make(CASES[name], dtype, device)
    out = inputs.run("triton", parts)
    assert error(out, inputs.run("reference")) < LIMITS[dtype]


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("parts", [1, 3, 100, None])
@pytest.mark.parametrize("name", BY_WARPS)
def test_warps_equal_reference(
    name: str, parts: int | None, dtype: torch.dtype, device: str
) -> None:
    inputs = make(BY_WARPS[name], dtype, device)
    with by_warps("plain"):
        out = inputs.run("triton", parts)
    assert error(out, inputs.run("reference")) < LIMITS[dtype]


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_kernel_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "triton_equals", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(RUNS) * 2} passed" in done.stdout


@pytest.mark.parametrize("name", ["guessed tokens", "short questions"])
def test_reference_is_attention_on_one_buffer(name: str) -> None:
    inputs = make(CASES[name], torch.float32)
    out = inputs.run("reference")
    row = 0
    for table, (rows, _) in zip(inputs.made, CASES[name].requests, strict=True):
        gathered = [
            inputs.data[ref.page, LAYER, :, :, ref.first : ref.first + ref.count]
            for ref in table.refs
        ]
        keys, values = torch.cat(gathered, 2)
        asked = inputs.q[row : row + rows]
        cos, sin = inputs.cos[: table.tokens], inputs.sin[: table.tokens]
        keys = keys * cos + keys.roll(keys.shape[-1] // 2, -1) * sin
        rolled = asked.roll(asked.shape[-1] // 2, -1)
        asked = asked * cos[-rows:, None] + rolled * sin[-rows:, None]
        grouped = asked.view(rows, len(keys), -1, keys.shape[-1]).permute(1, 2, 0, 3)
        expected = prefix_attention(grouped, keys, values, impl="reference")
        expected = expected.permute(2, 0, 1, 3).reshape(rows, *out.shape[1:])
        torch.testing.assert_close(out[row : row + rows], expected)
        row += rows


@pytest.mark.parametrize(
    ("refs", "rows", "message"),
    [
        ([], [], "0 page lists"),
        ([(0, 0, 4)], [1, 1], "1 page lists and 2"),
        ([(0, 0, 4)], [5], "5 query rows on a list of 4"),
        ([(0, 0, 4)], [0], "0 query rows"),
        ([(0, 10, PAGE_TOKENS)], [1], "outside"),
    ],
)
def test_senseless_lists_are_refused(
    refs: list[tuple[int, int, int]], rows: list[int], message: str
) -> None:
    lists = [PageTable((PageRef(*ref),)) for ref in refs]
    with pytest.raises(ValueError, match=message):
        page_lists(lists, rows)


def test_misfits_are_refused() -> None:
    inputs = make(CASES["decoding a batch"], torch.float32)
    cos, sin = inputs.cos, inputs.sin

    def refuse(message: str, q: torch.Tensor, layer: int = 0, **options: torch.Tensor) -> None:
        given = {"cos": cos, "sin": sin} | options
        with pytest.raises(ValueError, match=message):
            page_attention(q, inputs.data, layer, inputs.lists, impl="reference", **given)

    refuse("fit", inputs.q[:, 0])
    refuse("heads of 64", inputs.q[:, :5])
    refuse("not a layer 3", inputs.q, layer=3)
    refuse("4 query rows", inputs.q[:3])
    refuse("differ", inputs.q.half())
    refuse("contiguous", inputs.q.transpose(0, 2).contiguous().transpose(0, 2))
    refuse("positions", inputs.q, cos=cos[:10])
    refuse("float32", inputs.q, sin=sin.double())
