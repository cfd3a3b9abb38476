"""Packed pages: the kernels give the very bytes and numbers of the codecs.

As in `test_page_attention`, Triton's interpreter has a process of its own here, and the tests
marked `gpu` run the kernels compiled. Codes of e4m3 are made of bits, so the interpreter, which
cannot store such numbers, runs them too; the GPU's own conversion is met by the `gpu` tests alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from backend.ops.page_codec import decode_pages, encode_pages, page_rows
from kvstore.formats import FormatName, page_format
from kvstore.formats.fp8 import Fp8Format
from kvstore.formats.packed import PackedFormat
from kvstore.formats.types import Part
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, KVShape, PageRef, PageTable

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
kernels = pytest.mark.usefixtures("device") if INTERPRETED else pytest.mark.gpu
# The interpreter reads bf16 by its own conversions; float16 takes the same way through the kernel.
ROUNDED = torch.float16 if INTERPRETED else torch.bfloat16
NAMES: tuple[FormatName, ...] = ("fp8_tokens32", "fp8_token_head", "int8", "int4")
# A group of channels takes the interpreter seconds; an MLA latent has 18 of them.
LATENT = 160 if INTERPRETED else 576
ENCODED = ((33, torch.float32), (64, ROUNDED), (80, torch.float32), (LATENT, ROUNDED))
DECODED = ((10, torch.float32), (80, torch.float16), (128, torch.float32), (LATENT, torch.float16))
LAYERS, LAYER, HEADS, PAGES = 2, 1, 2, 9
BLOCKS = ((70, (7, 0)), (1, (8,)), (33, (2,)))
TOKENS = sum(tokens for tokens, _ in BLOCKS)
PARTS: tuple[Part, Part] = (0, 1)
# Of numpy, under the interpreter.
loud = pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered:RuntimeWarning")
every_format = pytest.mark.parametrize("name", NAMES)


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
    """Fresh memory is full of what is no number."""
    empty = torch.empty

    def full(*size: object, **options: object) -> torch.Tensor:
        made = empty(*size, **options)  # type: ignore[call-overload]
        return made.fill_(torch.nan) if made.is_floating_point() else made

    with monkeypatch.context() as patch:
        patch.setattr(torch, "empty", full)
        yield


def packed(name: FormatName) -> PackedFormat:
    form = page_format(name, torch.bfloat16)
    assert isinstance(form, PackedFormat)
    return form


def make_pool(name: FormatName, width: int, device: str = "cpu", latent: int = 0) -> PagePool:
    shape = KVShape(LAYERS, HEADS, width, latent) if latent else KVShape(LAYERS, HEADS, width)
    pool = PagePool(shape, PAGES, torch.float32, device, packed(name))
    pool.data.fill_(255)
    return pool


def make_rows(width: int, seed: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of all blocks as the decoder gives them, slices of one product: with a large
    channel, outliers, tokens and groups without a span, and numbers from 1e-5 to 6e4."""
    generator = torch.Generator().manual_seed(seed)
    both = torch.randn((TOKENS, 3 * HEADS, width), generator=generator)
    both[..., width // 2] += 8.0
    outliers = torch.rand(both.shape, generator=generator) < 0.01
    both[outliers] = 600.0
    both[3] = 0.0
    both[5] = 1.5
    both[7] *= 1e-5
    both[32:64] *= 1e-3
    both[71:] = both[71]
    both[80] = both[80].clamp(-1, 1) * 60_000
    both = both.to(dtype)
    return both[:, :HEADS], both[:, 2 * HEADS :]


@kernels
@every_format
@pytest.mark.parametrize(("width", "dtype"), ENCODED)
def test_kernel_gives_the_bytes_of_the_codec(
    name: FormatName, width: int, dtype: torch.dtype, device: str
) -> None:
    k, v = make_rows(width, width, dtype)
    expected, found = make_pool(name, width), make_pool(name, width, device)
    encode_pages(
        expected.data, LAYER, k, v, page_rows(BLOCKS), packed(name), impl="reference"
    )  # fmt: skip
    encode_pages(
        found.data, LAYER, k.to(device), v.to(device), page_rows(BLOCKS, device), packed(name),
        impl="triton",
    )  # fmt: skip
    differing = (expected.data != found.data.cpu()).sum().item()
    assert differing == 0, f"{differing} bytes differ"
    untouched = torch.ones(PAGES, LAYERS, dtype=torch.bool)
    untouched[[page for _, pages in BLOCKS for page in pages], LAYER] = False
    assert (found.data.cpu()[untouched] == 255).all()


@kernels
@every_format
@pytest.mark.parametrize(("width", "dtype"), DECODED)
def test_kernel_gives_the_numbers_of_the_codec(
    name: FormatName, width: int, dtype: torch.dtype, device: str, poisoned: None
) -> None:
    pool = make_pool(name, width)
    k, v = make_rows(width, width + 1, torch.float32)
    # Inside of float16, which rounds both ways alike.
    k, v = k.clamp(-600, 600), v.clamp(-600, 600)
    for layer in range(LAYERS):
        encode_pages(pool.data, layer, k, v, page_rows(BLOCKS), packed(name), impl="reference")
    pieces = ((7, 5, 40), (0, 0, 64), (2, 31, 2), (2, 63, 1))
    table = PageTable(tuple(PageRef(*piece) for piece in pieces))
    refs = refs_of(table).to(device)
    found = decode_pages(
        pool.data.to(device), refs, table.tokens, packed(name), width, dtype, impl="triton"
    )
    expected = decode_pages(
        pool.data, refs.cpu(), table.tokens, packed(name), width, dtype, impl="reference"
    )
    if name == "int4":
        # A GPU multiplies and adds in one rounding.
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-3, atol=1e-5)
    else:
        assert torch.equal(found.cpu(), expected)


