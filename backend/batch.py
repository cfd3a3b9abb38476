"""What the scheduler gives the runner to do in one step."""

from __future__ import annotations

from dataclasses import dataclass

from backend.reading import DocumentReading
from backend.sequence import Sequence


@dataclass(frozen=True, slots=True)
class ReadBlocks:
    """Read blocks of a document together, for `asker` if a question waits for them."""

    reading: DocumentReading
    indexes: tuple[int, ...]
    asker: Sequence | None = None


@dataclass(frozen=True, slots=True)
class Prefill:
    """Put the next `tokens` prompt tokens of a request into its context."""

    sequence: Sequence
    tokens: int


@dataclass(frozen=True, slots=True)
class Decode:
    """One more token for each of the requests."""

    sequences: tuple[Sequence, ...]


Batch = ReadBlocks | Prefill | Decode
