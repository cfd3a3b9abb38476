"""A few tokens' attention on a partly filled buffer against the reference."""

from __future__ import annotations

import pytest
import torch

from backend.ops.decode_attention import decode_attention


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("new", [1, 2, 5])
@pytest.mark.parametrize(
    ("heads", "group", "capacity", "filled", "width"),
    [(3, 3, 130, 1, 64), (1, 1, 6, 1, 10), (2, 7, 1000, 990, 128), (3, 3, 640, 512, 64)],
)
def test_equals_reference(
    heads: int, group: int, capacity: int, filled: int, width: int, new: int, dtype: torch.dtype
) -> None:
    q = torch.randn(heads, group, new, width).to(dtype)
    k, v = torch.randn(2, heads, capacity, width).to(dtype).unbind(0)
    hidden = torch.zeros(new, capacity, dtype=dtype)
    for row in range(new):
        hidden[row, filled + row :] = float("-inf")
    expected = decode_attention(q.float(), k.float(), v.float(), hidden, impl="reference")
    k[:, filled + new - 1 :] = 1e4  # what is hidden counts for nothing, however large
    v[:, filled + new - 1 :] = 1e4
    out = decode_attention(q, k, v, hidden, impl="tiled")
    assert out.dtype == dtype
    error = (out.float() - expected).norm() / expected.norm()
    assert error < (1e-5 if dtype == torch.float32 else 1e-2)


def test_misfits_are_refused() -> None:
    with pytest.raises(ValueError, match="fit"):
        decode_attention(
            torch.zeros(2, 2, 2, 8),
            torch.zeros(2, 5, 8),
            torch.zeros(2, 5, 8),
            torch.zeros(1, 5),
            impl="tiled",
        )
