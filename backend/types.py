"""Values that travel in and out of the engine: token ids, never text of a document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kvstore.types import DiskCounters, MemoryCounters

FinishReason = Literal["stop", "length", "cancelled", "repetition", "error"]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How the next token is chosen. `temperature` 0 is greedy. `seed` fixes this request alone.

    `ignore_eos` goes on to `max_tokens` whatever the model writes. Before `min_tokens` the model
    can't end the answer (a stop string still does). With `logprobs` every event tells its token's
    log-probability and that of as many of the best tokens; None tells nothing.
    """

    max_tokens: int = 256
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    repetition_penalty: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    min_tokens: int = 0
    logprobs: int | None = None


@dataclass(frozen=True, slots=True)
class DocumentTokens:
    """A document as the engine sees it.

    `key` names its KV (hash of owner and content). `token_ids` is the whole document. `blocks` are
    half-open token ranges that cover it in order. `anchors` holds, for each block, positions (in
    the document) of its anchor tokens; empty when reading is independent. `sinks` are the tokens
    that every block sees first: the prompt's beginning, up to where the document would stand. KV
    is never shared between different `owner`s, unless both their documents are `shared`.
    """

    key: str
    token_ids: tuple[int, ...]
    blocks: tuple[tuple[int, int], ...]
    anchors: tuple[tuple[int, ...], ...] = ()
    sinks: tuple[int, ...] = ()
    owner: str = ""
    shared: bool = False


@dataclass(frozen=True, slots=True)
class ReadProgress:
    """Reading state of one document. `computed_tokens` counts the tokens that went through the
    model for this call; the rest of `read_tokens` was reused. `at_work`: a step reads it now."""

    key: str
    read_tokens: int
    total_tokens: int
    computed_tokens: int
    status: Literal["queued", "reading", "done", "cancelled", "failed"]
    error: str = ""
    at_work: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """One generation.

    `prompt_ids` is the text prompt (template, re-injected text, question). With `document_key`,
    attention sees `prompt_ids[:sink_len]` (the sinks), the `anchors` (positions in the document),
    the KV pages of `evidence` (half-open token ranges of the document, best last, rounded outwards
    to pages), then the rest of the prompt. `sink_len` 0 with a document takes the sinks that the
    document was read with, which are then not part of `prompt_ids`. Requests of different `owner`s
    take turns; the name says nothing of who may see what.
    """

    request_id: str
    prompt_ids: tuple[int, ...]
    sampling: SamplingParams = SamplingParams()
    document_key: str | None = None
    evidence: tuple[tuple[int, int], ...] = ()
    sink_len: int = 0
    anchors: tuple[int, ...] = ()
    messages: tuple[tuple[str, str], ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts of one request. `cached_tokens` came from KV that was already there;
    `read_tokens` are document tokens computed for this request."""

    prompt_tokens: int
    cached_tokens: int
    read_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class EngineTimings:
    """Milliseconds, taken inside the engine. `ttft_ms`: arrival to the end of the first decode
    iteration."""

    queue_ms: float
    prefill_ms: float
    ttft_ms: float
    decode_ms: float


@dataclass(frozen=True, slots=True)
class TokenEvent:
    """One step of a stream. `text` is whole characters only and may be empty. The last event has
    `finish_reason`, `usage` and `timings`. `logprob` and `best` ((token, log-probability), best
    first) are the model's own, before temperature and cuts, and there only when asked for."""

    request_id: str
    index: int
    token_id: int | None
    text: str
    finish_reason: FinishReason | None = None
    usage: Usage | None = None
    timings: EngineTimings | None = None
    error: str = ""
    logprob: float | None = None
    best: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class EngineCounters:
    """Since the engine opened: block look-ups that found KV and that didn't, blocks evicted,
    document tokens that went through the model. `pages_used` of `pages_total` KV pages hold
    something now. `disk` and `memory` are None without such a tier. `dropped`: blocks that left the
    pool, `lost`: blocks that were asked for and had to be read, both by reason (see
    `kvstore.tally`)."""

    hits: int
    misses: int
    evicted: int
    read_tokens: int
    pages_used: int
    pages_total: int
    disk: DiskCounters | None = None
    memory: MemoryCounters | None = None
    dropped: Mapping[str, int] = field(default_factory=dict)
    lost: Mapping[str, int] = field(default_factory=dict)
