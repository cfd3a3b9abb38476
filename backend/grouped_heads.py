"""Attention of models whose query heads share keys and values in groups, or have their own."""

from __future__ import annotations

from typing import Literal

import torch

from backend.block_group import GroupLayout
from backend.context import Context
from backend.heads import KV, Keep
from backend.layers.rope import Rope, rotate
from backend.models import Attend, Decoder
from backend.ops.block_attention import block_attention, choose_implementation
from backend.ops.page_codec import encode_pages
from backend.ops.page_write import place_write
from backend.ops.prefix_attention import Implementation, prefix_attention
from kvstore.formats.packed import PackedFormat
from kvstore.pool import PagePool

_ROTATED = 65_536
"""Tokens that are rotated at a time: the arithmetic takes several times their memory."""


class GroupedHeads:
    """See `backend.heads.Heads`."""

    def __init__(self, model: Decoder, rope: Rope, *, codec_kernels: bool = False) -> None:
        """With `codec_kernels` pages in packed formats are made by one kernel a layer."""
        self._rope = rope
        self._codec_kernels = codec_kernels
        self._on_gpu = model.device.type == "cuda"
        self._impl: Implementation = "tiled" if model.device.type == "cpu" else "fused"
        self._block_impl = choose_implementation(
            model.config.head_dim, model.compute_dtype, model.device
        )

    def join(self, first: KV, second: KV) -> KV:
        """See `Heads`."""
        return torch.cat((first[0], second[0]), 2), torch.cat((first[1], second[1]), 2)

    def context(self, prefix: KV) -> Context:
        """See `Heads`."""
        return Context(*prefix, self._rope, self._impl)

    def block(self, prefix: KV, new: int, keep: Keep) -> Attend:
        """See `Heads`."""
        keys, values = prefix
        start = keys.shape[2]
        cos, sin = self._rope.tables(0, start + new)
        prefix_keys = rotate(keys, cos[:start], sin[:start])
        cos, sin = cos[start:, None], sin[start:, None]

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            kv_heads, width = v.shape[1:]
            keep(layer, qk[:, -kv_heads:], v)
            rotated = torch.empty_like(qk)
            for first in range(0, new, _ROTATED):
                part = slice(first, first + _ROTATED)
                rotated[part] = rotate(qk[part], cos[part], sin[part])
            q, k = rotated[:, :-kv_heads], rotated[:, -kv_heads:]
            grouped = q.view(new, kv_heads, -1, width).permute(1, 2, 0, 3)
            seen_k = torch.cat((prefix_keys[layer], k.transpose(0, 1)), 1)
            seen_v = torch.cat((values[layer], v.transpose(0, 1)), 1)
            grouped = grouped.contiguous()
            # Gigabytes each when a long document is read densely.
            del rotated, q, k
            out = prefix_attention(grouped, seen_k, seen_v, impl=self._impl)
            del grouped, seen_k, seen_v
            return out.permute(2, 0, 1, 3).reshape(new, -1)

        return attend

    def group(self, prefix: KV, layout: GroupLayout, pool: PagePool) -> Attend:
        """See `Heads`."""
        keys, values = (part.transpose(1, 2) for part in prefix)
        cos, sin = self._rope.tables(0, layout.plan.positions)

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            kv_heads = v.shape[1]
            q, k = qk[:, :-kv_heads], qk[:, -kv_heads:]
            if self._on_gpu and pool.format.plain:
                place_write(pool.data, layer, k, v, layout.pages, layout.slots, impl="triton")
            elif self._codec_kernels and isinstance(pool.format, PackedFormat):
                impl: Literal["triton", "reference"] = "triton" if self._on_gpu else "reference"
                encode_pages(pool.data, layer, k, v, layout.page_rows, pool.format, impl=impl)
            else:
                pool.write_tokens(layout.pages, layout.slots, layer, k, v)
            extra = (keys[layer], values[layer]) if layout.plan.extra_rows else None
            read = block_attention(
                q, k, v, layout.plan, extra=extra, cos=cos, sin=sin, impl=self._block_impl
            )
            return read.flatten(1)

        return attend
