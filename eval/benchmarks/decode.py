"""`bench decode`: time per token by context length and batch, on prompts and on evidence pages."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import median

from app.errors import BadParameter
from app.prompt import document_sinks
from backend.engine import Engine
from backend.types import DocumentTokens
from eval.benchmarks.decode_cells import (
    SOURCES,
    Cell,
    Skipped,
    Source,
    choose_cells,
    requests_of,
)
from eval.benchmarks.decode_clock import decode_together
from eval.benchmarks.documents import unique_document
from eval.benchmarks.ttft import require_room
from kvstore.types import PAGE_TOKENS

Fields = dict[str, object]

FORMATS = {"auto": None, "bf16": 16, "fp16": 16, "fp32": 32}
"""KV formats by bits of an element; None takes what the engine has."""
NOT_BUILT = ("fp8", "int8", "int4")
_DOCUMENT = "decode document"
_TEXT_TOKENS = 32768
"""Tokens of the text from which prompts are cut: they overlap, but no prompt's KV is kept."""


@dataclass(frozen=True, slots=True)
class DecodePlan:
    """`document_tokens` is the length of the document whose pages are evidence."""

    contexts: tuple[int, ...]
    batches: tuple[int, ...]
    tokens: int = 64
    rounds: int = 5
    document_tokens: int = 32768
    every_cell: bool = False
    sources: tuple[Source, ...] = SOURCES
    seed: int = 0
    sampled: bool = False


def require_format(engine: Engine, name: str) -> None:
    """Raises BadParameter for a KV format that there is not, or that this engine does not have."""
    if name in NOT_BUILT:
        raise BadParameter(f"KV pages in {name} are not built yet; there are bf16, fp16 and fp32")
    if name not in FORMATS:
        raise BadParameter(f"No KV format {name!r}; there are {', '.join(FORMATS)}")
    config, bits = engine.config, FORMATS[name]
    elements = config.layers * 2 * config.kv_heads * PAGE_TOKENS * config.head_dim
    held = 8 * engine.kv_page_bytes // elements
    if bits is not None and bits != held:
        raise BadParameter(
            f"KV pages have the format of the engine's arithmetic, {held} bits here: choose "
            "--precision instead"
        )


def parse_source(name: str | None) -> tuple[Source, ...]:
    """Where contexts come from; None is both. Raises BadParameter."""
    found = tuple(source for source in SOURCES if name in (None, source))
    if not found:
        raise BadParameter(f"No source of contexts {name!r}; there are {', '.join(SOURCES)}")
    return found


def measure(
    engine: Engine,
    plan: DecodePlan,
    pieces: Sequence[str],
    on_step: Callable[[str], None] = lambda _: None,
) -> tuple[list[Fields], Fields]:
    """Every round's figures, and their medians. Raises EvalError and BackendError."""
    require_room(engine, (plan.document_tokens,))
    source = random.Random(plan.seed)
    kind = engine.settings.device.partition(":")[0]
    cells, skipped = choose_cells(
        plan.contexts,
        plan.batches,
        device=kind,
        every=plan.every_cell,
        sources=plan.sources,
        sampled=plan.sampled,
    )
    on_step(f"reading a document of {plan.document_tokens:,} tokens")
    document = _document(engine, plan, pieces)
    engine.read(document).wait()
    texts = _token_ids(engine, _TEXT_TOKENS, 2 * plan.seed + 1, pieces)
    on_step("warming up")
    for cell in cells[:1] + cells[-1:]:
        _time(engine, cell, plan, texts, document, source)
    rounds: list[Fields] = []
    for number in range(1, plan.rounds + 1):
        figures = []
        for cell in cells:
            on_step(f"round {number} of {plan.rounds}, {_name(cell)}")
            figures.append(_time(engine, cell, plan, texts, document, source))
        rounds.append({"round": number, "figures": figures})
    return rounds, summarise(cells, skipped, rounds)


def summarise(
    cells: Sequence[Cell], skipped: Sequence[Skipped], rounds: Sequence[Fields]
) -> Fields:
    """Medians of the rounds for each cell, and the cells that were left out."""
    medians = []
    for place, cell in enumerate(cells):
        measured = [one["figures"][place] for one in rounds]  # type: ignore[index]
        medians.append(
            asdict(cell)
            | {
                key: median(figure[key] for figure in measured)
                for key in ("ms_per_token", "tokens_per_s", "mean_context")
            }
        )
    return {"cells": medians, "skipped": [asdict(one) for one in skipped]}


def _time(
    engine: Engine,
    cell: Cell,
    plan: DecodePlan,
    texts: Sequence[int],
    document: DocumentTokens,
    source: random.Random,
) -> Fields:
    requests = requests_of(engine, cell, plan.tokens, texts, document, source)
    timed = decode_together(engine, requests, plan.tokens)
    return asdict(cell) | {
        "ms_per_token": timed.ms_per_token,
        "tokens_per_s": timed.tokens_per_s,
        "mean_context": timed.context,
        "tokens": timed.tokens,
    }


def _document(engine: Engine, plan: DecodePlan, pieces: Sequence[str]) -> DocumentTokens:
    ids = _token_ids(engine, plan.document_tokens, 2 * plan.seed, pieces)
    blocks = engine.split_blocks(len(ids))
    return DocumentTokens(_DOCUMENT, ids, blocks, sinks=document_sinks(engine.tokenizer))


def _token_ids(engine: Engine, tokens: int, seed: int, pieces: Sequence[str]) -> tuple[int, ...]:
    encode = engine.tokenizer.encode
    text = unique_document(tokens, seed=seed, count=lambda part: len(encode(part)), pieces=pieces)
    return tuple(encode(text)[:tokens])


def _name(cell: Cell) -> str:
    return f"{cell.source}, context {cell.context:,}, batch {cell.batch}, {cell.decoding}"
