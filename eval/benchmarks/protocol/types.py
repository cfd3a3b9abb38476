"""Values of the protocol: what is planned, and what became of it. Times are in milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from backend.types import DocumentTokens, Request
from eval.benchmarks.engine_documents import UniqueDocument
from eval.benchmarks.mixed.types import Kind
from eval.benchmarks.protocol.bounds import Bound

Status = Literal["done", "failed", "unfinished", "not sent"]
METRICS = ("ttft_any", "ttft_grounded", "ttft_warm", "read", "total")
"""Of a request, see `RequestRecord`."""
Fields = dict[str, object]


@dataclass(frozen=True, slots=True)
class Planned:
    """One request: a document and three questions about it, ready to be given to the engine.

    `again`: its document was in the cold load of the same round. `kept`: it will be in the mixed
    load, so that the engine is not told to forget it.
    """

    name: str
    kind: Kind
    document: UniqueDocument
    given: DocumentTokens
    questions: tuple[Request, Request, Request]
    again: bool = False
    kept: bool = False

    @property
    def tokens(self) -> int:
        """Tokens of the document."""
        return self.document.tokens


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """What became of a request. `times`, by metric, has what was measured; a request that was given
    up when the time was over has lower bounds:

        ttft_any       the document's arrival to the first token of the first answer
        ttft_grounded  arrival to the first token of an answer asked when all was read
        ttft_warm      a third question's arrival to its first token
        read           arrival until the document was read
        total          arrival to the end of the last answer

    `arrival` is counted from the beginning of the cell. Of the document's tokens `computed` went
    through the model for this request (some twice, where pages had to make room), `reused` were
    there when it was read (None: it was not). `read_for` are those computed for each question.
    """

    name: str
    kind: Kind
    tokens: int
    again: bool
    status: Status
    fault: str = ""
    arrival: float | None = None
    times: Mapping[str, Bound] | None = None
    computed: int = 0
    reused: int | None = None
    read_for: Mapping[str, int] | None = None

    @property
    def read_again(self) -> int:
        """Tokens that went through the model more than once."""
        return max(self.computed + (self.reused or 0) - self.tokens, 0)

    def fields(self) -> Fields:
        """The request for the record."""
        return {
            "name": self.name,
            "kind": self.kind,
            "tokens": self.tokens,
            "again": self.again,
            "status": self.status,
            "fault": self.fault,
            "arrival_ms": self.arrival,
            **{f"{name}_ms": bound.fields() for name, bound in sorted((self.times or {}).items())},
            "computed_tokens": self.computed,
            "reused_tokens": self.reused,
            "read_again_tokens": self.read_again,
            "read_for_questions": dict(self.read_for or {}),
        }


@dataclass(frozen=True, slots=True)
class CellRecord:
    """One load sent once. `cut`: the time was over before it was done. `counters` are the engine's,
    over the cell."""

    arm: str
    cell: str
    round: int
    wall_s: float
    cut: bool
    peak: int
    counters: Mapping[str, float]
    records: tuple[RequestRecord, ...]

    @property
    def reuse_rate(self) -> float | None:
        """Reused tokens of those of the documents that were read, 0 to 1."""
        read = [(one.tokens, one.reused) for one in self.records if one.reused is not None]
        tokens = sum(length for length, _ in read)
        return sum(reused for _, reused in read) / tokens if tokens else None

    @property
    def label(self) -> str:
        """What the cell was by measurement."""
        rate = self.reuse_rate
        if rate is None:
            return "nothing read"
        return "mixed" if rate else "cold"

    def fields(self) -> Fields:
        """The cell for the record."""
        return {
            "arm": self.arm,
            "cell": self.cell,
            "round": self.round,
            "label": self.label,
            "reuse_rate": self.reuse_rate,
            "wall_s": self.wall_s,
            "cut": self.cut,
            "peak_in_flight": self.peak,
            "counters": dict(self.counters),
            "requests": [record.fields() for record in self.records],
        }
