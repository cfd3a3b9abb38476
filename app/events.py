"""What an answer tells while it comes into being.

One frozen event per step; `type` is the name of the server-sent event and stands in its data. The
events know nothing of transport, identifiers or resuming: the door that streams them adds those.

Order: created, coverage, then deltas, citations and checks, then exactly one of completed or error.
The `text` of all deltas joined, of those behind `answer.revised` where there is one, is
`Answer.answer`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from app.errors import AppError
from app.types import Answer, AnswerStatus, Check, Citation, Coverage
from retrieval.types import Language

DeltaKind = Literal["quote", "phrasing", "notice"]


@dataclass(frozen=True, slots=True)
class AnswerCreated:
    """The question was accepted. `standalone_question` is what is looked for when the question
    leans on earlier ones, else None."""

    request_id: str
    question: str
    language: Language
    document_ids: tuple[str, ...]
    standalone_question: str | None = None
    type: Literal["answer.created"] = field(default="answer.created", init=False)


@dataclass(frozen=True, slots=True)
class CoverageChanged:
    """How much of the documents has been read by now."""

    coverage: Coverage
    type: Literal["answer.coverage"] = field(default="answer.coverage", init=False)


@dataclass(frozen=True, slots=True)
class AnswerDelta:
    """The next piece of the answer. `kind` tells document text ("quote") from the model's words
    ("phrasing") and from our own ("notice"). Text of every kind has passed its checks."""

    text: str
    kind: DeltaKind
    type: Literal["answer.delta"] = field(default="answer.delta", init=False)


@dataclass(frozen=True, slots=True)
class CitationFound:
    """Citation number `index` (counted from 1, as in the marker `[1]` of the answer)."""

    index: int
    citation: Citation
    type: Literal["citation"] = field(default="citation", init=False)


@dataclass(frozen=True, slots=True)
class CheckDone:
    """A quote, figure, date, clause number or name was looked up in the cited spans."""

    check: Check
    type: Literal["check"] = field(default="check", init=False)


@dataclass(frozen=True, slots=True)
class AnswerFramework:
    """What was said so far is preliminary: the documents are read as far as `coverage` says. Comes
    only to those who asked to stay until they are read; a confirmation or a revision follows."""

    coverage: Coverage
    status: AnswerStatus
    type: Literal["answer.framework"] = field(default="answer.framework", init=False)


@dataclass(frozen=True, slots=True)
class AnswerConfirmed:
    """Read to the end, the documents give the same answer."""

    coverage: Coverage
    type: Literal["answer.confirmed"] = field(default="answer.confirmed", init=False)


@dataclass(frozen=True, slots=True)
class AnswerRevised:
    """Read to the end, the documents give another answer, which follows from its beginning and
    takes the place of the one before. `changed` names what is different."""

    coverage: Coverage
    changed: tuple[Literal["status", "citations", "wording"], ...]
    type: Literal["answer.revised"] = field(default="answer.revised", init=False)


@dataclass(frozen=True, slots=True)
class AnswerCompleted:
    """The last event of an answer."""

    answer: Answer
    type: Literal["answer.completed"] = field(default="answer.completed", init=False)


@dataclass(frozen=True, slots=True)
class AnswerFailed:
    """The last event when no answer could be made. `code` is stable, `message` is for people,
    `status` for the doors (see `app.errors`)."""

    code: str
    message: str
    status: int = 500
    type: Literal["error"] = field(default="error", init=False)

    @classmethod
    def of(cls, error: AppError) -> AnswerFailed:
        """The end of an answer that failed so."""
        return cls(error.code, error.message, error.status)


AnswerEvent = (
    AnswerCreated
    | CoverageChanged
    | AnswerDelta
    | CitationFound
    | CheckDone
    | AnswerFramework
    | AnswerConfirmed
    | AnswerRevised
    | AnswerCompleted
    | AnswerFailed
)
