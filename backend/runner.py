"""Runs the model: reads blocks into pages, extends the contexts of requests.

It decides nothing: what to run comes from the scheduler. Owned by the engine's thread.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from functools import partial
from typing import Literal, cast

import torch

from backend.block_group import GroupedBlock, lay_out
from backend.context import Context
from backend.drawing import Draw
from backend.grouped_heads import GroupedHeads
from backend.heads import KV, Heads, Keep
from backend.latent_context import LatentContext
from backend.latent_heads import LatentHeads
from backend.layers.rope import Rope
from backend.lookup import GUESSED, GUESSED_IN_PAGES
from backend.models import Attend, Decoder
from backend.ops.page_attention import page_lists
from backend.ops.page_codec import decode_pages
from backend.paged.arena import Arena, PagedContext
from backend.paged.step import BATCHES, ROWS, SCORED_ROWS, PagedStep, StepRows
from kvstore.formats.packed import PackedFormat
from kvstore.pool import PagePool
from kvstore.types import PAGE_TOKENS, PageRef, PageTable

SINKS_KEPT = 16
"""Prefixes whose KV is kept: there is one for each language and prompt, but any client may bring
its own."""

AnyContext = Context | LatentContext | PagedContext

LONGEST_GROUPED = 4_096
"""Tokens of a block that counts as one of many on a GPU; a longer one is a document that somebody
wants read densely, which torch's kernels do."""

WARM_UP_TOKENS = (1_024, 8_192, 32_768)
"""Tokens of the groups that are read before anybody waits: a few blocks for a question, and the
largest group beside questions and alone."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What the model says after some tokens of one context: `logits` [n, vocab] in any float dtype,
    to be read before the next step, and the likeliest token of each row with its log-probability,
    where the device has told them; `drawn` are those of the token that it drew after the last
    row."""

    logits: torch.Tensor
    best: tuple[tuple[int, float] | None, ...]
    drawn: tuple[int, float] | None = None


