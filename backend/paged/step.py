"""One step of the model for several paged contexts: new tokens in, hidden states and scores out.

A step has one of a few shapes, so many contexts by so many tokens; what is missing is filled up.
Everything that changes from step to step is one small tensor of integers that is copied to the
device, so on a GPU a shape is recorded once (a CUDA graph) and then replayed: a step costs one
launch instead of hundreds, and the host waits for nothing but the tokens that were chosen. It knows
no requests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from backend.drawing import Draw, Drawer
from backend.errors import BackendError
from backend.layers.rope import Rope
from backend.models import Decoder
from backend.ops.likeliest import likeliest
from backend.ops.page_attention import PageLists, page_attention
from backend.ops.page_write import page_write
from backend.paged.arena import SCRATCH_ROW, Arena, PagedContext
from kvstore.types import PAGE_TOKENS

BATCHES = (1, 2, 4, 8, 16, 32)
ROWS = (1, 4, 8, 16, 32, 64, 128, 256, 512)
"""Contexts of a step, and tokens of each."""

SHORT_PAGES = 64
"""Pages of lists that are read in a few parts: with as many as long ones need, most programs of a
launch would find nothing to do."""

SCORED_ROWS = 16
"""Up to this many tokens of a context all of them get scores, else the last one alone."""

_ENTRY = 7
"""Integers that describe a context (see `page_write`)."""

_PACKED_ENTRY = 5
"""Integers more that describe its packed pages, where the arena has some."""

Shape = tuple[int, int, int]
"""(contexts, tokens of each, most pages of a list)."""


@dataclass(frozen=True, slots=True)
class StepRows:
    """What a step gave one context: `hidden` [tokens, hidden]; `logits` [scored, vocab] as the head
    leaves them and, for each of these rows, `best`: the likeliest token and its log-probability
    (None where the host has not been told); `drawn`: those of a token that was drawn after the last
    row. All of it is there until the next step."""

    hidden: torch.Tensor
    logits: torch.Tensor
    best: tuple[tuple[int, float], ...] | None
    drawn: tuple[int, float] | None = None


@dataclass(frozen=True, slots=True)
class _Outputs:
    """`best` [scored, 2]: token, and the bits of its log-probability."""

    hidden: torch.Tensor
    logits: torch.Tensor
    best: torch.Tensor


@dataclass(frozen=True, slots=True)
class _Recorded:
    """The tensors of one shape; without a graph the step is run anew each time."""

    given: torch.Tensor
    staged: torch.Tensor
    told: torch.Tensor
    outputs: _Outputs | None
    graph: torch.cuda.CUDAGraph | None


class PagedStep:
    """Steps on the contexts of one arena."""

    def __init__(self, model: Decoder, rope: Rope, arena: Arena) -> None:
        self._model = model
        self._arena = arena
        self._packed = arena.packed
        self._entry = _ENTRY if arena.packed is None else _ENTRY + _PACKED_ENTRY
        self._on_gpu = model.device.type == "cuda"
        self._impl: Literal["reference", "triton"] = "triton" if self._on_gpu else "reference"
        longest = arena.context_pages + (arena.packed.context_pages if arena.packed else 0)
        positions = (longest + 1) * PAGE_TOKENS
        self._cos, self._sin = rope.tables(0, positions)
        self._refs = arena.table.view(-1, 4)
        self._shapes: dict[Shape, _Recorded] = {}
        self._memory = torch.cuda.graph_pool_handle() if self._on_gpu else None
        self._copied = torch.cuda.Event() if self._on_gpu else None
        self._drawer = Drawer(model.device, BATCHES[-1])

    def record(self, shapes: Sequence[tuple[int, int]]) -> None:
        """Record these (contexts, tokens of each) on short lists now instead of when they are first
        met."""
        for batch, rows in shapes:
            self._shape_for(batch, rows, self._list_pages(rows))

    @torch.inference_mode()
    def run(
        self,
        contexts: Sequence[PagedContext],
        token_ids: Sequence[Sequence[int]],
        *,
        tell: bool = True,
        draws: Sequence[Draw | None] = (),
    ) -> list[StepRows]:
        """Append tokens to each context, at most the largest of `BATCHES` contexts and of `ROWS`
        tokens. Without `tell` the host does not wait, and learns no `best`. `draws`: for each
        context how a token is drawn after its last one, or None.

        Raises BackendError for a context without room.
        """
        counts = [len(ids) for ids in token_ids]
        batch, rows = _fit(BATCHES, len(contexts)), _fit(ROWS, max(counts))
        tokens = max(context.length for context in contexts) + rows
        pages = self._list_pages(tokens)
        shape = self._shape_for(batch, rows, pages)
        self._stage(shape.staged, batch, rows, contexts, token_ids)
        shape.given.copy_(shape.staged, non_blocking=True)
        if self._copied is not None:
            self._copied.record()
        if shape.graph is not None and shape.outputs is not None:
            shape.graph.replay()
            outputs = shape.outputs
        else:
            outputs = self._body(shape.given, batch, rows, pages)
        best: list[tuple[int, float]] | None = None
        drawing = tell and any(draws)
        if drawing:
            # Outside of the recorded step: most steps draw nothing.
            lasts = shape.given[batch * self._entry :][: len(contexts)]
            self._drawer.begin(_last_rows(outputs.logits, lasts, rows).float(), draws)
        if tell:
            shape.told.copy_(outputs.best, non_blocking=True)
            if self._on_gpu:
                torch.cuda.current_stream().synchronize()
            best = _told(shape.told)
        drawn = self._drawer.told() if drawing else [None] * len(contexts)
        given = []
        for place, (context, count) in enumerate(zip(contexts, counts, strict=True)):
            context.length += count
            first = place * rows
            scored = slice(first, first + count) if rows <= SCORED_ROWS else slice(place, place + 1)
            given.append(
                StepRows(
                    outputs.hidden[first : first + count],
                    outputs.logits[scored],
                    None if best is None else tuple(best[scored]),
                    drawn[place],
                )
            )
        return given

    def _stage(
        self,
        staged: torch.Tensor,
        batch: int,
        rows: int,
        contexts: Sequence[PagedContext],
        token_ids: Sequence[Sequence[int]],
    ) -> None:
        """Write what the step is given: for each context its entry, then the row that is scored if
        only one is, then all tokens."""
        numbers: list[int] = []
        lasts: list[int] = []
        flat: list[int] = []
        for place in range(batch):
            first = place * rows
            if place >= len(contexts):
                own = SCRATCH_ROW * self._arena.context_pages
                numbers += (own, -(-rows // PAGE_TOKENS), first, rows, rows, own, 0)
                numbers += self._packed_entry(SCRATCH_ROW, 0, first, rows, rows)
                lasts.append(first)
                flat += [0] * rows
                continue
            context, ids = contexts[place], token_ids[place]
            # Rows that fill up stand behind the real ones and are overwritten by what comes next.
            tokens = context.length + rows
            if tokens > context.capacity:
                raise BackendError("a context has no room for the step's tokens")
            own = context.row * self._arena.context_pages
            numbers += (own, context.pages_of(tokens), first, rows, tokens)
            numbers += (own + context.own_page, context.own_start)
            numbers += self._packed_entry(context.row, len(context.packed), first, rows, tokens)
            lasts.append(first + len(ids) - 1)
            flat += ids
            flat += [0] * (rows - len(ids))
        if self._copied is not None:
            # The last step's copy may not have been made yet.
            self._copied.synchronize()
        staged.copy_(torch.tensor([*numbers, *lasts, *flat], dtype=torch.int32))

    def _packed_entry(
        self, row: int, pages: int, first: int, rows: int, tokens: int
    ) -> tuple[int, ...]:
        if self._packed is None:
            return ()
        return row * self._packed.context_pages, pages, first, rows, tokens

    def _body(self, given: torch.Tensor, batch: int, rows: int, pages: int) -> _Outputs:
        entries = batch * self._entry
        requests = given[:entries].view(batch, self._entry)
        lists = PageLists(
            refs=self._refs,
            requests=requests[:, :_ENTRY],
            rows=batch * rows,
            most_rows=rows,
            most_pages=pages,
            positions=len(self._cos),
        )
        data = self._arena.pool.data
        evidence = None
        if self._packed is not None:
            evidence = self._packed.lists(requests[:, _ENTRY:], pages)

        def attend(layer: int, qk: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            q, k = qk[:, : -v.shape[1]], qk[:, -v.shape[1] :]
            page_write(data, layer, k, v, lists, impl=self._impl)
            read = page_attention(
                q,
                data,
                layer,
                lists,
                cos=self._cos,
                sin=self._sin,
                impl=self._impl,
                packed=evidence,
            )
            return read.flatten(1)

        hidden = self._model.forward(given[entries + batch :], attend)
        lasts = given[entries : entries + batch]
        scored = hidden if rows <= SCORED_ROWS else hidden.index_select(0, lasts)
        logits = self._model.head(scored)
        return _Outputs(hidden, logits, likeliest(logits, impl=self._impl))

    def _list_pages(self, tokens: int) -> int:
        """Most pages of the lists of a step whose longest has so many tokens."""
        most = self._arena.context_pages
        return min(SHORT_PAGES, most) if tokens <= SHORT_PAGES * PAGE_TOKENS else most

    @torch.inference_mode()
    def _shape_for(self, batch: int, rows: int, pages: int) -> _Recorded:
        """The tensors of a shape, which is recorded when it is first met."""
        shape = (batch, rows, pages)
        if shape not in self._shapes:
            self._shapes[shape] = self._make(batch, rows, pages)
        return self._shapes[shape]

    def _make(self, batch: int, rows: int, pages: int) -> _Recorded:
        size = batch * (self._entry + 1 + rows)
        scored = batch * rows if rows <= SCORED_ROWS else batch
        staged = torch.zeros(size, dtype=torch.int32, pin_memory=self._on_gpu)
        told = torch.zeros((scored, 2), dtype=torch.int32, pin_memory=self._on_gpu)
        if not self._on_gpu:
            return _Recorded(torch.zeros(size, dtype=torch.int32), staged, told, None, None)
        self._stage(staged, batch, rows, (), ())
        given = staged.to(self._model.device)
        # What a kernel needs at its first launch (compiling, workspaces) can't be recorded.
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._body(given, batch, rows, pages)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._memory, capture_error_mode="thread_local"):
            outputs = self._body(given, batch, rows, pages)
        return _Recorded(given, staged, told, outputs, graph)


def _fit(sizes: Sequence[int], wanted: int) -> int:
    """The smallest size that holds `wanted`."""
    for size in sizes:
        if wanted <= size:
            return size
    raise BackendError(f"a step takes at most {sizes[-1]} at once, not {wanted}")


def _last_rows(logits: torch.Tensor, lasts: torch.Tensor, rows: int) -> torch.Tensor:
    """Of the scored rows those of each context's last token, which is row `lasts` of all."""
    scored = rows <= SCORED_ROWS
    return logits.index_select(0, lasts) if scored and rows > 1 else logits[: len(lasts)]


def _told(pairs: torch.Tensor) -> list[tuple[int, float]]:
    scores = pairs[:, 1].contiguous().view(torch.float32).tolist()
    return list(zip(pairs[:, 0].tolist(), scores, strict=True))
