"""The small operations of a layer: their kernels against their references."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from backend.ops.add_norm import add_norm, add_norm_rows
from backend.ops.gated_unit import gated_rows, gated_unit
from backend.ops.page_attention import PageLists
from backend.ops.page_write import page_write, place_write
from backend.ops.row_quantise import row_quantise
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
# The interpreter gets bf16 wrong without a word (triton 3.7), so it is given float16.
ROUNDED = torch.float16 if INTERPRETED else torch.bfloat16
LIMITS = {torch.float32: 1e-6, torch.float16: 2e-3, torch.bfloat16: 8e-3}
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu
both = pytest.mark.parametrize("dtype", [torch.float32, ROUNDED])


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


def error(out: torch.Tensor, expected: torch.Tensor) -> float:
    assert out.shape == expected.shape
    assert out.dtype == expected.dtype
    return ((out.float() - expected.float()).norm() / expected.float().norm()).item()


@kernels
@both
@pytest.mark.parametrize(("rows", "width"), [(1, 576), (3, 60), (5, 4096), (2, 1030)])
@pytest.mark.parametrize("adds", [True, False])
def test_add_norm(rows: int, width: int, adds: bool, dtype: torch.dtype, device: str) -> None:
    stream = torch.randn(rows, width).to(device, dtype)
    delta = torch.randn(rows, width).to(device, dtype) if adds else None
    weight = torch.randn(width).to(device)
    expected = add_norm(stream.clone(), delta, weight, 1e-5, impl="reference")
    found = add_norm(stream.clone(), delta, weight, 1e-5, impl="triton")
    for one, other in zip(found, expected, strict=True):
        assert error(one, other) < LIMITS[dtype]


@kernels
@both
@pytest.mark.parametrize(("rows", "width"), [(1, 1536), (3, 84), (2, 14336)])
def test_gated_unit(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    both_halves = torch.randn(rows, 2 * width).to(device, dtype) * 3
    found = gated_unit(both_halves, impl="triton")
    assert error(found, gated_unit(both_halves, impl="reference")) < LIMITS[dtype]


@kernels
@both
@pytest.mark.parametrize("width", [64, 80])
@pytest.mark.parametrize("rows", [1, 5, 70])
def test_page_write(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    heads, layers, layer, pages = 3, 2, 1, 9
    names = torch.randperm(pages)[:8].tolist()
    # Two lists of four pages; the first may be written from its second page on, which begins with
    # token 30 of the list; the first of its rows may be written nowhere.
    refs = [(page, 0, PAGE_TOKENS, 0) for page in names]
    entries = [(0, 4, 0, rows, 29 + rows, 1, 30), (4, 4, rows, rows, rows + 7, 4, 0)]
    lists = PageLists(
        torch.tensor(refs, dtype=torch.int32).to(device),
        torch.tensor(entries, dtype=torch.int32).to(device),
        rows=2 * rows, most_rows=rows, most_pages=4, positions=400,
    )  # fmt: skip
    product = torch.randn(2 * rows, 5 * heads, width).to(device, dtype)
    k, v = product[:, heads : 2 * heads], product[:, 3 * heads : 4 * heads]
    pools = []
    for impl in ("reference", "triton"):
        pool = PagePool(KVShape(layers, heads, width), pages, dtype, device)
        pool.data.fill_(1000)
        page_write(pool.data, layer, k, v, lists, impl=impl)  # type: ignore[arg-type]
        pools.append(pool.data.cpu())
    assert torch.equal(pools[0], pools[1])
    written = (pools[0] != 1000).sum().item()
    assert written == (2 * rows - 1) * 2 * heads * width
    for row in range(rows):
        place = pools[0][names[4 + (7 + row) // PAGE_TOKENS], layer, :, :, (7 + row) % PAGE_TOKENS]
        assert torch.equal(place, torch.stack((k[rows + row], v[rows + row])).cpu())


@kernels
@both
@pytest.mark.parametrize(("heads", "width"), [(1, 64), (3, 80), (8, 128)])
def test_place_write(heads: int, width: int, dtype: torch.dtype, device: str) -> None:
    rows, pages, layer = 41, 5, 1
    places = torch.randperm(pages * PAGE_TOKENS)[:rows].to(device)
    product = torch.randn(rows, 3 * heads, width).to(device, dtype)
    k, v = product[:, heads : 2 * heads], product[:, 2 * heads :]
    pools = []
    for impl in ("reference", "triton"):
        pool = PagePool(KVShape(2, heads, width), pages, dtype, device)
        pool.data.fill_(1000)
        page, slot = places // PAGE_TOKENS, places % PAGE_TOKENS
        place_write(pool.data, layer, k, v, page, slot, impl=impl)  # type: ignore[arg-type]
        pools.append(pool.data.cpu())
    assert torch.equal(pools[0], pools[1])
    assert (pools[0] != 1000).sum().item() == rows * 2 * heads * width


@kernels
@both
@pytest.mark.parametrize(("rows", "width"), [(1, 576), (3, 80), (4, 4096)])
def test_row_quantise(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    x = torch.randn(rows, width).to(device, dtype)
    x[0] = 0
    if rows > 1:
        x[1, 5] = 600
    values, scale = row_quantise(x, impl="triton")
    expected, expected_scale = row_quantise(x, impl="reference")
    torch.testing.assert_close(scale, expected_scale)
    assert values.dtype == torch.float8_e4m3fn
    wrong = (values.float() != expected.float()).float().mean()
    # A quotient next to the middle of two numbers may go either way. The interpreter (triton 3.7)
    # loses the carry when e4m3 rounds up to the next power of two.
    assert wrong < (0.05 if INTERPRETED else 0.01)
    if not INTERPRETED:
        torch.testing.assert_close(values.float(), expected.float(), rtol=0.13, atol=2.0**-8)
    assert torch.isfinite(values.float()).all()
    if rows > 1 and not INTERPRETED:
        assert error(values.float() * scale, x.float()) < 0.05


Rows = tuple[torch.Tensor, torch.Tensor]


def same(found: Rows, expected: Rows) -> None:
    """In float32 the sums of a row may differ in their last bit, and with them a code by one step.
    Bytes are compared, since torch compares no e4m3."""
    values, scale = found
    assert values.dtype == torch.float8_e4m3fn
    assert values.shape == expected[0].shape
    torch.testing.assert_close(scale, expected[1], rtol=1e-6, atol=0)
    codes, wanted = (one.view(torch.uint8).int() for one in (values, expected[0]))
    assert (codes - wanted).abs().max() <= 1
    assert (codes != wanted).float().mean() < 0.005


@kernels
@both
@pytest.mark.parametrize(("rows", "width"), [(1, 576), (3, 60), (2, 1030), (4, 4096)])
@pytest.mark.parametrize("adds", [True, False])
def test_add_norm_in_e4m3(
    rows: int, width: int, adds: bool, dtype: torch.dtype, device: str
) -> None:
    stream = torch.randn(rows, width).to(device, dtype)
    stream[0] = 0
    delta = torch.randn(rows, width).to(device, dtype) if adds else None
    weight = torch.randn(width).to(device)
    total, normed = add_norm(stream.clone(), delta, weight, 1e-5, impl="triton")
    found, *quantised = add_norm_rows(stream.clone(), delta, weight, 1e-5, impl="triton")
    assert torch.equal(found, total)
    same(tuple(quantised), row_quantise(normed, impl="triton"))


@kernels
def test_rows_in_e4m3_hide_no_fault(device: str) -> None:
    rows = torch.randn(3, 2 * 70).to(device, ROUNDED)
    rows[1, 9] = torch.nan
    norm = torch.ones(140, device=device)
    for scale in (
        row_quantise(rows, impl="triton")[1],
        gated_rows(rows, impl="triton")[1],
        add_norm_rows(rows.clone(), None, norm, 1e-5, impl="triton")[2],
    ):
        assert scale.isnan().flatten().tolist() == [False, True, False]


@kernels
@both
@pytest.mark.parametrize(("rows", "width"), [(1, 1536), (3, 84), (2, 14336)])
def test_gate_in_e4m3(rows: int, width: int, dtype: torch.dtype, device: str) -> None:
    both_halves = torch.randn(rows, 2 * width).to(device, dtype) * 3
    both_halves[0, 7] = 0
    expected = row_quantise(gated_unit(both_halves, impl="triton"), impl="triton")
    same(gated_rows(both_halves, impl="triton"), expected)


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_kernels_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "not interpreter", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert "70 passed" in done.stdout


def test_misfits_are_refused() -> None:
    rows = torch.zeros(2, 6)
    with pytest.raises(ValueError, match="weight"):
        add_norm(rows, None, torch.zeros(5), 1e-5, impl="reference")
    with pytest.raises(ValueError, match="delta"):
        add_norm(rows, rows[:1], torch.zeros(6), 1e-5, impl="reference")
    with pytest.raises(ValueError, match="halves"):
        gated_unit(rows[:, :5], impl="reference")
    with pytest.raises(ValueError, match="contiguous"):
        row_quantise(rows.t(), impl="reference")
