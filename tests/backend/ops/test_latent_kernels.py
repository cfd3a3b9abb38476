"""The kernels of latent attention against their references.

As in `test_block_attention`, Triton's interpreter has a process of its own here, and the tests
marked `gpu` run the kernel compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from backend.layers.rope import rotate_tail
from backend.ops.block_attention import BlockRead, ReadPlan, plan_reads
from backend.ops.latent_attention import latent_attention
from backend.ops.latent_block_attention import (
    Implementation,
    Tiles,
    choose_implementation,
    latent_block_attention,
)
from backend.ops.latent_page_attention import latent_page_attention
from backend.ops.page_attention.lists import PageLists, page_lists
from backend.ops.tuning import Card, Entry, Table, find_entry, lookup, use_tables
from kvstore.pool import PagePool
from kvstore.types import KVShape, PageRef, PageTable

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 products wrong without a word (triton 3.7), so it is given float16.
EXACT, ROUNDED = torch.float32, torch.float16 if INTERPRETED else torch.bfloat16
LIMITS = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 1e-2}
# In the interpreter's process no mark: the tests simply run.
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: heads, channels that are values and that are rotated, `extra` rows, prefix lists
    and blocks."""

    heads: int
    rank: int
    rotated: int
    extra: int
    prefixes: tuple[tuple[int, ...], ...]
    blocks: tuple[BlockRead, ...]


RAGGED = (
    BlockRead(0, 41),
    BlockRead(41, 42, prefix=0, seen=9),
    BlockRead(42, 75, prefix=0, seen=20, lead=35),
    BlockRead(75, 79, prefix=1, seen=128, lead=0),
    BlockRead(79, 95, prefix=1, seen=131, lead=3),
)
LISTS = (tuple(range(20)), (*range(12), *range(20, 115), *range(30, 60)))
CASES = {
    "one token": Case(6, 32, 16, 0, (), (BlockRead(0, 1),)),
    "one token after a prefix": Case(2, 64, 32, 5, ((0, 4, 2),), (BlockRead(0, 1, 0, 3),)),
    "ragged blocks": Case(3, 64, 32, 20, LISTS, RAGGED),
    "odd widths, one head": Case(1, 24, 10, 20, LISTS, RAGGED),
    "latents of 512 and 64": Case(
        16, 512, 64, 7, (tuple(range(7)),), (BlockRead(0, 3), BlockRead(3, 14, 0, 7))
    ),
}

RUNS = [(name, None) for name in CASES] + [("ragged blocks", Tiles(16, 64, 4, 1))]


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tensors of a case."""

    q: torch.Tensor
    kept: torch.Tensor
    extra: torch.Tensor | None
    plan: ReadPlan
    rank: int
    cos: torch.Tensor
    sin: torch.Tensor

    def run(self, impl: Implementation, tiles: Tiles | None = None) -> torch.Tensor:
        return latent_block_attention(
            self.q, self.kept, self.plan, self.rank, 0.1,
            extra=self.extra, cos=self.cos, sin=self.sin, impl=impl, tiles=tiles,
        )  # fmt: skip


def make(case: Case, dtype: torch.dtype, device: str) -> Inputs:
    tokens, width = case.blocks[-1].last, case.rank + case.rotated
    generator = torch.Generator().manual_seed(6)
    # As the decoder gives them: queries and what is kept in one tensor, so rows are far apart.
    both = torch.randn((tokens, case.heads + 1, width), generator=generator).to(device, dtype)
    extra = torch.randn((case.extra, width), generator=generator).to(device, dtype)
    plan = plan_reads(
        case.blocks,
        [torch.tensor(rows) for rows in case.prefixes],
        extra_rows=case.extra,
        device=device,
    )
    return Inputs(
        both[:, :-1],
        both[:, -1],
        extra if case.extra else None,
        plan,
        case.rank,
        *tables(plan.positions, case.rotated, device),
    )


def tables(positions: int, rotated: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and signed sin as `backend.layers.rope.Rope` gives them."""
    steps = 10000.0 ** -(torch.arange(0, rotated, 2) / rotated)
    angles = torch.outer(torch.arange(positions).float(), steps)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1).to(device), torch.cat((-sin, sin), -1).to(device)


LAYERS, LAYER, PAGES = 2, 1, 12
WHOLE = (0, 64)
# Heads, channels that are values and that are rotated, and of each request its query rows and
# (first token, tokens) of each page.
LISTED = {
    "one token": (2, 32, 16, ((1, ((0, 1),)),)),
    "a batch": (
        3, 64, 32,
        ((1, (WHOLE, (5, 40), (0, 17))), (3, ((63, 1), WHOLE, (10, 9))), (1, (WHOLE,) * 5)),
    ),
    "a question": (3, 24, 10, ((11, (WHOLE, (1, 62), (0, 20))), (2, ((0, 2),)))),
    "latents of 512 and 64": (16, 512, 64, ((2, (WHOLE, (0, 30))),)),
}  # fmt: skip
LISTED_RUNS = [(name, parts) for name in LISTED for parts in (1, 4)] + [("a batch", None)]


@dataclass(frozen=True, slots=True)
class Listed:
    """Tensors of page lists, and the lists as they were made."""

    q: torch.Tensor
    data: torch.Tensor
    lists: PageLists
    made: tuple[PageTable, ...]
    rank: int
    cos: torch.Tensor
    sin: torch.Tensor

    def run(self, impl: Implementation, parts: int | None = None) -> torch.Tensor:
        return latent_page_attention(
            self.q, self.data, LAYER, self.lists, self.rank, 0.1,
            cos=self.cos, sin=self.sin, impl=impl, parts=parts,
        )  # fmt: skip