@kernels
@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
@every_format
@loud
def test_a_fault_of_the_model_is_not_hidden(name: FormatName, bad: float, device: str) -> None:
    width, tokens = 40, 70
    k, v = (part[:tokens].clone() for part in make_rows(width, 3, torch.float32))
    k[10, 1, 7] = v[20, 0, 39] = bad
    pool = make_pool(name, width, device)
    encode_pages(
        pool.data,
        LAYER,
        k.to(device),
        v.to(device),
        page_rows([(tokens, (4, 7))], device),
        packed(name),
        impl="triton",
    )
    keys, values = (packed(name).decode(pool.data.cpu()[:, LAYER, part], part, width, torch.float32)
                    for part in PARTS)  # fmt: skip
    assert not keys[4, 1, 10, 7].isfinite()
    assert not values[4, 0, 20, 39].isfinite()
    assert keys[4, 0].isfinite().all()
    assert values[4, 1].isfinite().all()
    assert keys[7].isfinite().all()


@kernels
@every_format
@loud
def test_numbers_of_any_size(name: FormatName, device: str) -> None:
    """From what no scale can tell from zero to what has no room in float32's square."""
    width = 34
    generator = torch.Generator().manual_seed(9)
    exponents = torch.randint(-140, 127, (TOKENS, HEADS, 1), generator=generator)
    k = torch.randn((TOKENS, HEADS, width), generator=generator).clamp(-1, 1) * 2.0**exponents
    k[0] = torch.finfo(torch.bfloat16).max
    k[1] = -torch.finfo(torch.bfloat16).max
    expected, found = make_pool(name, width), make_pool(name, width, device)
    for pool, impl in ((expected, "reference"), (found, "triton")):
        rows = k.to(pool.data.device)
        places = page_rows(BLOCKS, pool.data.device)
        encode_pages(pool.data, LAYER, rows, rows.flip(0), places, packed(name), impl=impl)  # type: ignore[arg-type]
    assert torch.equal(expected.data, found.data.cpu())


