"""What the use cases ask of an engine: the bundled one or model servers elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from backend.step_times import RequestSteps, StepTimes
from backend.tokenizer import Tokenizer
from backend.types import (
    DocumentTokens,
    EngineCounters,
    EngineTimings,
    ReadProgress,
    Request,
    TokenEvent,
    Usage,
)


class ModelShape(Protocol):
    """What the doors ask of a model's configuration."""

    @property
    def max_positions(self) -> int:
        """Tokens of the window."""

    @property
    def vocab_size(self) -> int:
        """Ids below this one are tokens."""


class Ticket(Protocol):
    """A hold on a document that is being read."""

    def progress(self) -> ReadProgress:
        """Where reading stands."""

    def wait(self, timeout: float | None = None) -> ReadProgress:
        """Wait until reading is over or `timeout` seconds have passed."""

    def cancel(self) -> None:
        """Read no further."""


class Stream(Iterator[TokenEvent], Protocol):
    """The events of one request; closing it cancels the request."""

    def account(self) -> tuple[Usage, EngineTimings]:
        """What was spent so far: for who leaves before the last event, which tells it."""

    def close(self) -> None:
        """Take no more events."""


class AnyEngine(Protocol):
    """Documents and requests in, token events out. Safe to call from any thread."""

    attends_pages: bool
    """Whether a request's `evidence` is attended to as KV pages; otherwise it must go in as text,
    in the request's `messages`."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Counts and cuts the text of documents."""

    @property
    def fingerprint(self) -> str:
        """Tokens and KV made under one are of no use under another."""

    @property
    def block_tokens(self) -> int:
        """Tokens of one block of reading."""

    @property
    def config(self) -> ModelShape:
        """The model's shape."""

    @property
    def counters(self) -> EngineCounters:
        """Since the engine opened."""

    @property
    def alive(self) -> bool:
        """Whether requests can be answered now."""

    @property
    def problem(self) -> str:
        """Why they can't, with what to do; empty while `alive`."""

    @property
    def step_seconds(self) -> float:
        """How long the engine has been at its present step; 0 when it is at none."""

    def split_blocks(self, token_count: int) -> tuple[tuple[int, int], ...]:
        """Half-open block ranges that cover `token_count` tokens."""

    def read(
        self, document: DocumentTokens, *, first_blocks: Sequence[int] = (), lazy: bool = False
    ) -> Ticket:
        """Make a document known and read it in the background."""

    def progress(self, key: str) -> ReadProgress | None:
        """Reading state of a document, None when it is not known."""

    def forget(self, key: str) -> None:
        """Drop a document."""

    def pin(self, key: str, ttl_s: float) -> None:
        """Have what was read of a document make room after that of all others, for `ttl_s` seconds.
        Raises RequestTooLarge when too much would be pinned, BackendError where nothing is kept."""

    def unpin(self, key: str) -> None:
        """End the document's pin, if there is one."""

    def keep_documents(self, keys: Collection[str]) -> None:
        """Remove what is kept of all other documents."""

    def generate(self, request: Request) -> Stream:
        """Run a request."""

    def cancel(self, request_id: str) -> None:
        """Stop a request."""

    def score(
        self,
        prompt_ids: Sequence[int],
        continuation_ids: Sequence[int],
        *,
        document_key: str | None = None,
        evidence: Sequence[tuple[int, int]] = (),
        sink_len: int = 0,
    ) -> tuple[float, ...]:
        """Log-probabilities of the continuation's tokens after the prompt (and the evidence).
        Raises BackendError where there is no way to tell them."""

    @property
    def step_times(self) -> StepTimes | None:
        """How long the engine's steps took; None where they are taken elsewhere."""

    def steps_of(self, request_id: str) -> RequestSteps | None:
        """What happened to a request, and when; None when it is not known (any more)."""

    def close(self) -> None:
        """Stop everything."""
