"""Runs the model: reads blocks into pages, extends the contexts of requests.

It decides nothing: what to run comes from the scheduler. Owned by the engine's thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence as SequenceOf

import torch

from backend.block_group import GroupedBlock, lay_out
from backend.context import Context
from backend.layers.rope import Rope, rotate
from backend.models import Decoder
from backend.ops.block_attention import block_attention, choose_implementation
from backend.ops.prefix_attention import Implementation, prefix_attention
from kvstore.pool import PagePool
from kvstore.types import PageTable

SINKS_KEPT = 16
"""Prefixes whose KV is kept: there is one for each language and prompt, but any client may bring
its own."""

KV = tuple[torch.Tensor, torch.Tensor]
"""Keys (before rotation) and values, each [layers, kv_heads, tokens, head_dim]."""


class Runner:
    """Model, positions and pages together."""

    def __init__(self, model: Decoder, pool: PagePool) -> None:
        self._model = model
        self._pool = pool
        self._rope = Rope(model.config, model.device)
        self._impl: Implementation = "tiled" if model.device.type == "cpu" else "fused"
        self._block_impl = choose_implementation(
            model.config.head_dim, model.compute_dtype, model.device
        )
        # The prefixes used last, least recently used first.
        self._sinks: OrderedDict[tuple[int, ...], KV] = OrderedDict()

    def sinks(self, token_ids: tuple[int, ...]) -> KV:
        """KV of a sink prefix, computed once per prefix."""
        if not token_ids:
            return self._empty()
        if token_ids not in self._sinks:
            capture = _Capture()
            self._read(token_ids, self._empty(), capture)
            self._sinks[token_ids] = capture.merged()
            while len(self._sinks) > SINKS_KEPT:
                self._sinks.popitem(last=False)
        self._sinks.move_to_end(token_ids)
        return self._sinks[token_ids]

    def read_block(
        self,
        token_ids: SequenceOf[int],
        sinks: tuple[int, ...],
        anchors: SequenceOf[tuple[int, int]],
        pages: tuple[int, ...],
    ) -> None:
        """Read one block: full causal attention inside it, on the sinks and on `anchors` ((page,
        token) places of earlier blocks), and store its KV in `pages`."""
        prefix = self.sinks(sinks)
        if anchors:
            prefix = _join(prefix, self._pool.gather_tokens(anchors))
        self._read(token_ids, prefix, _PageWriter(self._pool, pages))

    @torch.inference_mode()
    def read_blocks(
        self,
        blocks: SequenceOf[GroupedBlock],
        sinks: tuple[int, ...],
        anchors: SequenceOf[tuple[int, int]],
    ) -> None:
        """Read several blocks at once, as `read_block` would one after another.

        `anchors` are places in the pool or in the pages of these very blocks; each block sees as
        many of them as it says. What the pages held before is overwritten.
        """
        prefix = self.sinks(sinks)
        device = self._model.device
        group = lay_out(blocks, prefix[0].shape[2], anchors, device)
        if group.outside:
            prefix = _join(prefix, self._pool.gather_tokens(group.outside))
        keys, values = (part.transpose(1, 2) for part in prefix)
        cos, sin = self._rope.tables(0, group.plan.positions)

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            kv_heads = v.shape[1]
            q, k = qk[:, :-kv_heads], qk[:, -kv_heads:]
            self._pool.write_tokens(group.pages, group.slots, layer, k, v)
            extra = (keys[layer], values[layer]) if group.plan.extra_rows else None
            read = block_attention(
                q, k, v, group.plan, extra=extra, cos=cos, sin=sin, impl=self._block_impl
            )
            return read.flatten(1)

        self._model.forward(group.token_ids, attend, cache_only=True)

    def open_context(
        self,
        sinks: tuple[int, ...],
        anchors: SequenceOf[tuple[int, int]],
        table: PageTable,
    ) -> Context:
        """A context of sinks, anchors and pages."""
        prefix = self.sinks(sinks)
        if anchors:
            prefix = _join(prefix, self._pool.gather_tokens(anchors))
        if table.refs:
            prefix = _join(prefix, self._pool.gather(table))
        return Context(*prefix, self._rope, self._impl)

    @torch.inference_mode()
    def extend(
        self, contexts: SequenceOf[Context], token_ids: SequenceOf[SequenceOf[int]]
    ) -> list[torch.Tensor]:
        """Append tokens to each context; returns the hidden states [tokens, hidden] of each."""
        counts = [len(ids) for ids in token_ids]
        for context, new in zip(contexts, counts, strict=True):
            context.begin(new)

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            if len(contexts) == 1:
                return contexts[0].attend(layer, qk, v)
            parts = zip(contexts, qk.split(counts), v.split(counts), strict=True)
            return torch.cat([context.attend(layer, qks, vs) for context, qks, vs in parts])

        flat = [id_ for ids in token_ids for id_ in ids]
        hidden = self._model.forward(torch.tensor(flat, device=self._model.device), attend)
        for context, new in zip(contexts, counts, strict=True):
            context.end(new)
        return list(hidden.split(counts))

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocab], float32, on the CPU."""
        return self._model.logits(hidden).cpu()

    @torch.inference_mode()
    def _read(self, token_ids: SequenceOf[int], prefix: KV, sink: _Capture | _PageWriter) -> None:
        keys, values = prefix
        start, new = keys.shape[2], len(token_ids)
        cos, sin = self._rope.tables(0, start + new)
        prefix_keys = rotate(keys, cos[:start], sin[:start])
        cos, sin = cos[start:, None], sin[start:, None]

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            kv_heads, width = v.shape[1:]
            sink.store(layer, qk[:, -kv_heads:], v)
            rotated = rotate(qk, cos, sin)
            q, k = rotated[:, :-kv_heads], rotated[:, -kv_heads:]
            grouped = q.view(new, kv_heads, -1, width).permute(1, 2, 0, 3)
            seen_k = torch.cat((prefix_keys[layer], k.transpose(0, 1)), 1)
            seen_v = torch.cat((values[layer], v.transpose(0, 1)), 1)
            out = prefix_attention(grouped.contiguous(), seen_k, seen_v, impl=self._impl)
            return out.permute(2, 0, 1, 3).reshape(new, -1)

        ids = torch.tensor(token_ids, device=self._model.device)
        self._model.forward(ids, attend, cache_only=True)

    def _empty(self) -> KV:
        config = self._model.config
        size = (config.layers, config.kv_heads, 0, config.head_dim)
        empty = torch.empty(size, dtype=self._model.compute_dtype, device=self._model.device)
        return empty, empty


class _Capture:
    """Keeps the KV of every layer in memory (for the sinks)."""

    def __init__(self) -> None:
        self._keys: list[torch.Tensor] = []
        self._values: list[torch.Tensor] = []

    def store(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        self._keys.append(k.transpose(0, 1).clone())
        self._values.append(v.transpose(0, 1).clone())

    def merged(self) -> KV:
        return torch.stack(self._keys), torch.stack(self._values)


class _PageWriter:
    """Stores the KV of every layer in pages."""

    def __init__(self, pool: PagePool, pages: tuple[int, ...]) -> None:
        self._pool = pool
        self._pages = pages

    def store(self, layer: int, k: torch.Tensor, v: torch.Tensor) -> None:
        self._pool.write(self._pages, layer, k, v)


def _join(first: KV, second: KV) -> KV:
    return torch.cat((first[0], second[0]), 2), torch.cat((first[1], second[1]), 2)
