"""Each implementation against the reference, and the reference against plain attention."""

from __future__ import annotations

import pytest
import torch

from backend.ops.prefix_attention import Implementation, prefix_attention

# (kv_heads, group, new tokens, prefix, head_dim): odd on purpose; 127 to 129 are the tile's edge.
SHAPES = [
    (1, 1, 1, 0, 64),
    (3, 3, 1, 111, 64),
    (2, 3, 63, 0, 10),
    (3, 3, 127, 65, 64),
    (1, 8, 128, 1, 128),
    (2, 1, 129, 1000, 96),
    (3, 3, 300, 40, 64),
]


def make(shape: tuple[int, int, int, int, int], dtype: torch.dtype) -> list[torch.Tensor]:
    kv_heads, group, new, prefix, width = shape
    q = torch.randn(kv_heads, group, new, width)
    k, v = torch.randn(2, kv_heads, prefix + new, width).unbind(0)
    return [t.to(dtype) for t in (q, k, v)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("impl", ["tiled", "fused"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equals_reference(
    shape: tuple[int, int, int, int, int], impl: Implementation, dtype: torch.dtype
) -> None:
    q, k, v = make(shape, dtype)
    expected = prefix_attention(q.float(), k.float(), v.float(), impl="reference")
    out = prefix_attention(q, k, v, impl=impl)
    assert out.shape == q.shape
    assert out.dtype == dtype
    error = (out.float() - expected).norm() / expected.norm()
    assert error < (1e-5 if dtype == torch.float32 else 1e-2)


@pytest.mark.parametrize("impl", ["reference", "tiled", "fused"])
def test_token_does_not_see_later_ones(impl: Implementation) -> None:
    q, k, v = make((2, 2, 200, 30, 32), torch.float32)
    before = prefix_attention(q, k, v, impl=impl)
    k[:, 130:] = torch.nan
    v[:, 130:] = torch.nan
    after = prefix_attention(q[:, :, :100], k[:, :130], v[:, :130], impl=impl)
    torch.testing.assert_close(after, before[:, :, :100], atol=1e-5, rtol=1e-5)


def test_reference_is_plain_attention_in_double() -> None:
    q, k, v = make((1, 1, 5, 2, 8), torch.float64)
    out = prefix_attention(q, k, v, impl="reference")[0, 0]
    for row in range(5):
        seen = 2 + row + 1
        weights = torch.softmax(k[0, :seen] @ q[0, 0, row] / 8**0.5, 0)
        torch.testing.assert_close(out[row], weights @ v[0, :seen])


def test_misfits_are_refused() -> None:
    q, k, v = make((2, 2, 8, 4, 16), torch.float32)
    with pytest.raises(ValueError, match="fit"):
        prefix_attention(q, k[:1], v[:1], impl="tiled")
    with pytest.raises(ValueError, match="fit"):
        prefix_attention(q, k[:, :7], v[:, :7], impl="tiled")
