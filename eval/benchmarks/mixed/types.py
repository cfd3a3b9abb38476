"""Values that travel through the mixed-load benchmark: requests, answers, records.

All times are milliseconds on the client's clock, counted from the beginning of a cell (one load
sent once). A record's `timeline` holds the marks that its request reached:

    arrival        when the request was due (open loop) or taken up (closed loop)
    sent           just before the first byte of the upload or prompt was sent
    accepted       the reply to the upload was there
    askable        the server said that questions are taken
    first_text     first text of the first answer
    read_complete  the server said that all of the document is read
    grounded_text  first text of the first answer asked after that
    warm_asked, warm_text   a further question on the read document
    done           the last answer ended
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["short", "long"]
Status = Literal["done", "failed"]
Role = Literal["any", "grounded", "warm"]
Label = Literal["cold", "warm", "mixed", "unknown"]
LabelSource = Literal["engine counters", "documents", "usage", "nothing"]


@dataclass(frozen=True, slots=True)
class PlantedQuestion:
    """A question whose answer `expected` stands in the document once."""

    text: str
    expected: str


@dataclass(frozen=True, slots=True)
class LoadRequest:
    """One document with the questions to ask about it: three, in this order (see `Role`).

    `tokens` is the document's length by the load's own tokenizer. `at_ms` is when the request is
    due; None leaves that to the concurrency. Two requests with the same `document` text are the
    same document.
    """

    request_id: str
    cell: str
    document: str
    questions: tuple[PlantedQuestion, ...]
    tokens: int
    kind: Kind
    output_tokens: int
    at_ms: float | None = None


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """One answer as the client saw it, and what the server said about it.

    `ttft_ms` runs from the sending of the question to its first text; `first_kind` tells what that
    text was (quote, phrasing, notice, content, reasoning). `retries` counts refusals (429, 503)
    that were waited out; the waiting is part of the times. `right` is whether the expected words
    stood in the answer.
    """

    role: Role
    ttft_ms: float
    total_ms: float
    first_kind: str
    characters: int
    retries: int
    right: bool
    status: str = ""
    finish_reason: str = ""
    server_timings: Mapping[str, float] = field(default_factory=dict)
    usage: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a request failed, and how far it had come."""

    stage: str
    code: str
    message: str


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request of a load, done or failed.

    `document_tokens` are the server's count. `computed_tokens` of them went through the model for
    this request and `reused_tokens` were there before; None where the server does not tell.
    `known`: the server had the same document already.
    """

    request_id: str
    kind: Kind
    planned_tokens: int
    status: Status
    timeline: Mapping[str, float]
    answers: tuple[AnswerRecord, ...] = ()
    fault: Fault | None = None
    document_tokens: int | None = None
    computed_tokens: int | None = None
    reused_tokens: int | None = None
    known: bool = False
    server_timings: Mapping[str, float] = field(default_factory=dict)

    def between(self, start: str, end: str) -> float | None:
        """Milliseconds from one mark to another; None when one of them was not reached."""
        if start not in self.timeline or end not in self.timeline:
            return None
        return self.timeline[end] - self.timeline[start]

    @property
    def ttft_any_ms(self) -> float | None:
        """Arrival to the first text of anything."""
        return self.between("arrival", "first_text")

    @property
    def ttft_grounded_ms(self) -> float | None:
        """Arrival to the first text of an answer asked when all of the document was read."""
        return self.between("arrival", "grounded_text")

    @property
    def ttft_warm_ms(self) -> float | None:
        """A question on a document that is read and was asked before, to its first text."""
        return self.between("warm_asked", "warm_text")

    @property
    def ttft_any_from_question_ms(self) -> float | None:
        """The first question to its first text, without the upload."""
        return next((answer.ttft_ms for answer in self.answers if answer.role == "any"), None)

    @property
    def read_ms(self) -> float | None:
        """Arrival until all of the document was read."""
        return self.between("arrival", "read_complete")

    @property
    def total_ms(self) -> float | None:
        """Arrival to the end of the last answer."""
        return self.between("arrival", "done")


@dataclass(frozen=True, slots=True)
class Reuse:
    """How much of a cell's documents was there before it began. `tokens` counts the documents of
    requests that ended well. Both None when nothing tells."""

    tokens: int | None
    reused: int | None
    source: LabelSource

    @property
    def rate(self) -> float | None:
        """Reused tokens of all tokens, 0 to 1."""
        if not self.tokens or self.reused is None:
            return None
        return self.reused / self.tokens


@dataclass(frozen=True, slots=True)
class CellRecord:
    """One load sent once. `claim` is what the load was built to be; `label` what was measured.
    `loop_lag_ms` are samples of how late the client itself was."""

    cell: str
    claim: Label | None
    label: Label
    reuse: Reuse
    wall_ms: float
    peak_in_flight: int
    loop_lag_ms: tuple[float, ...]
    counters: Mapping[str, float]
    records: tuple[RequestRecord, ...]
