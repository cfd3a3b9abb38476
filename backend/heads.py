"""What the runner asks of attention, whatever its heads are like: grouped or one latent.

Knows no model and no scheduling.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from backend.block_group import GroupLayout
from backend.context import Context
from backend.latent_context import LatentContext
from backend.models import Attend
from kvstore.pool import PagePool

KV = tuple[torch.Tensor, torch.Tensor]
"""Keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim]. Of latents the
values are a view of the keys."""

Keep = Callable[[int, torch.Tensor, torch.Tensor], None]
"""keep(layer, k, v): stores a layer's keys and values of the tokens that are read."""


class Heads(Protocol):
    """Attention of one model. Each method that returns an `Attend` prepares one pass of it."""

    def join(self, first: KV, second: KV) -> KV:
        """The tokens of one and then of the other."""
        ...

    def context(self, prefix: KV) -> Context | LatentContext:
        """A context that begins with `prefix`."""
        ...

    def block(self, prefix: KV, new: int, keep: Keep) -> Attend:
        """One block of `new` tokens: full causal attention inside it, and on `prefix`."""
        ...

    def group(self, prefix: KV, layout: GroupLayout, pool: PagePool) -> Attend:
        """Several blocks at once, whose KV goes to the pages that the layout says."""
        ...
