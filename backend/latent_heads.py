"""Attention of models that keep one latent of a token (multi-head latent attention).

Everything is in torch: on a GPU it works, at no speed worth measuring, but for reading blocks on
cards that the kernel was measured on (see `latent_block_attention`).
"""

from __future__ import annotations

import torch

from backend.block_group import GroupLayout
from backend.config import LatentShape
from backend.heads import KV, Keep
from backend.latent_context import LatentContext
from backend.layers.rope import Rope, rotate_tail
from backend.models import Attend
from backend.ops.latent_attention import latent_attention
from backend.ops.latent_block_attention import choose_implementation, latent_block_attention
from kvstore.pool import PagePool


class LatentHeads:
    """See `backend.heads.Heads`."""

    def __init__(self, shape: LatentShape, rope: Rope) -> None:
        self._shape = shape
        self._rope = rope

    def join(self, first: KV, second: KV) -> KV:
        """See `Heads`."""
        kept = torch.cat((first[0], second[0]), 2)
        return kept, kept[..., : self._shape.rank]

    def context(self, prefix: KV) -> LatentContext:
        """See `Heads`."""
        return LatentContext(prefix[0], self._shape, self._rope)

    def block(self, prefix: KV, new: int, keep: Keep) -> Attend:
        """See `Heads`."""
        rank, scale = self._shape.rank, self._shape.scale
        kept = prefix[0][:, 0]
        start = kept.shape[1]
        cos, sin = self._rope.tables(0, start + new)
        before = rotate_tail(kept, cos[:start], sin[:start])
        cos, sin = cos[start:, None], sin[start:, None]

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            keep(layer, qk[:, -1:], v)
            turned = rotate_tail(qk, cos, sin)
            seen = torch.cat((before[layer], turned[:, -1]))
            return latent_attention(turned[:, :-1], seen, rank, scale, impl="tiled").flatten(1)

        return attend

    def group(self, prefix: KV, layout: GroupLayout, pool: PagePool) -> Attend:
        """See `Heads`."""
        rank, scale = self._shape.rank, self._shape.scale
        kept = prefix[0][:, 0]
        plan = layout.plan
        impl = choose_implementation(rank, kept.dtype, kept.device)
        cos, sin = self._rope.tables(0, plan.positions)

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            pool.write_tokens(layout.pages, layout.slots, layer, qk[:, -1:], v)
            extra = kept[layer] if plan.extra_rows else None
            q, own = qk[:, :-1], qk[:, -1]
            read = latent_block_attention(
                q, own, plan, rank, scale, extra=extra, cos=cos, sin=sin, impl=impl
            )
            return read.flatten(1)

        return attend