@kernels
@every_format
def test_latents_have_keys_alone(name: FormatName, device: str) -> None:
    width = 48
    k, _ = make_rows(width, 2, torch.float32)
    both, alone = make_pool(name, width), make_pool(name, width, device, latent=32)
    assert alone.data.shape[2] == 1
    encode_pages(both.data, LAYER, k, k, page_rows(BLOCKS), packed(name), impl="reference")
    rows = k.to(device)
    places = page_rows(BLOCKS, device)
    encode_pages(alone.data, LAYER, rows, rows, places, packed(name), impl="triton")
    assert torch.equal(both.data[:, :, :1], alone.data.cpu())
    table = PageTable((PageRef(7, 0, 64),))
    decoded = decode_pages(
        alone.data, refs_of(table).to(device), 64, packed(name), width, torch.float32, impl="triton"
    )
    assert decoded.shape == (1, LAYERS, HEADS, 64, width)


def refs_of(table: PageTable) -> torch.Tensor:
    position, refs = 0, []
    for ref in table.refs:
        refs.append((ref.page, ref.first, ref.count, position))
        position += ref.count
    return torch.tensor(refs, dtype=torch.int32)


@every_format
def test_reference_is_what_the_pool_does(name: FormatName) -> None:
    width = 80
    ours, theirs = make_pool(name, width), make_pool(name, width)
    pages = torch.tensor([p for tokens, owned in BLOCKS for p in
                          torch.tensor(owned).repeat_interleave(PAGE_TOKENS)[:tokens]])  # fmt: skip
    slots = torch.cat([torch.arange(tokens) % PAGE_TOKENS for tokens, _ in BLOCKS])
    for layer in range(LAYERS):
        k, v = make_rows(width, layer, torch.bfloat16)
        encode_pages(ours.data, layer, k, v, page_rows(BLOCKS), packed(name), impl="reference")
        theirs.write_tokens(pages, slots, layer, k, v)
    assert torch.equal(ours.data, theirs.data)
    table = PageTable((PageRef(0, 1, 5), PageRef(7, 0, 64), PageRef(2, 3, 20)))
    decoded = decode_pages(
        ours.data, refs_of(table), table.tokens, packed(name), width, torch.float32,
        impl="reference",
    )  # fmt: skip
    for part, gathered in zip(decoded, ours.gather(table), strict=True):
        assert torch.equal(part, gathered)


def test_rows_of_blocks() -> None:
    assert page_rows(BLOCKS).tolist() == [
[7, 0, 64], [0, 64, 6], [8, 70, 1], [2, 71, 33]    ]  # fmt: skip
    for tokens, pages in ((65, (1,)), (64, (1, 2)), (0, ())):
        with pytest.raises(ValueError, match="do not fill"):
            page_rows([(tokens, pages)])


def test_misfits_are_refused() -> None:
    pool = make_pool("int8", 64)
    k, v = make_rows(64, 1, torch.float32)
    rows, form = page_rows(BLOCKS), packed("int8")

    def refuse(message: str, k: torch.Tensor = k, layer: int = 0, rows: torch.Tensor = rows,
               data: torch.Tensor = pool.data, form: PackedFormat = form) -> None:  # fmt: skip
        with pytest.raises(ValueError, match=message):
            encode_pages(data, layer, k, v, rows, form, impl="reference")

    refuse("don't hold 30", k=k[..., :30])
    refuse("don't fit", k=k[:, :1])
    refuse("don't fit", k=k.half())
    refuse("not a layer 2", layer=2)
    refuse("is no pool", data=pool.data[0])
    refuse(r"\[pages, 3\]", rows=rows[:, :2])
    refuse("int32", rows=rows.long())
    four = Fp8Format(4, "four")
    quarters = PagePool(pool.shape, PAGES, torch.float32, form=four)
    refuse("neither one token nor 32", data=quarters.data, form=four)
    refuse("contiguous", k=k.transpose(0, 2).contiguous().transpose(0, 2))
    with pytest.raises(ValueError, match=r"\[pages, 4\]"):
        decode_pages(pool.data, rows, 3, form, 64, torch.float32, impl="reference")


@pytest.mark.skipif(INTERPRETED, reason="this is the interpreter's process")
def test_codecs_in_the_interpreter() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not gpu", "-p", "no:cacheprovider"]
    command += ["-k", "kernel or fault or size or latents", __file__]
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{len(NAMES) * (len(ENCODED) + len(DECODED) + 4)} passed" in done.stdout
