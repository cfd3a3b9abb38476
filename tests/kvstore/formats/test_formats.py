"""Codecs: how far what comes back is from what went in, for any finite numbers; sizes; books of
names."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kvstore.formats import FORMATS, FormatName, Part, page_format
from kvstore.types import PAGE_TOKENS

PACKED: tuple[FormatName, ...] = ("fp8_tokens32", "fp8_token_head", "int8", "int4")
PARTS: tuple[Part, Part] = (0, 1)
WIDTHS = (1, 10, 33, 64, 80, 96, 128, 256, 576)
"""Channels: odd ones, GQA heads, an MLA latent."""


def rows(width: int, scale: float = 1.0, seed: int = 0, heads: int = 2) -> torch.Tensor:
    """[3, heads, 64, width] like keys: one channel is large for all tokens."""
    generator = torch.Generator().manual_seed(seed)
    made = torch.randn((3, heads, PAGE_TOKENS, width), generator=generator)
    made[..., width // 2] += 8.0
    return made * scale


def returned(
    name: FormatName, given_rows: torch.Tensor, part: Part, dtype: torch.dtype = torch.float32
) -> torch.Tensor:
    form = page_format(name, torch.bfloat16)
    cells = form.encode(given_rows, part)
    width = given_rows.shape[-1]
    assert cells.shape == (*given_rows.shape[:-2], *form.cell(width).shape)
    assert cells.dtype == form.cell(width).dtype
    return form.decode(cells, part, width, dtype)


def allowed(name: FormatName, given_rows: torch.Tensor, part: Part) -> torch.Tensor:
    """The largest error that the format may make, number by number."""
    size = given_rows.abs()
    if name == "int8":
        return size.amax(-1, keepdim=True) / 127 * 0.5001
    if name.startswith("fp8"):
        grouped = size.unflatten(-2, (2, 32) if name == "fp8_tokens32" else (64, 1))
        scale = (grouped.amax((-2, -1), keepdim=True) / 448).expand(grouped.shape).flatten(-3, -2)
        # Half a unit of three bits of mantissa; below 2 ** -6 units of the scale's 2 ** -9.
        return torch.maximum(size * 2.0**-4, scale * 2.0**-10) * 1.0001
    width = given_rows.shape[-1]
    if part == 0:
        groups, along = given_rows.unflatten(-2, (2, 32)), -2
    else:
        filled = torch.nn.functional.pad(given_rows, (0, -width % 32), value=torch.nan)
        groups, along = filled.unflatten(-1, (-1, 32)), -1
    high = groups.nan_to_num(-torch.inf).amax(along, keepdim=True)
    low = groups.nan_to_num(torch.inf).amin(along, keepdim=True)
    step = (high - low) / 15 * 2**0.125
    bound = (step * 0.5001 + low.abs() * 2.0**-8 + 1e-6).expand(groups.shape)
    return bound.flatten(-3, -2) if part == 0 else bound.flatten(-2, -1)[..., :width]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PACKED)
def test_errors_are_within_half_a_step(name: FormatName, width: int, part: Part) -> None:
    for scale in (1e-3, 1.0, 40.0):
        sent = rows(width, scale, seed=width)
        error = (returned(name, sent, part) - sent).abs()
        assert (error <= allowed(name, sent, part)).all()


@pytest.mark.parametrize(
    ("name", "most"),
    [("fp8_tokens32", 0.54), ("fp8_token_head", 0.54), ("int8", 0.54), ("int4", 0.31)],
)
@pytest.mark.parametrize("width", [64, 96, 128, 256, 576])
def test_size_against_bf16(name: FormatName, most: float, width: int) -> None:
    size = page_format(name, torch.bfloat16).cell(width).bytes
    assert size <= most * page_format("bf16", torch.bfloat16).cell(width).bytes
    assert size % 128 == 0


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", PACKED)
def test_outliers_of_600_neither_overflow_nor_drown_their_group(
    name: FormatName, part: Part
) -> None:
    generator = torch.Generator().manual_seed(5)
    sent = torch.randn((4, 3, PAGE_TOKENS, 64), generator=generator).bfloat16()
    outliers = torch.rand(sent.shape, generator=generator) < 0.01
    signs = torch.where(torch.rand(sent.shape, generator=generator) < 0.5, -600.0, 600.0)
    sent = torch.where(outliers, signs.bfloat16(), sent)
    got = returned(name, sent, part, torch.bfloat16)
    assert got.dtype == torch.bfloat16
    assert got.isfinite().all()
    error = (got.float() - sent.float()).abs()
    assert (error <= allowed(name, sent.float(), part) + got.float().abs() * 2.0**-8).all()
    if name.startswith("fp8"):
        # Beside an outlier e4m3 keeps its relative error far below it.
        small = ~outliers & (sent.abs() > 0.1)
        assert (error[small] <= sent.float().abs()[small] * 2.0**-4 * 1.07).all()


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FORMATS)
@given(
    width=st.integers(1, 70),
    exponents=st.tuples(st.integers(-120, 126), st.integers(-120, 126)),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["random", "zero", "constant", "one", "largest"]),
)
def test_finite_numbers_come_back_finite(
    name: FormatName,
    part: Part,
    width: int,
    exponents: tuple[int, int],
    seed: int,
    kind: str,
) -> None:
    sent = rows(width, seed=seed, heads=1).clamp(-1, 1)
    sent[..., ::2, :] *= 2.0 ** exponents[0]
    sent[..., 1::2, :] *= 2.0 ** exponents[1]
    if kind == "zero":
        sent.zero_()
    elif kind == "constant":
        sent.fill_(2.0 ** exponents[0])
    elif kind == "one":
        sent[0, 0, seed % 64, seed % width] = -600.0
    elif kind == "largest":
        sent[1, 0, seed % 64] = torch.finfo(torch.bfloat16).max
        sent[2, 0, seed % 32] = -torch.finfo(torch.bfloat16).max
    sent = sent.bfloat16()
    got = returned(name, sent, part, torch.bfloat16)
    assert got.isfinite().all()
    if kind == "zero":
        assert not got.any()
    elif name not in ("int4", "fp16"):
        size = sent.float().abs().amax()
        assert (got.float() - sent.float()).abs().amax() <= size * 0.07


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", FORMATS)
def test_a_fault_of_the_model_is_not_hidden(name: FormatName, bad: float) -> None:
    for part in PARTS:
        sent = rows(40)
        sent[1, 1, 37, 7] = bad
        got = returned(name, sent, part)
        assert not got[1, 1, 37, 7].isfinite()
        assert got[0].isfinite().all(), "nor does it harm other pages"


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("name", FORMATS)
@given(width=st.sampled_from(WIDTHS), seed=st.integers(0, 99))
def test_a_page_is_the_same_alone_and_token_by_token(
    name: FormatName, part: Part, width: int, seed: int
) -> None:
    form = page_format(name, torch.bfloat16)
    sent = rows(width, seed=seed).bfloat16()[:, None].expand(3, 4, 2, PAGE_TOKENS, width)
    cells = form.encode(sent, part)
    assert torch.equal(form.encode(sent[1:2, :1].clone(), part), cells[1:2, :1])
    whole = form.decode(cells, part, width, torch.bfloat16)
    assert torch.equal(
        form.decode(cells[2:, 1:].clone(), part, width, torch.bfloat16), whole[2:, 1:]
    )
    pages, slots = torch.randint(0, 3, (7,)), torch.randint(0, PAGE_TOKENS, (7,))
    single = form.decode_tokens(cells, pages, slots, part, width, torch.bfloat16)
    assert torch.equal(single, whole[pages, :, :, slots])


def test_float16_ends_at_its_largest_number() -> None:
    sent = torch.full((PAGE_TOKENS, 2), 1e6, dtype=torch.bfloat16)
    assert returned("fp16", -sent, 0).unique().tolist() == [-65504.0]


def test_every_format_has_a_name_of_its_own() -> None:
    names = [page_format(name, torch.float32).name for name in FORMATS]
    assert len(set(names)) == len(FORMATS)
    assert page_format("auto", torch.bfloat16).name == page_format("bf16", torch.float32).name
