"""Linear layers against float32 products; quantisation within its own step."""

from __future__ import annotations

import pytest
import torch

from backend.layers.linear import Int8Linear, Int8WeightLinear, make_head, quantise_rows

CPU = torch.device("cpu")


def relative_error(out: torch.Tensor, expected: torch.Tensor) -> float:
    return float((out.float() - expected).norm() / expected.norm())


@pytest.mark.parametrize("rows", [1, 3, 15, 16, 17, 111])
@pytest.mark.parametrize(("width", "outputs"), [(60, 84), (576, 960), (63, 37), (1536, 576)])
@pytest.mark.parametrize("bias", [False, True])
def test_int8_equals_the_product_of_its_quantised_factors(
    rows: int, width: int, outputs: int, bias: bool
) -> None:
    weight, x = torch.randn(outputs, width), torch.randn(rows, width) * 3
    if rows > 1:
        x[0] = 0
    extra = torch.randn(outputs) if bias else None
    layer = Int8Linear(weight, extra)
    quantised = quantise_rows(x)
    expected = (quantised.values.float() * quantised.scale) @ (
        layer.values.float() * layer.scale[:, None]
    ).t()
    if extra is not None:
        expected = expected + extra
    out = layer(x)
    assert out.dtype == torch.bfloat16
    assert out.isfinite().all()
    assert relative_error(out, expected) < 5e-3


def test_rows_are_quantised_within_half_a_step() -> None:
    x = torch.randn(40, 100) * torch.logspace(-4, 4, 40)[:, None]
    rows = quantise_rows(x)
    assert rows.values.dtype == torch.int8
    assert ((rows.values.float() * rows.scale - x).abs() <= rows.scale * 0.501).all()


@pytest.mark.parametrize(("width", "outputs"), [(60, 513), (64, 512), (576, 49152), (100, 128)])
@pytest.mark.parametrize("rows", [1, 5])
def test_head_of_any_shape(width: int, outputs: int, rows: int) -> None:
    weight, x = torch.randn(outputs, width), torch.randn(rows, width)
    head = make_head(weight, "int8", CPU)
    assert isinstance(head, Int8WeightLinear) == (width % 64 == 0 and outputs % 64 == 0)
    assert relative_error(head(x), x @ weight.t()) < 2e-2
