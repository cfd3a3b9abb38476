"""Block reading attention: each implementation against the reference, the reference against dense
attention.

Triton decides when it is imported whether it compiles or interprets, so the kernels run here in a
process of their own, under its interpreter; on a GPU the tests marked `gpu` run them compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import torch

from backend.ops.block_attention import (
    BlockRead,
    HopperTiles,
    Implementation,
    ReadPlan,
    Tiles,
    block_attention,
    choose_implementation,
    plan_reads,
)
from backend.ops.block_attention.reference import in_e4m3
from backend.ops.prefix_attention import prefix_attention

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 products wrong without a word (triton 3.7), so it is given float16.
EXACT, ROUNDED = torch.float32, torch.float16 if INTERPRETED else torch.bfloat16
LIMITS = {torch.float32: 1e-5, torch.float16: 3e-3, torch.bfloat16: 1e-2}
# In the interpreter's process no mark: the tests simply run.
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu


@dataclass(frozen=True, slots=True)
class Case:
    """One launch: `extra` rows, prefix lists and blocks, and the heads."""

    heads: int
    kv_heads: int
    width: int
    extra: int
    prefixes: tuple[tuple[int, ...], ...]
    blocks: tuple[BlockRead, ...]


RAGGED = (
    BlockRead(0, 111),
    BlockRead(111, 112, prefix=0, seen=9),
    BlockRead(112, 175, prefix=0, seen=20, lead=50),
    BlockRead(175, 303, prefix=1, seen=128, lead=0),
    BlockRead(303, 430, prefix=1, seen=131, lead=3),
)
LISTS = (tuple(range(20)), (*range(12), *range(20, 20 + 140)))
CASES = {
    "one block, nothing before it": Case(4, 1, 64, 0, (), (BlockRead(0, 63),)),
    "one token": Case(6, 2, 64, 0, (), (BlockRead(0, 1),)),
    "one token after a prefix": Case(2, 2, 128, 5, ((0, 4, 2),), (BlockRead(0, 1, 0, 3),)),
    "ragged blocks, groups of 3": Case(6, 2, 64, 20, LISTS, RAGGED),
    "ragged blocks, groups of 4": Case(8, 2, 128, 20, LISTS, RAGGED),
    "ragged blocks, groups of 7": Case(7, 1, 64, 20, LISTS, RAGGED),
    "a long block": Case(2, 1, 64, 16, (tuple(range(16)),), (BlockRead(0, 1000, 0, 16),)),
}
NARROW = {
    "a head size that is no power of two": Case(3, 3, 80, 20, LISTS, RAGGED),
    "wide heads": Case(2, 1, 256, 20, LISTS, RAGGED[:3]),
}
RUNS = [(name, Tiles(128, 128, 8, 2)) for name in (CASES | NARROW)]
# Small tiles meet more edges, but the interpreter is slow.
RUNS += [(name, Tiles(16, 16, 4, 1)) for name in CASES if name.startswith("one ")]
RUNS += [("ragged blocks, groups of 3", Tiles(64, 32, 4, 2))]
CODED_RUNS = [
    ("one token after a prefix", Tiles(16, 16, 4, 1)),
    ("ragged blocks, groups of 3", Tiles(128, 128, 8, 2)),
    ("a head size that is no power of two", Tiles(64, 32, 4, 2)),
]
# Where e4m3 is multiplied the weights of the softmax are rounded to it as well.
CODED_LIMIT = 1e-3 if INTERPRETED else 3e-2


def tables(length: int, width: int, device: str) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and signed sin as `backend.layers.rope.Rope` gives them."""
    frequencies = 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1).to(device), torch.cat((-sin, sin), -1).to(device)


