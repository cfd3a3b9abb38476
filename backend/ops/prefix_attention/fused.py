"""torch's scaled_dot_product_attention, for GPUs and as the dense baseline.

Its causal mask starts at the first key, so the prefix is given as rows of queries whose results are
thrown away when the prefix is short, and as an explicit mask otherwise.
"""

from __future__ import annotations

import torch
from torch.nn import functional

_LONG = 65_536
"""From this many new tokens on, one key-value head at a time: they fill a GPU, and copies of all
heads together would not fit beside a long document's KV."""


def prefix_attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """See the package."""
    heads, group, new, width = q.shape
    if new >= _LONG and heads > 1:
        out = torch.empty_like(q)
        for head in range(heads):
            part = slice(head, head + 1)
            out[part] = prefix_attention(q[part], k[part], v[part])
        return out
    length = k.shape[1]
    flat = q.reshape(1, heads * group, new, width)
    keys = k.repeat_interleave(group, 0)[None]
    values = v.repeat_interleave(group, 0)[None]
    prefix = length - new
    if new == 1:
        out = functional.scaled_dot_product_attention(flat, keys, values)
    elif prefix <= new // 4:
        padded = functional.pad(flat, (0, 0, prefix, 0))
        out = functional.scaled_dot_product_attention(padded, keys, values, is_causal=True)
        out = out[:, :, prefix:]
    else:
        visible = torch.ones(new, length, dtype=torch.bool, device=q.device).tril_(prefix)
        out = functional.scaled_dot_product_attention(flat, keys, values, attn_mask=visible)
    return out.reshape(q.shape)
