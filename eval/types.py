"""Values that travel through an evaluation: documents with questions, replies, records.

All spans are half-open, in Unicode code points of the document's text. Knows no file format, no
metric and no engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from retrieval.types import Document, Language

Span = tuple[int, int]
Mode = Literal["evidence", "text", "dense", "bm25", "peer"]
ReplyStatus = Literal["answered", "partial", "not_found"]
SampleStatus = Literal["done", "failed", "unfit"]
"""`done`: a reply was scored; `failed`: it ended with an error; `unfit`: the mode can't take this
document (longer than the model's window, say). The last two count as wrong in every denominator."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question with its gold answers. `spans` holds their places in the text; an answer that
    is no span (yes/no, a choice) has none. `answer` is the letter or label of the right choice."""

    qid: str
    question: str
    answers: tuple[str, ...] = ()
    spans: tuple[Span, ...] = ()
    is_impossible: bool = False
    category: str = ""
    choices: tuple[str, ...] = ()
    answer: str = ""
    label: str = ""
    reference_answer: str = ""


@dataclass(frozen=True, slots=True)
class EvalDocument:
    """One document of a question set, parsed."""

    doc_id: str
    title: str
    lang: Language
    kind: str
    document: Document
    questions: tuple[Question, ...]
    source: str = ""
    licence: str = ""

    @property
    def text(self) -> str:
        """The text that all spans point into."""
        return self.document.text


@dataclass(frozen=True, slots=True)
class CitedSpan:
    """A quote of a reply. `quote` is what was shown, which a correct reply finds at the span.
    `role`: `answer`, or why it is shown beside one (a clause referred to, a definition…)."""

    start: int
    end: int
    quote: str
    verified: bool
    role: str = "answer"


@dataclass(frozen=True, slots=True)
class ReplyTimings:
    """Milliseconds. `ttft_ms`: arrival of the question to the first token shown; None when nothing
    was generated or shown."""

    ttft_ms: float | None
    total_ms: float
    queue_ms: float = 0.0
    read_ms: float = 0.0
    decode_ms: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplyUsage:
    """Token counts; `read_tokens` are document tokens the engine computed for this question."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    read_tokens: int = 0
    completion_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """What a mode made of one question.

    `shown` is all that a reader sees. `prediction` is what is compared with the gold answers: the
    quotes and the model's words without labels, markers and notices; empty for "not found".
    `claims` is the part of `shown` that is in the model's own words. `marked` are the words in it
    that were shown as unverified. `hits` are the retrieved chunks, best first. `nll` is the mean
    negative log-likelihood (nats per token) of the gold answer in this mode; `choice` the letter
    that a multiple-choice question got.
    """

    status: ReplyStatus
    shown: str
    prediction: str
    timings: ReplyTimings
    citations: tuple[CitedSpan, ...] = ()
    claims: str = ""
    marked: tuple[str, ...] = ()
    hits: tuple[Span, ...] = ()
    nll: float | None = None
    choice: str | None = None
    finish_reason: str = ""
    usage: ReplyUsage = field(default_factory=ReplyUsage)


Scores = dict[str, float | None]
"""Values of one sample by metric name; None where a metric does not apply to the question."""


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """One line of `records.jsonl`. `qid` is unique within a run (`<doc_id>/<qid>` when sets
    repeat them). `depth` is where the first gold span's middle lies in the document, 0 to 1.
    `doc_tokens` is None in modes without a model."""

    qid: str
    doc_id: str
    dataset: str
    lang: Language
    category: str
    answerable: bool
    doc_chars: int
    doc_tokens: int | None
    depth: float | None
    status: SampleStatus
    error: str = ""
    question: str = ""
    gold: tuple[str, ...] = ()
    reply: Reply | None = None
    scores: Scores = field(default_factory=dict)