@dataclass(frozen=True, slots=True)
class Inputs:
    """Tensors of a case."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    extra: tuple[torch.Tensor, torch.Tensor] | None
    plan: ReadPlan
    cos: torch.Tensor
    sin: torch.Tensor

    def run(
        self,
        impl: Implementation,
        tiles: Tiles | HopperTiles | None = None,
        *,
        fp8: bool = False,
    ) -> torch.Tensor:
        return block_attention(
            self.q,
            self.k,
            self.v,
            self.plan,
            extra=self.extra,
            cos=self.cos,
            sin=self.sin,
            impl=impl,
            tiles=tiles,
            fp8=fp8,
        )


def make(case: Case, dtype: torch.dtype, device: str = "cpu") -> Inputs:
    tokens = case.blocks[-1].last
    # As the decoder gives them: slices of one product, so rows are far apart.
    both = case.heads + case.kv_heads
    product = torch.randn(tokens, both + case.kv_heads, case.width).to(device, dtype)
    extra = None
    if case.extra:
        size = (2, case.extra, case.kv_heads, case.width)
        extra_k, extra_v = torch.randn(size).to(device, dtype).unbind(0)
        extra = extra_k, extra_v
    plan = plan_reads(
        case.blocks,
        [torch.tensor(rows) for rows in case.prefixes],
        extra_rows=case.extra,
        device=device,
    )
    cos, sin = tables(plan.positions, case.width, device)
    q, k, v = product.split((case.heads, case.kv_heads, case.kv_heads), 1)
    return Inputs(q, k, v, extra, plan, cos, sin)


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


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fresh memory is full of NaN, so that what a kernel doesn't write shows."""
    for owner in (torch, torch.Tensor):
        name = "empty" if owner is torch else "new_empty"
        plain = getattr(owner, name)

        def filled(*args: object, plain: object = plain, **kwargs: object) -> torch.Tensor:
            tensor: torch.Tensor = plain(*args, **kwargs)  # type: ignore[operator]
            return tensor.fill_(torch.nan) if tensor.is_floating_point() else tensor

        monkeypatch.setattr(owner, name, filled)
    yield


@kernels
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [EXACT, ROUNDED])
@pytest.mark.parametrize(("name", "tiles"), RUNS)
def test_triton_equals_reference(name: str, tiles: Tiles, dtype: torch.dtype, device: str) -> None:
    case = (CASES | NARROW)[name]
    if not INTERPRETED and tiles.keys * case.width * dtype.itemsize > 32_768:
        tiles = Tiles(32, 16, 4, 1)  # what shared memory holds
    inputs = make(case, dtype, device)
    assert error(inputs.run("triton", tiles), inputs.run("reference")) < LIMITS[dtype]


@kernels
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [EXACT, ROUNDED])
@pytest.mark.parametrize(("name", "tiles"), CODED_RUNS)
def test_e4m3_equals_reference(name: str, tiles: Tiles, dtype: torch.dtype, device: str) -> None:
    inputs = make((CASES | NARROW)[name], dtype, device)
    # Rows of very different size: each has a scale of its own.
    inputs.v[::3] *= 50
    inputs.k[1::4] *= 0.01
    expected = inputs.run("reference", fp8=True)
    assert error(inputs.run("triton", tiles, fp8=True), expected) < CODED_LIMIT


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize(
    ("impl", "fp8"),
    [
        pytest.param("triton", False, marks=() if INTERPRETED else pytest.mark.gpu),
        pytest.param("triton", True, marks=() if INTERPRETED else pytest.mark.gpu),
        pytest.param("hopper", False, marks=pytest.mark.gpu),
    ],
)
def test_rows_of_no_view_are_not_read(impl: Implementation, fp8: bool, device: str) -> None:
    inputs = make(CASES["ragged blocks, groups of 4"], ROUNDED, device)
    assert inputs.extra is not None
    tiles = Tiles(128, 128, 8, 2) if impl == "triton" else None
    expected = inputs.run(impl, tiles, fp8=fp8)
    # One more document whose values are NaN, and NaN rows of `extra` that no list names.
    bad = torch.full_like(inputs.q[:70, :1], torch.nan)
    q, k, v = (
        torch.cat((kept, more.expand(-1, kept.shape[1], -1)))
        for kept, more in (
            (inputs.q, torch.ones_like(bad)),
            (inputs.k, torch.ones_like(bad)),
            (inputs.v, bad),
        )
    )
    unnamed = [torch.cat((rows, bad[:9].expand(-1, rows.shape[1], -1))) for rows in inputs.extra]
    shifted = [torch.where(rows >= 20, rows + 9, rows) for rows in inputs.plan.prefixes]
    blocks = [*inputs.plan.blocks, BlockRead(430, 500, lead=0)]
    plan = plan_reads(blocks, shifted, extra_rows=29, device=device)
    cos, sin = tables(plan.positions, 128, device)
    more = Inputs(q, k, v, (unnamed[0], unnamed[1]), plan, cos, sin)
    out = more.run(impl, tiles, fp8=fp8)
    torch.testing.assert_close(out[:430], expected, rtol=0, atol=0)
    assert out[430:].isnan().all()


