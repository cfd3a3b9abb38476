"""`bench ttft`: the three first-token times by document length, beside dense reading.

Each measurement has a document of its own, made for it; nothing of it was in the cache (`coldness`
proves it). Dense reading is the same engine with the whole document as one block, so that every
token attends to all before it; a question then attends to all of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import psutil

from backend.engine import Engine
from eval.benchmarks.dense_attention import DenseAttention, choose
from eval.benchmarks.engine_documents import (
    UniqueDocument,
    make_document,
    require_unique,
    whole_blocks,
)
from eval.benchmarks.first_token import WholeRead, evidence_first, whole_read
from eval.benchmarks.lengths import show_length
from eval.benchmarks.ttft_figures import Fields, Figures, round_fields, summarise
from eval.errors import EvalError
from kvstore.types import PAGE_TOKENS

_SPARE_PAGES = 1
_ROLES = ("early", "whole", "dense")


@dataclass(frozen=True, slots=True)
class TtftPlan:
    """What is measured. Lengths in tokens. Of dense reading only lengths up to `dense_max` are
    measured (0: none). A question attends to `evidence_tokens` in `evidence_ranges` places."""

    lengths: tuple[int, ...]
    rounds: int = 5
    dense_max: int = 0
    evidence_tokens: int = 1536
    evidence_ranges: int = 4
    seed: int = 0


@dataclass(frozen=True, slots=True)
class DocumentSet:
    """The documents of one length and round (round 0: of the warm-up). `dense` is None where dense
    reading is left out."""

    round: int
    early: UniqueDocument
    whole: UniqueDocument
    dense: UniqueDocument | None

    def documents(self) -> list[UniqueDocument]:
        """All of them."""
        both = [self.early, self.whole]
        return both if self.dense is None else [*both, self.dense]


def require_room(engine: Engine, lengths: Sequence[int]) -> None:
    """Raises EvalError when the longest document has no room: in the KV pool, naming the budget
    that is needed, or on a CPU in the memory that is free now (the pool takes it page by page)."""
    tokens = max(lengths)
    pages = -(-tokens // PAGE_TOKENS) + _SPARE_PAGES
    held = engine.counters.pages_total
    needed = -(-pages * engine.kv_page_bytes // 1_000_000)
    if pages > held:
        budget = held * engine.kv_page_bytes // 1_000_000
        raise EvalError(
            f"A document of {tokens:,} tokens needs {needed:,} MB of KV pages and the budget is "
            f"{budget:,} MB: give --kv-budget {needed} (memory permitting) or shorter --lengths"
        )
    free = psutil.virtual_memory().available // 1_000_000
    if engine.settings.device == "cpu" and needed > free:
        raise EvalError(
            f"A document of {tokens:,} tokens needs {needed:,} MB of KV pages and {free:,} MB of "
            "memory are free: give shorter --lengths or end other programs"
        )


def measure(
    engine: Engine,
    plan: TtftPlan,
    pieces: Sequence[str],
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[list[Fields], Fields]:
    """Every round's figures, and their medians.

    Raises EvalError for documents that have no room or share a block, NotCold when a document was
    not cold after all.
    """
    require_room(engine, plan.lengths)
    on_step("making documents")
    sets = make_sets(engine, plan, pieces)
    require_unique(document for one in sets for document in one.documents())
    dense = choose(engine, plan.dense_max) if plan.dense_max else None
    on_step("warming up")
    figures_of(engine, sets[0], dense)
    measured: list[list[Figures]] = []
    for number in range(1, plan.rounds + 1):
        measured.append([])
        for one in [one for one in sets if one.round == number]:
            on_step(f"round {number} of {plan.rounds}, {show_length(one.whole.tokens)}")
            measured[-1].append(figures_of(engine, one, dense))
    results = summarise(measured)
    results["dense_attention"] = None if dense is None else asdict(dense)
    return [round_fields(n, found) for n, found in enumerate(measured, 1)], results


def make_sets(engine: Engine, plan: TtftPlan, pieces: Sequence[str]) -> list[DocumentSet]:
    """The documents of the warm-up, then those of every length and round."""
    size = engine.block_tokens
    wanted = [(0, 2 * size)]
    for length in plan.lengths:
        tokens = whole_blocks(length, size)
        wanted += [(number, tokens) for number in range(1, plan.rounds + 1)]
    sets = []
    for place, (number, tokens) in enumerate(wanted):
        made = [
            make_document(
                engine,
                f"{role} {tokens} of round {number}",
                tokens,
                seed=(plan.seed * len(wanted) + place) * len(_ROLES) + _ROLES.index(role),
                pieces=pieces,
                evidence_tokens=plan.evidence_tokens,
                evidence_ranges=plan.evidence_ranges,
                one_block=role == "dense",
            )
            for role in _ROLES
            if role != "dense" or tokens <= plan.dense_max
        ]
        sets.append(DocumentSet(number, made[0], made[1], made[2] if len(made) > 2 else None))
    return sets


def figures_of(
    engine: Engine, one: DocumentSet, attention: DenseAttention | None = None
) -> Figures:
    """Measures one set; the engine has forgotten its documents afterwards."""
    with _forgotten(engine, one.early):
        early = evidence_first(engine, one.early)
    with _forgotten(engine, one.whole):
        whole = whole_read(engine, one.whole)
    if whole.ttft_grounded_ms is None or whole.ttft_warm_ms is None:
        raise EvalError(
            "A question's evidence is longer than the model's window: lower --evidence-tokens"
        )
    dense: WholeRead | None = None
    if one.dense is not None and attention is not None:
        with _forgotten(engine, one.dense), attention.active():
            dense = whole_read(engine, one.dense)
    return Figures(
        tokens=one.whole.tokens,
        ttft_any_ms=early.ttft_ms,
        any_read_tokens=early.read_tokens,
        ttft_grounded_ms=whole.ttft_grounded_ms,
        read_ms=whole.read_ms,
        ttft_warm_ms=whole.ttft_warm_ms,
        dense=dense,
    )


@contextmanager
def _forgotten(engine: Engine, document: UniqueDocument) -> Iterator[None]:
    """Its pages are free again after the block."""
    try:
        yield
    finally:
        engine.forget(document.name)