class Runner:
    """Model, positions and pages together."""

    def __init__(
        self,
        model: Decoder,
        pool: PagePool,
        arena: Arena | None = None,
        *,
        device_draws: bool = False,
    ) -> None:
        """With an arena, contexts stand in its pages as long as it has room; with `device_draws`
        tokens after them are drawn where the logits are."""
        self._device_draws = device_draws
        self._model = model
        self._pool = pool
        rope = Rope(model.config, model.device)
        latent = model.config.latent
        self._packed_kernels = arena is not None and arena.packed is not None
        # The bytes and numbers of the formats' codecs on a CPU, several times as fast as in torch.
        on_gpu = model.device.type == "cuda"
        self._codec_kernels = self._packed_kernels or (on_gpu and latent is None)
        self._heads: Heads = (
            GroupedHeads(model, rope, codec_kernels=self._codec_kernels)
            if latent is None
            else LatentHeads(latent, rope)
        )
        self._arena = arena
        self._step = None if arena is None else PagedStep(model, rope, arena)
        self.look: Callable[[], None] | None = None
        """Called before each layer of a step outside of the arena; what it raises ends the step."""
        # The prefixes used last, least recently used first.
        self._sinks: OrderedDict[tuple[int, ...], KV] = OrderedDict()

    @property
    def context_bytes(self) -> int:
        """Bytes of the arena."""
        return 0 if self._arena is None else self._arena.bytes

    @property
    def longest_grouped(self) -> int:
        """Up to this many tokens a single block too is best read by `read_blocks`."""
        return 0 if self._model.device.type == "cpu" else LONGEST_GROUPED

    @property
    def guessed(self) -> int:
        """Tokens worth guessing: beside reading the weights a few rows more cost a GPU nothing."""
        return GUESSED if self._step is None else GUESSED_IN_PAGES

    def settle(self) -> None:
        """Wait until all that was begun is done. Steps follow one another anyway; this is for who
        tells the time."""
        if self._model.device.type == "cuda":
            torch.cuda.current_stream(self._model.device).synchronize()

    @torch.inference_mode()
    def warm_up(self, block_tokens: int) -> None:
        """Compile and record what the first requests would wait for. Does nothing on a CPU."""
        if self._model.device.type == "cpu":
            return
        if self._step is not None:
            rows = [(1, rows) for rows in ROWS]
            self._step.record([*rows, *((batch, 1) for batch in BATCHES[1:])])
        sinks = (0,) * 24
        for tokens in WARM_UP_TOKENS:
            count = max(tokens // block_tokens, 1)
            each = -(-block_tokens // PAGE_TOKENS)
            if count * each > self._pool.free:
                break
            pages = self._pool.allocate(count * each)
            try:
                blocks = [
                    GroupedBlock((0,) * block_tokens, pages[at * each : (at + 1) * each])
                    for at in range(count)
                ]
                self.read_blocks(blocks, sinks, [])
                # The kernel that decodes pages, where there is one.
                self._gathered(PageTable((PageRef(pages[0], 0, PAGE_TOKENS),)))
            finally:
                self._pool.release(pages)
        self._sinks.pop(sinks, None)
        torch.cuda.synchronize()

    def sinks(self, token_ids: tuple[int, ...]) -> KV:
        """KV of a sink prefix, computed once per prefix."""
        if not token_ids:
            return self._empty()
        if token_ids not in self._sinks:
            capture = _Capture()
            self._read(token_ids, self._empty(), capture.store)
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
            prefix = self._heads.join(prefix, self._pool.gather_tokens(anchors))
        self._read(token_ids, prefix, partial(self._pool.write, pages))

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
            prefix = self._heads.join(prefix, self._pool.gather_tokens(group.outside))
        attend = self._watched(self._heads.group(prefix, group, self._pool))
        self._model.forward(group.token_ids, attend, cache_only=True)

    def full_for(self, seen: int, room: int) -> bool:
        """Whether a context that sees `seen` tokens, to which at most `room` are appended, had
        better wait for others to end: outside of the arena every step would be slow."""
        return self._arena is not None and self._arena.full_for(seen + _with_spare(room))

    def open_context(
        self,
        sinks: tuple[int, ...],
        anchors: SequenceOf[tuple[int, int]],
        table: PageTable,
        room: int = 0,
    ) -> AnyContext:
        """A context of sinks, anchors and pages, to which at most `room` tokens are appended."""
        prefix = self.sinks(sinks)
        if anchors:
            prefix = self._heads.join(prefix, self._pool.gather_tokens(anchors))
        if table.refs and self._arena is not None and self._packed_kernels:
            paged = self._arena.open(prefix, _with_spare(room), (self._pool, table))
            if paged is not None:
                return paged
        if table.refs:
            prefix = self._heads.join(prefix, self._gathered(table))
        if self._arena is not None:
            paged = self._arena.open(prefix, _with_spare(room))
            if paged is not None:
                return paged
        return self._heads.context(prefix)

    def _gathered(self, table: PageTable) -> KV:
        """KV of a page list, in the model's dtype."""
        pool = self._pool
        if not self._codec_kernels or not isinstance(pool.format, PackedFormat):
            return pool.gather(table)
        refs = page_lists([table], [1], pool.data.device).refs
        impl: Literal["triton", "reference"] = "triton" if pool.data.is_cuda else "reference"
        width = pool.shape.head_dim
        keys, values = decode_pages(
            pool.data, refs, table.tokens, pool.format, width, pool.dtype, impl=impl
        )
        return keys, values

    def step(
        self,
        contexts: SequenceOf[AnyContext],
        token_ids: SequenceOf[SequenceOf[int]],
        *,
        last_only: bool = False,
        draws: SequenceOf[Draw | None] = (),
    ) -> list[Scored]:
        """Append tokens to each context; what the model says after each of them, or after the last
        one only. When it fails no context is longer than before. `draws`: how a token may be drawn
        after each context's last one."""
        lengths = [context.length for context in contexts]
        try:
            return self._stepped(contexts, token_ids, last_only, draws)
        except BaseException:
            # Of many contexts those of the first launch may be: their tokens would come twice.
            for context, length in zip(contexts, lengths, strict=True):
                context.take_back(context.length - length)
            raise

    def _stepped(
        self,
        contexts: SequenceOf[AnyContext],
        token_ids: SequenceOf[SequenceOf[int]],
        last_only: bool,
        draws: SequenceOf[Draw | None],
    ) -> list[Scored]:
        if self._step is None or not all(isinstance(one, PagedContext) for one in contexts):
            return self._step_apart(contexts, token_ids, last_only)
        asked = draws if self._device_draws else ()
        paged = cast("SequenceOf[PagedContext]", contexts)
        scored: list[Scored] = []
        parts = range(0, len(paged), BATCHES[-1])
        for first in parts:
            last = first + BATCHES[-1]
            for rows in self._step.run(
                paged[first:last], token_ids[first:last], draws=asked[first:last]
            ):
                scored.append(_scored(rows, last_only, keep=len(parts) > 1))
        return scored

    def _step_apart(
        self,
        contexts: SequenceOf[AnyContext],
        token_ids: SequenceOf[SequenceOf[int]],
        last_only: bool,
    ) -> list[Scored]:
        """Contexts in pages, if there are any, and the others in two steps."""
        apart = [place for place, one in enumerate(contexts) if isinstance(one, PagedContext)]
        found: dict[int, Scored] = {}
        if apart:
            rows = self._stepped(
                [contexts[place] for place in apart],
                [token_ids[place] for place in apart],
                last_only,
                (),
            )
            found = dict(zip(apart, rows, strict=True))
        others = [place for place in range(len(contexts)) if place not in found]
        hidden = self.extend(
            [contexts[place] for place in others], [token_ids[place] for place in others]
        )
        if last_only:
            hidden = [rows[-1:] for rows in hidden]
        logits = self.logits(torch.cat(hidden)).split([len(rows) for rows in hidden])
        for place, rows in zip(others, logits, strict=True):
            found[place] = Scored(rows, (None,) * len(rows))
        return [found[place] for place in range(len(contexts))]

    @torch.inference_mode()
    def extend(
        self, contexts: SequenceOf[AnyContext], token_ids: SequenceOf[SequenceOf[int]]
    ) -> list[torch.Tensor]:
        """Append tokens to each context; returns the hidden states [tokens, hidden] of each, to be
        read before the next step. Of contexts in pages it takes one at a time."""
        if self._step is not None and isinstance(contexts[0], PagedContext):
            (context,), (ids,) = cast("SequenceOf[PagedContext]", contexts), token_ids
            parts = [
                self._step.run([context], [ids[at : at + ROWS[-1]]], tell=False)[0].hidden.clone()
                for at in range(0, len(ids), ROWS[-1])
            ]
            return [torch.cat(parts)]
        return self._extend(cast("SequenceOf[Context | LatentContext]", contexts), token_ids)

    def _extend(
        self,
        contexts: SequenceOf[Context | LatentContext],
        token_ids: SequenceOf[SequenceOf[int]],
    ) -> list[torch.Tensor]:
        counts = [len(ids) for ids in token_ids]
        for context, new in zip(contexts, counts, strict=True):
            context.begin(new)

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            if len(contexts) == 1:
                return contexts[0].attend(layer, qk, v)
            parts = zip(contexts, qk.split(counts), v.split(counts), strict=True)
            return torch.cat([context.attend(layer, qks, vs) for context, qks, vs in parts])

        flat = [id_ for ids in token_ids for id_ in ids]
        ids = torch.tensor(flat, device=self._model.device)
        hidden = self._model.forward(ids, self._watched(attend))
        for context, new in zip(contexts, counts, strict=True):
            context.end(new)
        return list(hidden.split(counts))

    @torch.inference_mode()
    def logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Logits [n, vocab], float32, on the CPU."""
        return self._model.logits(hidden).cpu()

    @torch.inference_mode()
    def log_probabilities(
        self, hidden: torch.Tensor, token_ids: SequenceOf[int]
    ) -> list[tuple[float, bool]]:
        """Of each token after the hidden state of the same row, and whether it is the one that
        greedy decoding takes there (of equals the first)."""
        logits = self._model.logits(hidden)
        wanted = torch.tensor(token_ids, device=logits.device)[:, None]
        told = logits.log_softmax(-1).gather(1, wanted)[:, 0].tolist()
        greedy = logits.argmax(-1, keepdim=True) == wanted
        return list(zip(told, greedy[:, 0].tolist(), strict=True))

    @torch.inference_mode()
    def _read(self, token_ids: SequenceOf[int], prefix: KV, keep: Keep) -> None:
        attend = self._watched(self._heads.block(prefix, len(token_ids), keep))
        ids = torch.tensor(token_ids, device=self._model.device)
        self._model.forward(ids, attend, cache_only=True)

    def _watched(self, attend: Attend) -> Attend:
        look = self.look
        if look is None:
            return attend

        def looked(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            look()
            return attend(layer, qk, v)

        return looked

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


def _with_spare(room: int) -> int:
    """A step's tokens are filled up, and those that were guessed need room too."""
    return room + min(room, ROWS[-1]) + max(GUESSED_IN_PAGES, SCORED_ROWS) + 1


def _scored(rows: StepRows, last_only: bool, *, keep: bool) -> Scored:
    logits = rows.logits.clone() if keep else rows.logits
    best: tuple[tuple[int, float] | None, ...] = rows.best or (None,) * len(logits)
    if last_only:
        logits, best = logits[-1:], best[-1:]
    return Scored(logits, best, rows.drawn)