@pytest.mark.gpu
@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_hopper_equals_reference(case: Case, dtype: torch.dtype, device: str) -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("needs compute capability 9.0")
    inputs = make(case, dtype, device)
    assert error(inputs.run("hopper"), inputs.run("reference")) < LIMITS[dtype]


@pytest.mark.gpu
def test_hopper_does_not_change_from_run_to_run(device: str) -> None:
    if torch.cuda.get_device_capability()[0] != 9:
        pytest.skip("needs compute capability 9.0")
    blocks = [
        BlockRead(first, first + 1000, seen=64 * index, lead=0)
        for index, first in enumerate(range(0, 20_000, 1000))
    ]
    inputs = make(Case(8, 2, 128, 1216, (tuple(range(1216)),), tuple(blocks)), ROUNDED, device)
    first = inputs.run("hopper")
    assert error(first, inputs.run("reference")) < LIMITS[ROUNDED]
    for _ in range(20):
        assert torch.equal(inputs.run("hopper"), first)


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "triton_equals or e4m3_equals or not_read", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(RUNS) * 2 + len(CODED_RUNS) * 2 + 2} passed" in done.stdout


def test_rows_in_e4m3() -> None:
    x = torch.randn(50, 64) * torch.logspace(-20, 20, 50)[:, None]
    x[7] = 0
    x[8] = torch.linspace(-448, 448, 64)
    found = in_e4m3(x)
    peak = x.abs().amax(-1, keepdim=True)
    # Three bits of mantissa, and below 2 ** -6 of a scale of at least peak / 448 steps of 2 ** -9.
    assert ((found - x).abs() <= torch.maximum(x.abs() * 2.0**-4, peak / 224 * 2.0**-10)).all()
    assert torch.equal(in_e4m3(found), found)
    assert torch.equal(in_e4m3(x[3:9])[2:], found[5:9])
    # A power of two as its scale.
    assert torch.equal(in_e4m3(x * 8), found * 8)


def test_e4m3_stays_close_to_attention() -> None:
    inputs = make(CASES["ragged blocks, groups of 3"], torch.float32)
    off = error(inputs.run("reference", fp8=True), inputs.run("reference"))
    assert 0.01 < off < 0.08


def test_block_that_is_the_whole_document_is_dense_attention() -> None:
    inputs = make(Case(6, 2, 64, 0, (), (BlockRead(0, 200),)), torch.float64)
    out = inputs.run("reference")
    q, k = (rotated(x, inputs) for x in (inputs.q, inputs.k))
    grouped = q.view(200, 2, 3, 64).permute(1, 2, 0, 3)
    dense = prefix_attention(grouped, k.transpose(0, 1), inputs.v.transpose(0, 1), impl="reference")
    torch.testing.assert_close(out, dense.permute(2, 0, 1, 3).reshape(200, 6, 64))


def test_prefix_of_all_earlier_tokens_is_dense_attention() -> None:
    # Budget = everything: both as a prefix list and as the tokens before the block.
    whole = make(Case(6, 2, 64, 0, (), (BlockRead(0, 200),)), torch.float64)
    expected = whole.run("reference")
    listed = tuple(range(130))
    for blocks in (
        (BlockRead(0, 130), BlockRead(130, 200, seen=130)),
        (BlockRead(0, 130), BlockRead(130, 200, lead=130)),
        (BlockRead(0, 130), BlockRead(130, 200, seen=100, lead=30)),
    ):
        plan = plan_reads(blocks, [torch.tensor(listed)])
        out = block_attention(
            whole.q, whole.k, whole.v, plan, cos=whole.cos, sin=whole.sin, impl="reference"
        )
        torch.testing.assert_close(out, expected)
        assert plan.scores == 200 * 201 // 2


