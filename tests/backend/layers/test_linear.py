"""Linear layers against float32 products; quantisation within its own step."""

from __future__ import annotations

import pytest
import torch

from backend.layers.linear import (
    DenseLinear,
    FewRows,
    Fp8Linear,
    Int8Linear,
    head_rows,
    make_linear,
    quantise_rows,
)
from backend.layers.weight_only import (
    Int4WeightLinear,
    Int8WeightLinear,
    make_weight_only,
)
from backend.ops.few_rows_linear import MOST_ROWS, few_rows_linear
from backend.ops.row_quantise import row_quantise


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


@pytest.mark.parametrize(("width", "outputs"), [(60, 513), (64, 512), (576, 4096), (100, 128)])
@pytest.mark.parametrize("rows", [1, 5])
@pytest.mark.parametrize("bias", [False, True])
def test_weight_only_layer_of_any_shape(width: int, outputs: int, rows: int, bias: bool) -> None:
    weight, x = torch.randn(outputs, width), torch.randn(rows, width)
    extra = torch.randn(outputs) if bias else None
    layer = make_weight_only(weight, extra)
    assert isinstance(layer, Int8WeightLinear) == (width % 64 == 0 and outputs % 64 == 0)
    expected = torch.nn.functional.linear(x, weight, extra)
    assert relative_error(layer(x), expected) < 2e-2


@pytest.mark.parametrize("rows", [1, 7, 15])
@pytest.mark.parametrize("bias", [False, True])
def test_weights_from_four_bits_are_kept_as_they_are(rows: int, bias: bool) -> None:
    steps, lows = torch.rand(128, 6, 1) * 0.02 + 0.001, torch.randn(128, 6, 1) * 0.1
    codes = torch.randint(0, 16, (128, 6, 32))
    codes[..., 3], codes[..., 17] = 0, 15
    codes[5, 2] = 9  # a group of one level
    weight = (codes * steps + lows).flatten(1)
    extra = torch.randn(128) if bias else None
    layer = make_weight_only(weight, extra)
    assert isinstance(layer, Int4WeightLinear)
    x = torch.randn(rows, 192)
    expected = torch.nn.functional.linear(x, weight, extra)
    assert relative_error(layer(x), expected) < 1e-2
    assert Int4WeightLinear.exact(weight + torch.randn_like(weight) * 1e-3, extra) is None


@pytest.mark.parametrize("rows", [1, 7, 64])
@pytest.mark.parametrize("bias", [False, True])
def test_fp8_stays_close_to_the_product(rows: int, bias: bool) -> None:
    weight, x = torch.randn(96, 64).bfloat16(), torch.randn(rows, 64).bfloat16() * 3
    # Rows of very different size have scales of their own.
    weight[3] *= 100
    x[0] *= 1e-3
    extra = torch.randn(96) if bias else None
    out = Fp8Linear(weight, extra)(x)
    values, scale = row_quantise(x, impl="reference")
    weights, scales = row_quantise(weight, impl="reference")
    quantised = (values.float() * scale) @ (weights.float() * scales).t()
    expected = x.float() @ weight.float().t()
    if extra is not None:
        quantised, expected = quantised + extra, expected + extra
    assert out.dtype == torch.bfloat16
    assert relative_error(out, quantised) < 5e-3
    assert relative_error(out[:, 4:], expected[:, 4:]) < 0.06
    if extra is None:
        assert relative_error(out[0, 4:], expected[0, 4:]) < 0.06


def test_fp8_leaves_odd_shapes_dense() -> None:
    made = [
        make_linear("bfloat16", torch.device("cpu"), torch.randn(*size), form="fp8")
        for size in ((96, 64), (97, 64), (96, 60))
    ]
    assert [type(layer) for layer in made] == [Fp8Linear, DenseLinear, DenseLinear]


@pytest.mark.parametrize("bias", [False, True])
def test_few_rows_of_fp8_layers_stay_as_they_are(bias: bool) -> None:
    torch.manual_seed(7)
    weight, x = torch.randn(96, 64).bfloat16(), torch.randn(MOST_ROWS + 1, 64).bfloat16() * 3
    extra = torch.randn(96) if bias else None
    usual, few = Fp8Linear(weight, extra), Fp8Linear(weight, extra, few_rows=True)
    expected = x.float() @ weight.float().t()
    if extra is not None:
        expected = expected + extra
    for rows in (1, MOST_ROWS):
        errors = [relative_error(one(x[:rows]), expected[:rows]) for one in (few, usual)]
        assert errors[0] < 0.9 * errors[1]
    values, scale = row_quantise(weight, impl="reference")
    exact = few_rows_linear(
        x[:5], values, scale.flatten(), None if extra is None else extra.bfloat16(),
        impl="reference",
    )  # fmt: skip
    assert torch.equal(few(x[:5]), exact)
    assert few(x[:5].float()).dtype == torch.bfloat16
    assert torch.equal(few(x), usual(x))


@pytest.mark.parametrize("rows", [0, 1, MOST_ROWS, MOST_ROWS + 1])
def test_few_rows_of_dense_layers(rows: int) -> None:
    torch.manual_seed(rows)
    weight, extra = torch.randn(37, 60).bfloat16(), torch.randn(37).bfloat16()
    x = torch.randn(60, rows).t()
    usual, few = DenseLinear(weight, extra), DenseLinear(weight, extra, few_rows=True)
    out = few(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out, usual(x), rtol=2e-2, atol=2e-2)


def test_few_rows_are_for_gpus() -> None:
    weight = torch.randn(96, 64)
    for form in ("dense", "fp8"):
        made = make_linear(
            "bfloat16", torch.device("cpu"), weight, form=form, few_rows="all"  # type: ignore[arg-type]
        )  # fmt: skip
        assert isinstance(made, DenseLinear | Fp8Linear)
        assert not made._few_rows


def test_the_head_takes_few_rows_where_fp8_layers_do() -> None:
    choices: tuple[FewRows, ...] = ("library", "fp8", "all")
    assert [head_rows("fp8", choice) for choice in choices] == ["library", "all", "all"]
    # Layers in 16 bits are left to the library, and the head is one.
    assert [head_rows("dense", choice) for choice in choices] == list(choices)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_few_rows_on_a_gpu(precision: str) -> None:
    weight, device = torch.randn(96, 64), torch.device("cuda")

    def few(form: str, few_rows: str) -> bool:
        made = make_linear(precision, device, weight, form=form, few_rows=few_rows)  # type: ignore[arg-type]
        assert isinstance(made, DenseLinear | Fp8Linear)
        assert made(torch.randn(3, 64, device=device)).isfinite().all()
        return made._few_rows

    choices = ("library", "fp8", "all")
    assert [few("fp8", choice) for choice in choices] == [False, True, True]
    assert [few("dense", choice) for choice in choices] == [False, False, precision == "bfloat16"]
