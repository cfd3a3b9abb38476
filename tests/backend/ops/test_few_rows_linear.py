"""Linear layers for a few rows: the kernel against the reference, and what a row may depend on."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from backend.ops.few_rows_linear import (
    MOST_ROWS,
    LinearTiles,
    choose_linear_tiles,
    few_rows_linear,
)
from backend.ops.few_rows_linear.tiles import FEWEST_ROWS, PARTS, table_of
from backend.ops.gated_unit import gated_unit
from backend.ops.row_quantise import row_quantise

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 wrong without a word (triton 3.7), so it is given float16.
ROUNDED = torch.float16 if INTERPRETED else torch.bfloat16
LIMITS = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 8e-3}
SMALL = LinearTiles(outputs=16, stages=3)
TILES = {"safe": None, "small": SMALL, "wide": LinearTiles(outputs=64, stages=2)}
SHAPES = [(1, 576, 96), (1, 63, 37), (4, 130, 65), (16, 1030, 24), (17, 111, 33), (2, 1024, 1)]
if not INTERPRETED:
    SHAPES += [(1, 14336, 4096), (3, 512, 16), (5, 60, 84), (16, 4096, 6144), (32, 96, 200)]
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu

Layer = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the kernels run; fresh memory is full of what is no number."""
    if not INTERPRETED and not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    empty = torch.empty

    def poisoned(*size: object, **options: object) -> torch.Tensor:
        made: torch.Tensor = empty(*size, **options)  # type: ignore[call-overload]
        return made.fill_(float("nan")) if made.dtype.is_floating_point else made

    monkeypatch.setattr(torch, "empty", poisoned)
    return "cpu" if INTERPRETED else "cuda"


def layer(
    rows: int, width: int, outputs: int, dtype: torch.dtype, device: str,
    *, fp8: bool, bias: bool,
) -> Layer:  # fmt: skip
    seeded = torch.Generator().manual_seed(rows * width + outputs)
    x, weight = (torch.randn(size, width, generator=seeded).to(dtype) for size in (rows, outputs))
    # Outputs of very different size have scales of their own.
    weight[0] *= 100
    values, scale = row_quantise(weight, impl="reference")
    shift = torch.randn(outputs, generator=seeded).to(device, dtype) if bias else None
    if fp8:
        return x.to(device), values.to(device), scale.flatten().to(device), shift
    return x.to(device), weight.to(device), None, shift


def error(out: torch.Tensor, expected: torch.Tensor) -> float:
    """The worse of the large output's and the others', relative to their size."""
    assert out.shape == expected.shape
    assert out.dtype == expected.dtype
    off, size = (out.float() - expected.float()), expected.float()
    parts = (slice(0, 1), slice(1, None))
    return max(float(off[:, part].norm() / size[:, part].norm()) for part in parts)


@kernels
@pytest.mark.parametrize("name", TILES)
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, ROUNDED])
def test_products_of_any_shape(name: str, fp8: bool, dtype: torch.dtype, device: str) -> None:
    for place, (rows, width, outputs) in enumerate(SHAPES):
        given = layer(rows, width, outputs, dtype, device, fp8=fp8, bias=place % 2 == 0)
        expected = few_rows_linear(*given, impl="reference")
        found = few_rows_linear(*given, impl="triton", tiles=TILES[name])
        assert error(found, expected) < LIMITS[dtype], (rows, width, outputs)


