"""What one request's attention sees of a model that keeps latents: `backend.context` for one head
whose values are the first channels of its keys, so that there is one buffer.
"""

from __future__ import annotations

import torch

from backend.config import LatentShape
from backend.layers.rope import Rope, rotate_tail
from backend.ops.latent_attention import latent_attention

_SPARE = 128
"""Room is made for at least this many tokens at a time."""


class LatentContext:
    """Latents of one request, `[layers, capacity, rank + rotated]`, rotated, `length` tokens of it
    filled."""

    def __init__(self, prefix: torch.Tensor, shape: LatentShape, rope: Rope) -> None:
        """`prefix` (before rotation): [layers, 1, n, rank + rotated]."""
        self.length = prefix.shape[2]
        self._shape = shape
        self._rope = rope
        self._tables = rope.tables(0, 0)
        self._kept = rotate_tail(prefix[:, 0], *rope.tables(0, self.length))

    def begin(self, new: int) -> None:
        """Announce `new` tokens, whose `attend` calls follow layer by layer, then `end`."""
        if self.length + new > self._kept.shape[1]:
            layers, _, width = self._kept.shape
            room = self._kept.new_empty((layers, max(new, _SPARE), width))
            self._kept = torch.cat((self._kept[:, : self.length], room), 1)
        cos, sin = self._rope.tables(self.length, self.length + new)
        self._tables = cos[:, None], sin[:, None]

    def attend(self, layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Append what is kept of one layer, return what attention read (see
        `backend.models.Attend`)."""
        last = self.length + len(qk)
        turned = rotate_tail(qk, *self._tables)
        kept = self._kept[layer]
        kept[self.length : last] = turned[:, -1]
        rank, scale = self._shape.rank, self._shape.scale
        return latent_attention(turned[:, :-1], kept[:last], rank, scale, impl="tiled").flatten(1)

    def end(self, new: int) -> None:
        """All layers of `new` tokens are in."""
        self.length += new

    def take_back(self, count: int) -> None:
        """Forget the last `count` tokens."""
        self.length -= count

    def close(self) -> None:
        """Nothing is to be given back: the tensors go with the context."""
