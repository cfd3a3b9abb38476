"""AWQ's packed weights: the layout, the formula, and a layer that keeps them packed."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.layers.awq import AwqLinear, AwqWeight

ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""AutoAWQ's order_map: code i of an int32 is that of output ORDER[i]."""


def pack(codes: torch.Tensor) -> torch.Tensor:
    """As AutoAWQ's WQLinear_GEMM.from_linear does: [rows, n] to int32 [rows, n / 8]."""
    packed = torch.zeros(codes.shape[0], codes.shape[1] // 8, dtype=torch.int64)
    for column in range(packed.shape[1]):
        for place, output in enumerate(ORDER):
            packed[:, column] |= codes[:, column * 8 + output].long() << (place * 4)
    return torch.where(packed >= 2**31, packed - 2**32, packed).to(torch.int32)


def drawn(
    inputs: int, outputs: int, group: int, seed: int
) -> tuple[AwqWeight, torch.Tensor, torch.Tensor]:
    """A packed weight, its codes [in, out] and zeros [in / group, out]."""
    source = torch.Generator().manual_seed(seed)
    codes = torch.randint(0, 16, (inputs, outputs), generator=source)
    zeros = torch.randint(0, 16, (inputs // group, outputs), generator=source)
    scales = (torch.rand(inputs // group, outputs, generator=source) * 0.02).half()
    return AwqWeight(pack(codes), pack(zeros), scales), codes, zeros


def test_the_order_in_one_number() -> None:
    one = torch.tensor([[0x75316420]], dtype=torch.int32)
    none = torch.zeros((1, 1), dtype=torch.int32)
    weight = AwqWeight(one, none, torch.ones(1, 8, dtype=torch.float16))
    assert weight.dense().tolist() == [[0], [1], [2], [3], [4], [5], [6], [7]]


@settings(max_examples=30, deadline=None)
@given(
    groups=st.integers(1, 3),
    group=st.sampled_from([1, 32, 128]),
    eights=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_dense_is_code_less_zero_times_scale(
    groups: int, group: int, eights: int, seed: int
) -> None:
    weight, codes, zeros = drawn(groups * group, eights * 8, group, seed)
    assert (weight.group, weight.outputs) == (group, eights * 8)
    dense = weight.dense()
    assert dense.shape == (eights * 8, groups * group)
    for row in range(groups * group):
        at = row // group
        expected = (codes[row] - zeros[at]).float() * weight.scales[at].float()
        assert torch.equal(dense[:, row], expected)
    assert torch.equal(weight.dense(torch.bfloat16), dense.to(torch.bfloat16))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("outputs", [8, 1024, 2056])
@pytest.mark.parametrize("bias", [True, False])
def test_the_layer_is_the_dense_layer(outputs: int, bias: bool, dtype: torch.dtype) -> None:
    weight, _, _ = drawn(256, outputs, 128, 1)
    source = torch.Generator().manual_seed(7)
    shift = torch.randn(outputs, generator=source).to(dtype) if bias else None
    x = torch.randn(5, 256, generator=source)
    layer = AwqLinear(weight, shift, dtype)
    expected = torch.nn.functional.linear(x.to(dtype), weight.dense(dtype), shift)
    out = layer(x)
    assert out.dtype == dtype
    torch.testing.assert_close(out, expected)


def test_joined_weights_are_their_outputs_in_a_row() -> None:
    first, second = drawn(128, 24, 32, 2)[0], drawn(128, 16, 32, 3)[0]
    both = AwqWeight.joined([first, second])
    assert torch.equal(both.dense(), torch.cat((first.dense(), second.dense())))
    assert torch.equal(both.part(24, 40).dense(), second.dense())
    stored = sum(part.nbytes for part in (both.codes, both.zeros, both.scales))
    assert stored == 128 * 40 / 2 + 4 * 40 / 2 + 4 * 40 * 2


def test_a_layer_that_was_used_takes_nothing_from_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy from there can't be part of a step that a GPU has recorded."""
    layer = AwqLinear(drawn(128, 16, 32, 5)[0], None, torch.float32)
    x = torch.randn(2, 128, generator=torch.Generator().manual_seed(1))
    expected = layer(x)

    def fail(*_: object, **__: object) -> torch.Tensor:
        raise AssertionError("a tensor is made of numbers")

    with monkeypatch.context() as patch:
        patch.setattr(torch, "tensor", fail)
        found = layer(x)
    assert torch.equal(found, expected)