def listed(name: str, dtype: torch.dtype, device: str) -> Listed:
    """Every token that no list names, and the other layer, are NaN."""
    heads, rank, rotated, requests = LISTED[name]
    generator = torch.Generator().manual_seed(8)
    pool = PagePool(KVShape(LAYERS, 1, rank + rotated, rank), PAGES, dtype, device)
    pool.data.fill_(torch.nan)
    made = []
    for _, pieces in requests:
        pages = torch.randperm(PAGES, generator=generator).tolist()
        refs = tuple(PageRef(page, *piece) for page, piece in zip(pages, pieces, strict=False))
        made.append(PageTable(refs))
        for ref in refs:
            place = pool.data[ref.page, LAYER, 0, 0, ref.first : ref.first + ref.count]
            place.copy_(torch.randn(place.shape, generator=generator))
    rows = [count for count, _ in requests]
    lists = page_lists(made, rows, device)
    q = torch.randn((sum(rows), heads + 1, rank + rotated), generator=generator)
    return Listed(
        q.to(device, dtype)[:, :-1],
        pool.data,
        lists,
        tuple(made),
        rank,
        *tables(lists.positions, rotated, device),
    )


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a kernel does not write would show."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, **k: empty(*a, **k).fill_(torch.nan))


def check(out: torch.Tensor, expected: torch.Tensor) -> None:
    assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
    off = (out.float() - expected.float()).norm() / expected.float().norm()
    assert off.item() < LIMITS[out.dtype]


@kernels
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [EXACT, ROUNDED])
@pytest.mark.parametrize(("name", "tiles"), RUNS)
def test_triton_equals_reference_in_blocks(
    name: str, tiles: Tiles | None, dtype: torch.dtype, device: str
) -> None:
    inputs = make(CASES[name], dtype, device)
    check(inputs.run("triton", tiles), inputs.run("reference"))


@kernels
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [EXACT, ROUNDED])
@pytest.mark.parametrize(("name", "parts"), LISTED_RUNS)
def test_triton_equals_reference_on_lists(
    name: str, parts: int | None, dtype: torch.dtype, device: str
) -> None:
    inputs = listed(name, dtype, device)
    check(inputs.run("triton", parts), inputs.run("reference"))


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_latent_kernel_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "triton_equals", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{(len(RUNS) + len(LISTED_RUNS)) * 2} passed" in done.stdout


@pytest.mark.parametrize("name", LISTED)
def test_the_reference_on_lists_is_attention_on_one_buffer(name: str) -> None:
    inputs = listed(name, torch.float32, "cpu")
    out, row = inputs.run("reference"), 0
    for table, (rows, _) in zip(inputs.made, LISTED[name][3], strict=True):
        pages = [inputs.data[r.page, LAYER, 0, 0, r.first : r.first + r.count] for r in table.refs]
        cos, sin = inputs.cos[: table.tokens], inputs.sin[: table.tokens]
        asked = rotate_tail(inputs.q[row : row + rows], cos[-rows:, None], sin[-rows:, None])
        kept = rotate_tail(torch.cat(pages), cos, sin)
        expected = latent_attention(asked, kept, inputs.rank, 0.1, impl="tiled")
        torch.testing.assert_close(out[row : row + rows], expected)
        row += rows


def test_lists_that_do_not_fit_are_refused() -> None:
    inputs = listed("a batch", torch.float32, "cpu")
    good = {
        "q": inputs.q, "data": inputs.data, "layer": 0, "lists": inputs.lists, "rank": inputs.rank,
        "cos": inputs.cos, "sin": inputs.sin,
    }  # fmt: skip
    for change, pattern in (
        ({"q": inputs.q[:, 0]}, "don't fit"),
        ({"data": inputs.data.expand(-1, -1, 2, -1, -1, -1)}, "don't fit"),
        ({"rank": 96}, "latents of 96, 96 of them"),
        ({"layer": 2}, "not a layer 2"),
        ({"q": inputs.q[:2]}, "query rows"),
        ({"q": inputs.q.half()}, "differ"),
        ({"cos": inputs.cos[:9]}, "positions"),
        ({"sin": inputs.sin.double()}, "float32"),
    ):
        with pytest.raises(ValueError, match=pattern):
            latent_page_attention(**{**good, **change}, scale=0.1, impl="reference")  # type: ignore[arg-type]


def test_the_kernel_is_for_cards_that_it_was_measured_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    card = Card("Test Card 2", (7, 7))
    monkeypatch.setattr(lookup, "card_of", lambda device: card)
    device = torch.device("cpu")
    assert choose_implementation(512, torch.bfloat16, device) == "reference"
    choice = {"rows": 16, "keys": 32, "warps": 4, "stages": 1}
    entry = Entry("latent_block_attention", 512, ("bfloat16",), choice, "TFLOP/s", "", "", ())
    (tmp_path / "card.json").write_text(Table(card, (entry,)).text(), encoding="utf-8")
    try:
        use_tables(tmp_path)
        assert choose_implementation(512, torch.bfloat16, device) == "triton"
        assert choose_implementation(512, torch.float32, device) == "reference"
        assert choose_implementation(256, torch.bfloat16, device) == "reference"
    finally:
        lookup._own.clear()
        lookup._tables.cache_clear()
        find_entry.cache_clear()
