"""The remote engine: the calls of the bundled one, answered without a model here.

Documents are tokenised with a local tokenizer, so that lengths are counted in the same unit as
always, and count as read at once: the server reads what each question needs. Knows no HTTP.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from app.remote.servers import Servers
from app.remote.stream import RemoteStream
from backend.errors import BackendError, EngineClosed
from backend.tokenizer import Tokenizer
from backend.types import DocumentTokens, EngineCounters, ReadProgress, Request

BLOCK_TOKENS = 4096
"""Blocks are never read here; the cut only bounds what one stored range covers."""


@dataclass(frozen=True, slots=True)
class RemoteShape:
    """What the doors ask of a model's configuration."""

    max_positions: int
    vocab_size: int


@dataclass(frozen=True, slots=True)
class RemoteTicket:
    """A reading that is over before it begins."""

    known: ReadProgress

    def progress(self) -> ReadProgress:
        """All tokens, none of them computed."""
        return self.known

    def wait(self, timeout: float | None = None) -> ReadProgress:
        """Returns at once."""
        return self.known

    def cancel(self) -> None:
        """There is nothing to stop."""


class RemoteEngine:
    """Any number of OpenAI-compatible servers as one engine. Safe to call from any thread."""

    attends_pages = False

    def __init__(
        self, servers: Servers, tokenizer: Tokenizer, fingerprint: str, *, context_tokens: int
    ) -> None:
        """`context_tokens`: the window of the model on the servers. `fingerprint` names the
        tokenizer: tokens made by another are made again."""
        self.tokenizer = tokenizer
        self.fingerprint = f"remote-{fingerprint}"
        self.block_tokens = BLOCK_TOKENS
        self.config = RemoteShape(context_tokens, tokenizer.vocab_size)
        self.counters = EngineCounters(0, 0, 0, 0, 0, 0)
        self.step_times = None
        # Servers that hang are met by the time limit of their connections.
        self.step_seconds = 0.0
        self._servers = servers
        self._known: dict[str, ReadProgress] = {}
        self._live: dict[str, RemoteStream] = {}
        self._lock = threading.Lock()
        self._closed = False

    @property
    def alive(self) -> bool:
        """Whether a server can be asked."""
        return not self._closed and not self.problem

    @property
    def problem(self) -> str:
        """Why none can be asked; empty while one can."""
        return self._servers.problem

    def check(self) -> list[str]:
        """Asks every server now; what is wrong, one line each."""
        return self._servers.check()

    def split_blocks(self, token_count: int) -> tuple[tuple[int, int], ...]:
        """Half-open block ranges that cover `token_count` tokens."""
        starts = range(0, token_count, BLOCK_TOKENS)
        return tuple((start, min(start + BLOCK_TOKENS, token_count)) for start in starts)

    def read(
        self, document: DocumentTokens, *, first_blocks: Sequence[int] = (), lazy: bool = False
    ) -> RemoteTicket:
        """Makes a document known. Nothing is read ahead."""
        total = len(document.token_ids)
        progress = ReadProgress(document.key, total, total, 0, "done")
        self._known[document.key] = progress
        return RemoteTicket(progress)

    def progress(self, key: str) -> ReadProgress | None:
        """Reading state of a document, None when it is not known."""
        return self._known.get(key)

    def forget(self, key: str) -> None:
        """Drop a document."""
        self._known.pop(key, None)

    def pin(self, key: str, ttl_s: float) -> None:
        """Raises BackendError: servers keep their pages by their own rules."""
        raise BackendError(
            "Nothing can be pinned on a remote model server: it keeps pages by its own rules"
        )

    def unpin(self, key: str) -> None:
        """Nothing is pinned here."""

    def keep_documents(self, keys: Collection[str]) -> None:
        """Nothing is kept here."""

    def generate(self, request: Request) -> RemoteStream:
        """Runs a request on a server; its `messages` are what is sent. Raises BackendError for one
        without messages (only the bundled engine takes token ids) and EngineClosed."""
        if not request.messages:
            raise BackendError(
                "A remote model server takes chat messages, not tokens: use /v1/chat/completions."
            )
        stream = RemoteStream(self._servers, request)
        with self._lock:
            if self._closed:
                raise EngineClosed("The engine is closed.")
            for request_id in [one for one, known in self._live.items() if known.over]:
                del self._live[request_id]
            self._live[request.request_id] = stream
        return stream

    def score(
        self,
        prompt_ids: Sequence[int],
        continuation_ids: Sequence[int],
        *,
        document_key: str | None = None,
        evidence: Sequence[tuple[int, int]] = (),
        sink_len: int = 0,
    ) -> tuple[float, ...]:
        """Raises BackendError: the chat completions API tells no likelihood of given words."""
        raise BackendError(
            "A remote model server cannot score text. Leave ranking by the model off, or use the "
            "bundled engine."
        )

    def cancel(self, request_id: str) -> None:
        """Stops a request; one that is over or unknown stays as it is."""
        with self._lock:
            stream = self._live.pop(request_id, None)
        if stream is not None:
            stream.cancel()

    def steps_of(self, request_id: str) -> None:
        """The servers tell nothing of their steps."""

    def close(self) -> None:
        """Leaves all servers."""
        with self._lock:
            self._closed = True
            live, self._live = tuple(self._live.values()), {}
        for stream in live:
            stream.cancel()
        self._servers.close()
