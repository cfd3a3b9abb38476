"""First-token times of one document, taken inside the engine.

The clock is the engine's (`time.perf_counter` of one process). It starts when the document, as
token ids, is handed to the engine, or for warm questions when the question is; it stops at the end
of the first decode iteration, when the first token has been chosen (`EngineTimings.ttft_ms`).
Parsing, tokenising and the network are not in it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from backend.engine import Engine
from backend.errors import BackendError
from backend.types import EngineTimings, Request, Usage
from eval.benchmarks.coldness import require_cold
from eval.benchmarks.engine_documents import UniqueDocument, blocks_touched
from eval.errors import EvalError

CLOCK = (
    "engine clock, one process; starts when the document's token ids are given to the engine "
    "(warm: the question), stops at the end of the first decode iteration"
)


@dataclass(frozen=True, slots=True)
class EvidenceFirst:
    """Cold. `ttft_ms` with only the blocks of the evidence read: `read_tokens` document tokens."""

    ttft_ms: float
    read_tokens: int


@dataclass(frozen=True, slots=True)
class WholeRead:
    """Cold, then warm. `read_ms`: arrival to the whole document read; `ttft_grounded_ms`: arrival
    to the first token after that. Both first-token times are None when the model's window is too
    short to ask about the whole document at once: `read_ms` is then a lower bound."""

    read_ms: float
    ttft_grounded_ms: float | None
    ttft_warm_ms: float | None


def evidence_first(engine: Engine, document: UniqueDocument) -> EvidenceFirst:
    """Ask about a document that the engine just learned of. Raises NotCold."""
    given = document.as_read(engine)
    request = document.question(engine)
    touched = blocks_touched(document.blocks, document.evidence)
    needed = sum(
        last - first
        for first, last in (document.blocks[i] for i in {i for found in touched for i in found})
    )
    before = engine.counters
    arrived = time.perf_counter()
    engine.read(given, lazy=True)
    asked = time.perf_counter()
    timings, usage = _first_token(engine, request)
    require_cold(
        f"The first question on {document.name}",
        before=before,
        after=engine.counters,
        needed_tokens=needed,
        computed_tokens=usage.read_tokens,
        own_hits=sum(map(len, touched)),
    )
    return EvidenceFirst((asked - arrived) * 1e3 + timings.ttft_ms, usage.read_tokens)


def whole_read(engine: Engine, document: UniqueDocument) -> WholeRead:
    """Read a document to its end, ask, and ask again. Raises NotCold."""
    given = document.as_read(engine)
    request = document.question(engine)
    before = engine.counters
    arrived = time.perf_counter()
    state = engine.read(given).wait()
    asked = time.perf_counter()
    if state.status != "done":
        raise EvalError(f"{document.name} could not be read: {state.error or state.status}")
    require_cold(
        f"Reading {document.name}",
        before=before,
        after=engine.counters,
        needed_tokens=document.tokens,
        computed_tokens=state.computed_tokens,
    )
    read_ms = (asked - arrived) * 1e3
    if not fits(engine, request):
        return WholeRead(read_ms, None, None)
    asked = time.perf_counter()
    grounded, usage = _first_token(engine, request)
    _require_warm(document.name, usage)
    warm, usage = _first_token(engine, document.question(engine, second=True))
    _require_warm(document.name, usage)
    return WholeRead(read_ms, (asked - arrived) * 1e3 + grounded.ttft_ms, warm.ttft_ms)


def fits(engine: Engine, request: Request) -> bool:
    """Whether prompt, evidence and answer fit in the model's window."""
    evidence = sum(last - first for first, last in request.evidence)
    tokens = len(request.prompt_ids) + evidence + request.sampling.max_tokens
    return tokens <= engine.config.max_positions


def _first_token(engine: Engine, request: Request) -> tuple[EngineTimings, Usage]:
    last = list(engine.generate(request))[-1]
    if last.error or last.timings is None or last.usage is None:
        raise BackendError(f"The request {request.request_id} failed: {last.error}")
    return last.timings, last.usage


def _require_warm(name: str, usage: Usage) -> None:
    if usage.read_tokens:
        raise EvalError(
            f"{usage.read_tokens:,} tokens of {name} were read again for a question after it was "
            "read: the KV pool is too small, raise --kv-budget"
        )
