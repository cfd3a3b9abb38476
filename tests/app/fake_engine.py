"""An engine that reads nothing: the calls of `backend.engine.Engine` that storage makes, with a
word tokenizer, a settable pace and a count of what was asked of it."""

from __future__ import annotations

import re
import threading
import time
import zlib
from collections.abc import Collection, Mapping, Sequence
from types import SimpleNamespace

from backend.errors import RequestTooLarge
from backend.types import DocumentTokens, EngineCounters, ReadProgress


class WordTokenizer:
    """One token a word or a sign; no token for spaces."""

    def __init__(self) -> None:
        self.calls = 0

    def chat(
        self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True
    ) -> str:
        said = "".join(f"<{item['role']}>{item['content']}\n" for item in messages)
        return said + "<assistant>" if add_generation_prompt else said

    def encode(self, text: str, special: bool = False) -> list[int]:
        return [zlib.crc32(word.encode()) % 50_000 for word in re.findall(r"\w+|[^\w\s]", text)]

    def encode_with_spans(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        self.calls += 1
        spans = [match.span() for match in re.finditer(r"\w+|[^\w\s]", text)]
        return [zlib.crc32(text[a:b].encode()) % 50_000 for a, b in spans], spans


class FakeTicket:
    """Reads one block every `pace` seconds of wall time."""

    def __init__(self, document: DocumentTokens, pace: float, fails: str) -> None:
        self.document = document
        self.pace = pace
        self.fails = fails
        self.started = time.monotonic()
        self.cancelled = threading.Event()

    def progress(self) -> ReadProgress:
        total = len(self.document.token_ids)
        if self.fails:
            return ReadProgress(self.document.key, 0, total, 0, "failed", self.fails)
        if self.cancelled.is_set():
            return ReadProgress(self.document.key, 0, total, 0, "cancelled")
        blocks = len(self.document.blocks)
        passed = time.monotonic() - self.started
        done = blocks if self.pace == 0 else min(blocks, int(passed / self.pace))
        read = self.document.blocks[done - 1][1] if done else 0
        if done == blocks:
            return ReadProgress(self.document.key, total, total, total, "done")
        return ReadProgress(self.document.key, read, total, read, "reading")

    def wait(self, timeout: float | None = None) -> ReadProgress:
        end = time.monotonic() + (3600.0 if timeout is None else timeout)
        while time.monotonic() < end and self.progress().status in ("queued", "reading"):
            time.sleep(0.01)
        return self.progress()

    def cancel(self) -> None:
        self.cancelled.set()


class FakeEngine:
    """`pace`: seconds a block; `fails`: the error of every read; `room`: tokens it can hold."""

    def __init__(self, *, pace: float = 0.0, fails: str = "", room: int = 10**9) -> None:
        self.attends_pages = True
        self.tokenizer = WordTokenizer()
        self.fingerprint = "fake-1"
        self.block_tokens = 64
        self.pace = pace
        self.fails = fails
        self.room = room
        self.tickets: list[FakeTicket] = []
        self.forgotten: list[str] = []
        self.pins: dict[str, float] = {}
        self.kept: frozenset[str] | None = None
        self.cancelled: list[str] = []
        self.closed = False
        self.step_seconds = 0.0
        self.config = SimpleNamespace(max_positions=8192, vocab_size=50_000)
        self.counters = EngineCounters(5, 4, 3, 2560, 40, 64)
        self.step_times = None

    def split_blocks(self, token_count: int) -> tuple[tuple[int, int], ...]:
        starts = range(0, token_count, self.block_tokens)
        return tuple((start, min(start + self.block_tokens, token_count)) for start in starts)

    def read(
        self,
        document: DocumentTokens,
        *,
        first_blocks: Sequence[int] = (),
        lazy: bool = False,
    ) -> FakeTicket:
        if len(document.token_ids) > self.room and not lazy:
            raise RequestTooLarge("Raise the KV budget.")
        self.tickets.append(FakeTicket(document, self.pace, self.fails))
        return self.tickets[-1]

    def cancel(self, request_id: str) -> None:
        self.cancelled.append(request_id)

    def forget(self, key: str) -> None:
        self.forgotten.append(key)

    def pin(self, key: str, ttl_s: float) -> None:
        self.pins[key] = ttl_s

    def unpin(self, key: str) -> None:
        self.pins.pop(key, None)

    def keep_documents(self, keys: Collection[str]) -> None:
        self.kept = frozenset(keys)

    def steps_of(self, request_id: str) -> None:
        return None

    def close(self) -> None:
        self.closed = True
