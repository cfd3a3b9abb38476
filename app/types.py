"""Values that travel through the use cases and out of the doors (CLI, REST, UI)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from retrieval.types import DocumentWarning, Language

AnswerStatus = Literal["answered", "not_found", "partial"]
CheckKind = Literal["quote", "number", "date", "clause", "name", "negation", "computed"]
CitationRole = Literal["answer", "reference", "definition", "amendment"]
"""Why a quote is shown. `answer`: it answers; `reference`: an answer refers to its clause;
`definition`: it defines a term that decides the answer; `amendment`: it amends an answer, or is
what an answer amends."""
PhrasingUse = Literal["off", "none", "used", "cut", "dropped", "marked", "failed"]
"""What became of the model's own words. `off`: not asked for; `none`: the model had nothing to add;
`used`: shown whole; `cut`: shown up to the sentence that failed a check or to the length limit;
`dropped`: failed its checks, nothing shown; `marked`: failed its checks, shown as not confirmed;
`failed`: the engine gave an error."""


@dataclass(frozen=True, slots=True)
class PageBox:
    """A rectangle on a document page, fractions of its width and height, origin top left."""

    page: int
    x0: float
    y0: float
    x1: float
    y1: float


@dataclass(frozen=True, slots=True)
class Citation:
    """`quote` equals `text[start_char:end_char]` of the document. `page` is the physical page of
    its first character (None for formats without pages), `page_label` the printed one. `replaced`:
    an amendment that is cited as well deletes this text or puts other words in its place."""

    quote: str
    document_id: str
    document: str
    page: int | None
    page_label: str | None
    start_char: int
    end_char: int
    clause: str | None
    boxes: tuple[PageBox, ...]
    verified: bool
    role: CitationRole = "answer"
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """One quote, figure, date, clause number or name of the answer, looked up in the cited spans.
    `start` and `end` are its place in `Answer.answer`. `operands` are what a computed figure was
    made of, as the question and the cited spans write it; empty for the other kinds."""

    kind: CheckKind
    text: str
    ok: bool
    start: int
    end: int
    note: str = ""
    operands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """Tokens read of the document's tokens."""

    read_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class Timings:
    """Milliseconds. `ttft_ms` runs from the arrival of the question to the first token shown."""

    parse_ms: float
    index_ms: float
    queue_ms: float
    read_ms: float
    ttft_ms: float
    decode_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True)
class AnswerUsage:
    """Token counts; `read_tokens` are document tokens the engine read for this call."""

    prompt_tokens: int
    cached_tokens: int
    read_tokens: int
    completion_tokens: int


@dataclass(frozen=True, slots=True)
class NearestClause:
    """A clause that came near an unanswered question. `document` names its file."""

    clause: str | None
    heading: str
    page: int | None
    start_char: int
    end_char: int
    document_id: str = ""
    document: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """A checked answer. `finish_reason` is the engine's; "quote" when no text was generated.
    `standalone_question` is what was looked for when the question was a follow-up, None when it
    was asked as it stands."""

    answer: str
    status: AnswerStatus
    language: Language
    citations: tuple[Citation, ...]
    checks: tuple[Check, ...]
    coverage: Coverage
    timings: Timings
    usage: AnswerUsage
    finish_reason: str
    nearest: tuple[NearestClause, ...] = ()
    warnings: tuple[DocumentWarning, ...] = ()
    phrasing: PhrasingUse = "off"
    standalone_question: str | None = None


@dataclass(frozen=True, slots=True)
class AskOptions:
    """Switches of one answer.

    `quotes`: at most so many sentences lead the answer. `closeness`: a further sentence is quoted
    when its score is at least this share of the best one's, where no likelihood is known. `phrase`:
    let the model phrase the answer. `reinject`: what is put as text next to the question: the
    quotes, the whole chunk of the best one, or nothing. `pages`: give the model the KV pages of the
    evidence. `rerank`: order the best sentences by the model's
    P(question | sentence) before one is chosen (delays the first word). `evidence_tokens`: at most
    so many tokens of the document reach the model as KV pages.

    `follow_up`: read a question that leans on earlier ones as a standalone one. `lists`: answer
    "which clauses mention…" from every clause, at most `list_limit` of them at once. `references`,
    `definitions`, `amendments`: quote the clauses that an answer refers to, the terms that decide
    it, and what amends it or was amended. `compute`: sums, day counts and end dates from quoted
    operands. `backtrack`: look again into chunks that hold a telling word which no chosen one has.

    `regenerate`: when no word of the model passed its checks, ask once more with the whole clauses
    as text. `failed`: what becomes of a claim that still fails: nothing is shown, or the sentence
    marked as not confirmed.
    """

    quotes: int = 5
    closeness: float = 0.75
    phrase: bool = True
    max_tokens: int = 96
    reinject: Literal["quotes", "chunk", "nothing"] = "quotes"
    pages: bool = True
    rerank: bool = False
    evidence_tokens: int = 1536
    follow_up: bool = True
    lists: bool = True
    list_limit: int = 50
    references: bool = True
    definitions: bool = True
    amendments: bool = True
    compute: bool = True
    backtrack: bool = True
    regenerate: bool = False
    failed: Literal["drop", "mark"] = "drop"


@dataclass(frozen=True, slots=True)
class Turn:
    """An earlier question of the same conversation and the answer that it got."""

    question: str
    answer: str
