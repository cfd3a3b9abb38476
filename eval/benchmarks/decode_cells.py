"""What `bench decode` measures: cells of context, batch and decoding, and the requests of each.

A context is either a prompt that was read with the request, or KV pages of a long document. The
engine guesses tokens from the prompt when it decodes one sequence greedily; with a temperature
nothing is guessed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from app.prompt import document_sinks
from backend.engine import Engine
from backend.types import DocumentTokens, Request, SamplingParams
from eval.benchmarks.engine_documents import scattered
from eval.errors import EvalError
from kvstore.types import PAGE_TOKENS

Source = Literal["prompt", "evidence"]
Decoding = Literal["greedy", "sampled"]

SOURCES: tuple[Source, ...] = ("prompt", "evidence")
EVIDENCE_PLACES = 4
QUESTION_TOKENS = 48
AHEAD = 48
"""Tokens by which a sequence may be ahead of a later one for each step of the later one's prompt
(the scheduler decodes up to 32 between two such steps)."""
LIMITS: dict[str, dict[Source, int]] = {
    "cpu": {"prompt": 8192, "evidence": 32768},
    "cuda": {"prompt": 32768},
}
"""Most tokens of all contexts of a cell, by kind of device. Prompts are read anew in every round,
and the sequences that were read first decode meanwhile; eight contexts of 8K take a CPU 0.3 s a
step."""


@dataclass(frozen=True, slots=True)
class Cell:
    """`batch` sequences of about `context` tokens each decode at the same time."""

    source: Source
    context: int
    batch: int
    decoding: Decoding


@dataclass(frozen=True, slots=True)
class Skipped:
    """A cell that is not measured, and why."""

    source: Source
    context: int
    batch: int
    why: str


def choose_cells(
    contexts: Sequence[int],
    batches: Sequence[int],
    *,
    device: str,
    every: bool = False,
    sources: Sequence[Source] = SOURCES,
    sampled: bool = False,
) -> tuple[list[Cell], list[Skipped]]:
    """All cells, but for those that take minutes on this kind of device, unless `every`. Without
    `sampled` only batch 1 is sampled too: in larger batches nothing is guessed anyway."""
    limits = {} if every else LIMITS.get(device, {})
    cells: list[Cell] = []
    skipped: list[Skipped] = []
    for source in sources:
        for context in contexts:
            for batch in batches:
                if batch * context > limits.get(source, batch * context):
                    why = f"{batch * context:,} tokens of context: give --all-cells"
                    skipped.append(Skipped(source, context, batch, why))
                    continue
                cells.append(Cell(source, context, batch, "greedy"))
                if batch == 1 or sampled:
                    cells.append(Cell(source, context, batch, "sampled"))
    return cells, skipped


def requests_of(
    engine: Engine,
    cell: Cell,
    tokens: int,
    texts: Sequence[int],
    document: DocumentTokens,
    source: random.Random,
) -> list[Request]:
    """One request a sequence. `texts` are token ids from which prompts are cut, each from another
    place; `document` has been read.

    Raises EvalError for a context too short to hold anything or longer than the model's window.
    """
    read = cell.context if cell.source == "prompt" else QUESTION_TOKENS
    steps = -(-read // engine.settings.prefill_chunk)
    longest = 2 * tokens + AHEAD * steps * (cell.batch - 1)
    start = min(cell.context, engine.config.max_positions - longest)
    sampling = SamplingParams(max_tokens=longest, ignore_eos=True)
    made = []
    for place in range(cell.batch):
        name = f"{cell.source} {cell.context} x {cell.batch}, {place}"
        if cell.decoding == "sampled":
            sampling = SamplingParams(
                max_tokens=longest, ignore_eos=True, temperature=1.0, seed=source.randrange(2**31)
            )
        if cell.source == "prompt":
            made.append(Request(name, _cut(texts, start, source), sampling))
            continue
        sinks = document_sinks(engine.tokenizer)
        pages = (start - len(sinks) - QUESTION_TOKENS) // PAGE_TOKENS
        if pages < 1:
            raise EvalError(
                f"A context of {cell.context} tokens has no room for a page of evidence beside "
                f"{len(sinks) + QUESTION_TOKENS} tokens of prompt and {longest} of answer"
            )
        spans = scattered(source, len(document.token_ids) // PAGE_TOKENS, pages, EVIDENCE_PLACES)
        evidence = tuple((first * PAGE_TOKENS, last * PAGE_TOKENS) for first, last in spans)
        question = _cut(texts, QUESTION_TOKENS, source)
        made.append(
            Request(name, (*sinks, *question), sampling, document.key, evidence, len(sinks))
        )
    return made


def _cut(texts: Sequence[int], tokens: int, source: random.Random) -> tuple[int, ...]:
    if not 0 < tokens <= len(texts):
        raise EvalError(f"A prompt of {tokens} tokens can't be cut from {len(texts)} tokens")
    first = source.randint(0, len(texts) - tokens)
    return tuple(texts[first : first + tokens])