def rotated(x: torch.Tensor, inputs: Inputs) -> torch.Tensor:
    cos, sin = inputs.cos[: len(x), None].double(), inputs.sin[: len(x), None].double()
    return x * cos + x.roll(x.shape[-1] // 2, -1) * sin


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ([], "at least one block"),
        ([BlockRead(1, 5)], "start at token 0"),
        ([BlockRead(0, 5), BlockRead(6, 8)], "start at token 5"),
        ([BlockRead(0, 5), BlockRead(5, 5)], "at least one token"),
        ([BlockRead(0, 5, lead=1)], "no 1 tokens before"),
        ([BlockRead(0, 5, prefix=2, seen=1)], "2 prefix lists"),
        ([BlockRead(0, 5, seen=4)], "has 3 rows"),
        ([BlockRead(0, 3), BlockRead(3, 5, prefix=1, seen=1)], "outside"),
    ],
)
def test_senseless_plans_are_refused(blocks: list[BlockRead], message: str) -> None:
    prefixes = [torch.tensor([0, 1, 2]), torch.tensor([0, 9])]
    with pytest.raises(ValueError, match=message):
        plan_reads(blocks, prefixes, extra_rows=1)


def test_misfits_are_refused() -> None:
    inputs = make(CASES["ragged blocks, groups of 3"], torch.float32)
    q, k, v, plan, cos, sin = (
        inputs.q,
        inputs.k,
        inputs.v,
        inputs.plan,
        inputs.cos,
        inputs.sin,
    )
    extra = inputs.extra
    assert extra is not None

    def refuse(message: str, *tensors: torch.Tensor, **options: object) -> None:
        given: dict[str, object] = {"extra": extra, "cos": cos, "sin": sin} | options
        with pytest.raises(ValueError, match=message):
            block_attention(*tensors, plan, impl="reference", **given)  # type: ignore[arg-type]

    refuse("fit", q, k[:5], v)
    refuse("heads of 64", q[:, :5], k, v)
    refuse("430 tokens", q[:5], k[:5], v[:5])
    refuse("20 extra rows", q, k, v, extra=None)
    refuse("extra", q, k, v, extra=(extra[0], extra[1][:, :1]))
    refuse("differ", q, k.half(), v)
    refuse("contiguous", q, k, v.transpose(0, 2).contiguous().transpose(0, 2))
    refuse("positions", q, k, v, cos=cos[:10])
    refuse("float32 rows", q, k, v, sin=sin.double())
    with pytest.raises(ValueError, match="power of two"):
        Tiles(24, 16, 4, 1)
    with pytest.raises(ValueError, match="keys of a tile"):
        Tiles(16, 256, 4, 1)


def test_hopper_says_what_it_needs() -> None:
    case = Case(2, 1, 64, 0, (), (BlockRead(0, 5),))
    with pytest.raises(ValueError, match=r"capability 9\.0"):
        make(case, torch.float16).run("hopper")
    with pytest.raises(ValueError, match="16 bit"):
        make(case, torch.float32).run("hopper")
    with pytest.raises(ValueError, match="no e4m3"):
        make(case, torch.float16).run("hopper", fp8=True)
    with pytest.raises(ValueError, match="takes HopperTiles"):
        make(case, torch.float16).run("hopper", Tiles(64, 32, 4, 2))
    with pytest.raises(ValueError, match="takes Tiles"):
        make(case, torch.float16).run("triton", HopperTiles(2, 128, 2, 168, 240))


def test_cpu_gets_the_reference() -> None:
    assert choose_implementation(64, torch.bfloat16, torch.device("cpu")) == "reference"
