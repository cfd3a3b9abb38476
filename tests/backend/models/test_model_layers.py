"""What norms and gates give to linear layers in FP8, against the same in separate steps."""

from __future__ import annotations

import pytest
import torch

from backend.layers.linear import DenseLinear, Fp8Linear, Linear
from backend.models.layers import GatedMlp, Norm
from backend.ops.add_norm import add_norm
from backend.ops.gated_unit import gated_unit
from backend.ops.row_quantise import row_quantise

HIDDEN, INNER, EPS = 64, 96, 1e-5
WEIGHTS = torch.Generator().manual_seed(3)


def weight(outputs: int, inputs: int) -> torch.Tensor:
    return torch.randn(outputs, inputs, generator=WEIGHTS)


def rows(count: int, width: int = HIDDEN) -> torch.Tensor:
    return torch.randn(count, width, generator=torch.Generator().manual_seed(count))


@pytest.fixture
def quantised(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows an FP8 layer quantised by itself, at each call."""
    counts: list[int] = []

    def counted(x: torch.Tensor, **settings: object) -> tuple[torch.Tensor, torch.Tensor]:
        counts.append(len(x))
        return row_quantise(x, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr("backend.layers.linear.row_quantise", counted)
    return counts


@pytest.mark.parametrize("count", [1, 3, 33, 40])
@pytest.mark.parametrize("given", [True, False])
def test_a_norm_goes_into_a_layer_in_e4m3(count: int, given: bool, quantised: list[int]) -> None:
    norm = Norm(torch.rand(HIDDEN) + 0.5, EPS, "reference")
    layer = Fp8Linear(weight(32, HIDDEN), few_rows=True)
    quantised.clear()
    delta = rows(count).flip(0) if given else None
    stream, product = norm.into(layer, rows(count), delta)
    assert quantised == []
    total, normed = add_norm(rows(count), delta, norm.weight, EPS, impl="reference")
    assert torch.equal(stream, total)
    assert torch.equal(product, layer(normed))
    # A few rows stay in bfloat16.
    assert quantised == ([] if count <= 32 else [count])


def test_a_norm_goes_into_other_layers_as_it_is() -> None:
    norm = Norm(torch.ones(HIDDEN), EPS, "reference")
    layer = DenseLinear(weight(32, HIDDEN))
    stream, product = norm.into(layer, rows(40), None)
    assert torch.equal(stream, rows(40))
    assert torch.equal(product, layer(norm(rows(40), None)[1]))


@pytest.mark.parametrize("fp8", ["both", "gate_up", "down", "neither"])
def test_a_gate_goes_into_a_layer_in_e4m3(fp8: str, quantised: list[int]) -> None:
    def layer(name: str, outputs: int, inputs: int) -> Linear:
        made = weight(outputs, inputs)
        return Fp8Linear(made) if fp8 in ("both", name) else DenseLinear(made)

    mlp = GatedMlp(layer("gate_up", 2 * INNER, HIDDEN), layer("down", HIDDEN, INNER), "reference")
    quantised.clear()
    found = mlp(rows(40))
    # Gate and up get rows as they are here, since no norm stands before them.
    assert quantised == ([40] if fp8 in ("both", "gate_up") else [])
    inner = gated_unit(mlp.gate_up(rows(40)), impl="reference")
    assert torch.equal(found, mlp.down(inner))


@pytest.mark.parametrize("count", [1, 32, 33])
def test_gate_and_up_of_a_few_rows_are_joined_in_their_product(
    count: int, quantised: list[int]
) -> None:
    gate_up, down = (
        Fp8Linear(weight(outputs, inputs), few_rows=True)
        for outputs, inputs in ((2 * INNER, HIDDEN), (HIDDEN, INNER))
    )
    mlp = GatedMlp(gate_up, down, "reference")
    assert (mlp.joining(count) is gate_up) == (count <= 32)
    assert GatedMlp(DenseLinear(weight(8, 4)), down, "reference").joining(count) is None
    quantised.clear()
    found = mlp(rows(count).bfloat16())
    assert quantised == ([] if count <= 32 else [count])
    inner = gated_unit(gate_up(rows(count).bfloat16()), impl="reference")
    assert torch.equal(found, down(inner))