@kernels
# Of numpy, in the interpreter, for the gate that is shut.
@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, ROUNDED])
def test_gate_and_up_are_joined(fp8: bool, dtype: torch.dtype, device: str) -> None:
    shapes = [(1, 576, 96), (3, 130, 70), (17, 65, 2)]
    if not INTERPRETED:
        shapes += [(1, 4096, 28_672), (16, 4096, 28_672), (32, 96, 200)]
    for place, (rows, width, outputs) in enumerate(shapes):
        x, *rest = layer(rows, width, outputs, dtype, device, fp8=fp8, bias=place % 2 == 0)
        given = (x * width**-0.5, *rest)
        expected = few_rows_linear(*given, gated=True, impl="reference")
        assert expected.shape == (rows, outputs // 2)
        for tiles in (None, TILES["wide"]):
            found = few_rows_linear(*given, gated=True, impl="triton", tiles=tiles)
            # The first gate is large, so wide open or shut.
            off = 4 * LIMITS[dtype]
            torch.testing.assert_close(found[:, :1], expected[:, :1], rtol=off, atol=off)
            if outputs > 2:
                size = expected[:, 1:].float().norm()
                assert (found - expected)[:, 1:].float().norm() < LIMITS[dtype] * size


@kernels
def test_every_code_of_e4m3_is_taken_as_what_it_stands_for(device: str) -> None:
    # 254 numbers, each met by one row of the unit matrix alone.
    codes = torch.arange(256, dtype=torch.uint8)
    codes = codes[(codes & 0x7F) != 0x7F].view(torch.float8_e4m3fn)
    weight = codes[:, None].view(torch.uint8).repeat(1, 32).view(torch.float8_e4m3fn)
    one = torch.eye(32, dtype=ROUNDED, device=device)
    scale = torch.ones(len(codes), device=device)
    for rows in (one, one[5:6]):
        found = few_rows_linear(
            rows.contiguous(), weight.to(device), scale, impl="triton", tiles=SMALL
        )
        assert torch.equal(found, codes.to(ROUNDED).to(device).expand(len(rows), -1))


@kernels
@pytest.mark.parametrize("fp8", [False, True])
def test_a_row_knows_nothing_of_the_others(fp8: bool, device: str) -> None:
    x, weight, scale, _ = layer(16, 700, 40, ROUNDED, device, fp8=fp8, bias=False)
    before = few_rows_linear(x, weight, scale, impl="triton", tiles=SMALL)
    spoiled = x.clone()
    spoiled[3] = float("nan")
    spoiled[7] *= 10
    found = few_rows_linear(spoiled, weight, scale, impl="triton", tiles=SMALL)
    assert found[3].isnan().all()
    kept = [row for row in range(16) if row not in (3, 7)]
    assert torch.equal(found[kept], before[kept])


@pytest.mark.gpu
@pytest.mark.parametrize("fp8", [False, True])
@pytest.mark.parametrize(("width", "outputs"), [(576, 960), (4096, 4096), (700, 90)])
def test_a_row_gets_the_same_in_any_company_and_tile(width: int, outputs: int, fp8: bool) -> None:
    """Not under the interpreter, whose products are those of a BLAS."""
    x, weight, scale, bias = layer(
        MOST_ROWS, width, outputs, torch.bfloat16, "cuda", fp8=fp8, bias=True
    )
    every = few_rows_linear(x, weight, scale, bias, impl="triton")
    for rows in (1, 2, 4, 5, 16, 17, 31):
        for first in (0, MOST_ROWS - rows):
            some = x[first : first + rows].contiguous()
            found = few_rows_linear(some, weight, scale, bias, impl="triton")
            assert torch.equal(found, every[first : first + rows]), (rows, first)
    # Four stages of 64 outputs in 16 bits are more than a multiprocessor has.
    for outputs_stages in ((16, 2), (16, 4), (32, 3), (64, 2)):
        tiles = LinearTiles(*outputs_stages)
        found = few_rows_linear(x, weight, scale, bias, impl="triton", tiles=tiles)
        assert torch.equal(found, every), tiles


@pytest.mark.gpu
@pytest.mark.parametrize("rows", [1, 7])
def test_a_recorded_product(rows: int) -> None:
    tiles = LinearTiles(outputs=16, stages=4)
    given = layer(rows, 4096, 1000, torch.bfloat16, "cuda", fp8=True, bias=False)
    few_rows_linear(*given, impl="triton", tiles=tiles)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = few_rows_linear(*given, impl="triton", tiles=tiles)
    for _ in range(3):
        given[0].mul_(-0.75)
        out.fill_(float("nan"))
        graph.replay()
        torch.cuda.synchronize()
        assert error(out, few_rows_linear(*given, impl="reference")) < LIMITS[torch.bfloat16]


def test_the_reference_joins_as_the_gated_unit_does() -> None:
    given = layer(3, 40, 12, torch.bfloat16, "cpu", fp8=True, bias=True)
    expected = gated_unit(few_rows_linear(*given, impl="reference"), impl="reference")
    assert torch.equal(few_rows_linear(*given, gated=True, impl="reference"), expected)


def test_the_safe_tiles_fit_the_smallest_card() -> None:
    cpu = torch.device("cpu")
    for dtype in (torch.float32, torch.bfloat16, torch.float8_e4m3fn):
        for rows in (1, FEWEST_ROWS, 5, 16, MOST_ROWS):
            tiles = choose_linear_tiles(rows, 4096, dtype, cpu)
            padded = 1 << (rows - 1).bit_length()
            given = max(dtype.itemsize, 2)
            inputs = PARTS * (128 if given == 2 else 32)
            stage = inputs * (tiles.outputs * dtype.itemsize + padded * given)
            assert (tiles.stages - 1) * stage <= 96 << 10
    assert [table_of(rows) for rows in (1, 4, 5, 16, 17, 32)] == [
        f"{name}_rows_linear" for name in ("few", "few", "some", "some", "many", "many")
    ]


@pytest.mark.parametrize(
    ("choice", "problem"),
    [
        ({"outputs": 24}, "tile of 24"),
        ({"outputs": 8}, "tile of 8"),
        ({"stages": 0}, "stages"),
    ],
)
def test_tiles_that_can_not_be(choice: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        LinearTiles(**({"outputs": 16, "stages": 3} | choice))


def test_misfits_are_refused() -> None:
    x, weight = torch.zeros(2, 8), torch.zeros(6, 8)
    packed, scale = row_quantise(weight, impl="reference")
    with pytest.raises(ValueError, match="halves of 5"):
        few_rows_linear(x, weight[:5], gated=True, impl="reference")
    for given, problem in (
        ((x, weight[:, :7]), "rows"),
        ((torch.zeros(MOST_ROWS + 1, 8), weight), "1 to 32 rows"),
        ((torch.zeros(0, 8), weight), "1 to 32 rows"),
        ((x, torch.zeros(8, 6).t()), "contiguous"),
        ((x, weight.half()), "not torch.float32"),
        ((x, weight, scale.flatten()), "not torch.float8_e4m3fn"),
        ((x, packed, scale), "scale"),
        ((x, packed, scale.flatten(), torch.zeros(5)), "bias"),
    ):
        with pytest.raises(ValueError, match=problem):
            few_rows_linear(*given, impl="reference")  # type: ignore[arg-type]


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "products or joined or code or nothing", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "19 passed" in done.stdout
