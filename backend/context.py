"""What one request's attention sees: rotated keys and values, growing token by token.

A context begins with sinks, anchors and evidence pages, gathered once and rotated to consecutive
positions; then the question and the answer are appended. It knows no scheduling.
"""

from __future__ import annotations

import torch

from backend.layers.rope import Rope, rotate
from backend.ops.decode_attention import decode_attention
from backend.ops.prefix_attention import Implementation, prefix_attention

_FEW = 15
"""Up to this many new tokens are read against the whole buffer at once."""

_SPARE = 128
"""Room is made for this many tokens at a time: decoding reads it, masked, so it must stay short."""


class Context:
    """KV of one request, `[layers, kv_heads, capacity, head_dim]`, `length` tokens of it filled."""

    def __init__(
        self,
        prefix_keys: torch.Tensor,
        prefix_values: torch.Tensor,
        rope: Rope,
        impl: Implementation,
    ) -> None:
        """`prefix_keys` (before rotation) and `prefix_values`: [layers, kv_heads, n, head_dim]."""
        self.length = prefix_keys.shape[2]
        self._rope = rope
        self._impl: Implementation = impl
        self._tables = rope.tables(0, 0)
        cos, sin = rope.tables(0, self.length)
        self._keys = rotate(prefix_keys, cos, sin)
        self._values = prefix_values
        self._hidden = prefix_keys.new_zeros((1, self.length))

    def begin(self, new: int) -> None:
        """Announce `new` tokens, whose `attend` calls follow layer by layer, then `end`."""
        if self.length + new > self._keys.shape[2]:
            self._grow(new if new > _FEW else _SPARE)
        cos, sin = self._rope.tables(self.length, self.length + new)
        self._tables = cos[:, None], sin[:, None]
        if new <= _FEW:
            self._hidden = self._mask(new)

    def attend(self, layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """Append one layer's k and v, return what attention read (see `backend.models.Attend`)."""
        new, kv_heads, width = v.shape
        first, last = self.length, self.length + new
        keys, values = self._keys[layer], self._values[layer]
        rotated = rotate(qk, *self._tables)
        keys[:, first:last] = rotated[:, -kv_heads:].transpose(0, 1)
        values[:, first:last] = v.transpose(0, 1)
        q = rotated[:, :-kv_heads]
        grouped = q.view(new, kv_heads, -1, width).permute(1, 2, 0, 3)
        if new <= _FEW:
            out = decode_attention(grouped, keys, values, self._hidden, impl=self._impl)
        else:
            out = prefix_attention(
                grouped.contiguous(), keys[:, :last], values[:, :last], impl=self._impl
            )
        return out.permute(2, 0, 1, 3).reshape(new, -1)

    def end(self, new: int) -> None:
        """All layers of `new` tokens are in."""
        self.length += new

    def take_back(self, count: int) -> None:
        """Forget the last `count` tokens."""
        self.length -= count

    def close(self) -> None:
        """Nothing is to be given back: the tensors go with the context."""

    def _mask(self, new: int) -> torch.Tensor:
        """[new, capacity]: what each of `new` tokens must not see, -inf."""
        capacity = self._keys.shape[2]
        mask = self._keys.new_full((new, capacity), float("-inf"))
        return mask.triu_(self.length + 1)

    def _grow(self, more: int) -> None:
        layers, heads, _, width = self._keys.shape
        # Zeros, since masked values are still multiplied.
        room = self._keys.new_zeros((layers, heads, more, width))
        filled = slice(0, self.length)
        self._keys = torch.cat((self._keys[:, :, filled], room), 2)
        self._values = torch.cat((self._values[:, :, filled], room), 2)
