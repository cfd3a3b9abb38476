"""Bounds of pages: no key scores more, wherever its page stands; the kernels against the reference.

As in `test_page_attention`, Triton's interpreter has a process of its own here, and the tests
marked `gpu` run the kernels compiled.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backend.layers.rope import rotate
from backend.ops.page_score import Reduce, page_bounds, page_score
from kvstore.formats import FormatName, page_format
from kvstore.formats.packed import PackedFormat
from kvstore.pool import PagePool
from kvstore.types import KVShape

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu
LAYERS, LAYER, PAGES = 2, 1, 8
NAMES: tuple[FormatName, ...] = (
    "auto", "fp16", "fp8_tokens32", "fp8_token_head", "int8", "int4"
)  # fmt: skip
# Page, first token, tokens, position of the first.
REFS = ((3, 0, 64, 0), (0, 5, 20, 64), (7, 63, 1, 84), (2, 0, 64, 85), (3, 32, 32, 500))
INTERPRETED_SHAPES = ((6, 2, 64), (7, 1, 34))
"""A page takes the interpreter long."""
SHAPES = INTERPRETED_SHAPES if INTERPRETED else (*INTERPRETED_SHAPES, (4, 4, 80), (9, 3, 128))
reduces = pytest.mark.parametrize("reduce", ["max", "sum"])
shapes = pytest.mark.parametrize(("heads", "kv_heads", "width"), SHAPES)


@pytest.fixture
def device() -> str:
    """Where the kernels run."""
    if INTERPRETED:
        return "cpu"
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return "cuda"


def tables(length: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """cos and signed sin as `backend.layers.rope.Rope` gives them."""
    frequencies = 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.float32) / width)
    angles = torch.outer(torch.arange(length, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), -1), torch.cat((-sin, sin), -1)


def packed_form(name: FormatName) -> PackedFormat | None:
    form = page_format(name, torch.float32)
    return form if isinstance(form, PackedFormat) else None


def make_pool(name: FormatName, kv_heads: int, width: int, seed: int = 0) -> PagePool:
    """Full pages of keys with large channels."""
    form = page_format(name, torch.float32)
    pool = PagePool(KVShape(LAYERS, kv_heads, width), PAGES, torch.float32, form=form)
    generator = torch.Generator().manual_seed(seed)
    keys = torch.randn((PAGES * 64, kv_heads, width), generator=generator)
    keys[..., 3] += 6.0
    keys[::17] *= 20.0
    for layer in range(LAYERS):
        pool.write(range(PAGES), layer, keys + layer, keys)
    return pool


def refs_on(device: str) -> torch.Tensor:
    return torch.tensor(REFS, dtype=torch.int32).to(device)


def keys_of(pool: PagePool, ref: tuple[int, ...], width: int) -> torch.Tensor:
    """Unrotated keys [kv_heads, tokens, d] as attention sees them."""
    page, first, count, _ = ref
    keys = pool.format.decode(pool.data[page, LAYER, 0], 0, width, torch.float32)
    return keys[:, first : first + count]


@kernels
@shapes
@pytest.mark.parametrize("name", NAMES)
def test_kernel_finds_the_bounds(
    name: FormatName, heads: int, kv_heads: int, width: int, device: str
) -> None:
    pool = make_pool(name, kv_heads, width)
    form = packed_form(name)
    expected = page_bounds(pool.data, LAYER, refs_on("cpu"), width, form, impl="reference")
    found = page_bounds(
        pool.data.to(device), LAYER, refs_on(device), width, form, impl="triton"
    ).cpu()
    # A GPU multiplies and adds four-bit codes in one rounding; the product, at most the span of
    # the numbers of a group, is not rounded by itself.
    span = float(expected.max() - expected.min()) if name == "int4" else 0.0
    torch.testing.assert_close(found, expected, rtol=0.0, atol=span * 2**-24)


@kernels
@reduces
@shapes
@pytest.mark.parametrize(("rows", "first"), [(1, 700), (3, 90), (5, 20)])
@pytest.mark.parametrize("placed", [True, False])
def test_kernel_scores_as_the_reference(
    placed: bool, rows: int, first: int, heads: int, kv_heads: int, width: int, reduce: Reduce,
    device: str,
) -> None:  # fmt: skip
    pool = make_pool("auto", kv_heads, width)
    bounds = page_bounds(pool.data, LAYER, refs_on("cpu"), width, impl="reference")
    generator = torch.Generator().manual_seed(rows)
    product = torch.randn((rows, heads + 2, width), generator=generator)
    cos, sin = tables(first + rows, width)
    scores = []
    for place, impl in (("cpu", "reference"), (device, "triton")):
        q = product.to(place)[:, :heads]
        given = {"refs": refs_on(place), "first": first, "cos": cos.to(place), "sin": sin.to(place)}
        scores.append(
            page_score(
                q, bounds.to(place), impl=impl, reduce=reduce, **(given if placed else {})  # type: ignore[arg-type]
            ).cpu()
        )  # fmt: skip
    torch.testing.assert_close(scores[1], scores[0], rtol=1e-4, atol=1e-4)
    if placed and first == 20:
        # The last page begins at 500: nobody sees it.
        assert scores[1][:, -1].isneginf().all()
        assert scores[1][:, 0].isfinite().all()


@kernels
def test_a_kernel_does_not_hide_what_is_no_number(device: str) -> None:
    pool = make_pool("auto", 2, 64)
    pool.data[2, LAYER, 0, 1, 9, 40] = torch.nan
    bounds = page_bounds(pool.data.to(device), LAYER, refs_on(device), 64, impl="triton").cpu()
    assert bounds[3, 1, :, 40].isnan().all()
    bounds[3, 1, :, 40] = 0
    assert bounds.isfinite().all()


@given(
    seed=st.integers(0, 10_000),
    position=st.integers(0, 900),
    rows=st.integers(1, 3),
    reduce=st.sampled_from(["max", "sum"]),
    name=st.sampled_from(NAMES),
)
def test_no_key_scores_more_than_its_page(
    seed: int, position: int, rows: int, reduce: Reduce, name: FormatName
) -> None:
    heads, kv_heads, width = 4, 2, 16
    pool = make_pool(name, kv_heads, width, seed % 7)
    generator = torch.Generator().manual_seed(seed)
    q = torch.randn((rows, heads, width), generator=generator) * 4
    form = packed_form(name)
    bounds = page_bounds(pool.data, LAYER, refs_on("cpu"), width, form, impl="reference")
    cos, sin = tables(1_000, width)
    placed = page_score(
        q, bounds, impl="reference", reduce=reduce, refs=refs_on("cpu"), first=position,
        cos=cos, sin=sin,
    )  # fmt: skip
    free = page_score(q, bounds, impl="reference", reduce=reduce)
    asked = torch.arange(position, position + rows)
    turned = rotate(q, cos[asked, None], sin[asked, None]).view(rows, kv_heads, 2, width)
    unturned = q.view(rows, kv_heads, 2, width)
    for number, ref in enumerate(REFS):
        keys = keys_of(pool, ref, width)
        places = torch.arange(ref[3], ref[3] + ref[2])
        rotated = rotate(keys, cos[places], sin[places])
        for bound, left, right in ((placed, turned, rotated), (free, unturned, keys)):
            scores = torch.einsum("rhgd,hmd->hgrm", left, right) * width**-0.5
            if bound is placed:
                scores = scores.masked_fill(places > asked[:, None], float("-inf"))
            best = scores.amax((2, 3))
            best = best.sum(-1) if reduce == "sum" else best.amax(-1)
            slack = 1e-4 * (1 + best.abs())
            assert (bound[:, number] >= torch.where(best.isinf(), best, best - slack)).all()


def test_a_page_of_one_token_is_scored_exactly() -> None:
    pool = make_pool("auto", 2, 16)
    q = torch.randn((1, 2, 16), generator=torch.Generator().manual_seed(1))
    cos, sin = tables(200, 16)
    refs = refs_on("cpu")[2:3]
    bounds = page_bounds(pool.data, LAYER, refs, 16, impl="reference")
    score = page_score(
        q, bounds, impl="reference", refs=refs, first=150, cos=cos, sin=sin
    )  # fmt: skip
    key = rotate(keys_of(pool, REFS[2], 16)[:, 0], cos[84], sin[84])
    expected = (rotate(q[0], cos[150], sin[150]) * key).sum(-1) / 4
    torch.testing.assert_close(score[:, 0], expected)


def test_misfits_are_refused() -> None:
    pool = make_pool("auto", 2, 64)
    refs = refs_on("cpu")
    bounds = page_bounds(pool.data, LAYER, refs, 64, impl="reference")
    q = torch.zeros(2, 6, 64)
    cos, sin = tables(30, 64)
    with pytest.raises(ValueError, match="is no pool of 63"):
        page_bounds(pool.data, LAYER, refs, 63, impl="reference")
    with pytest.raises(ValueError, match="not a layer 2"):
        page_bounds(pool.data, 2, refs, 64, impl="reference")
    with pytest.raises(ValueError, match="int32"):
        page_bounds(pool.data, LAYER, refs.long(), 64, impl="reference")
    with pytest.raises(ValueError, match="don't fit"):
        page_score(q[..., :32], bounds, impl="reference")
    with pytest.raises(ValueError, match="don't fit 2 key-value heads"):
        page_score(q[:, :5], bounds, impl="reference")
    with pytest.raises(ValueError, match="float32"):
        page_score(q, bounds.half(), impl="reference")
    with pytest.raises(ValueError, match="4 refs for the bounds of 5"):
        page_score(q, bounds, impl="reference", refs=refs[:4], cos=cos, sin=sin)
    with pytest.raises(ValueError, match="cos must be"):
        page_score(q, bounds, impl="reference", refs=refs, sin=sin)
    with pytest.raises(ValueError, match="doesn't reach"):
        page_score(q, bounds, impl="reference", refs=refs, first=29, cos=cos, sin=sin)


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_scores_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "kernel", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    count = (len(NAMES) + 2 * 2 * 3) * len(INTERPRETED_SHAPES) + 1
    assert f"{count} passed" in done.stdout
