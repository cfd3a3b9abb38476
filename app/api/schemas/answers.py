"""Questions and answers as the REST API shows them, and the events of a stream."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from app.answer_run import CANCELLED, AnswerRun, RunState
from app.api.schemas.common import (
    Body,
    BoxPublic,
    Entity,
    FaultPublic,
    Number,
    Public,
    WarningPublic,
)
from app.conversations import Conversation, Message
from app.events import (
    AnswerCompleted,
    AnswerConfirmed,
    AnswerCreated,
    AnswerDelta,
    AnswerEvent,
    AnswerFailed,
    AnswerFramework,
    AnswerRevised,
    CheckDone,
    CitationFound,
    CoverageChanged,
    DeltaKind,
)
from app.types import Answer, AnswerStatus, CheckKind, CitationRole, PhrasingUse
from retrieval.types import Language

MAX_DOCUMENTS = 20
Id = Annotated[str, Field(max_length=64)]
TimeoutSeconds = Annotated[Number, Field(ge=1, le=3600, allow_inf_nan=False)]
"""From the question's arrival; at the end what is shown stands (`finish_reason: timeout`)."""


class AnswerCreate(Body):
    """A question. With `stream` (or `Accept: text/event-stream`) the reply is an event stream.
    `until_read`: stay until the documents are read; the answer comes at once as a framework and is
    confirmed or revised then."""

    question: str
    document_ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_DOCUMENTS, fail_fast=True)]
    conversation_id: Id | None = None
    stream: bool = False
    until_read: bool = False
    timeout_s: TimeoutSeconds | None = None


class CitationPublic(Public):
    """`quote` is characters `start_char` to `end_char` of the document's text. `role` says why it
    is shown; `replaced`: an amendment that is cited as well puts it out of force."""

    quote: str
    document_id: str
    document: str
    page: int | None
    page_label: str | None
    start_char: int
    end_char: int
    clause: str | None
    boxes: list[BoxPublic]
    verified: bool
    role: CitationRole
    replaced: bool


class CheckPublic(Public):
    """A quote, figure, date, clause number or name looked up in the cited spans; `start` and `end`
    are its place in the answer. `operands`: what a computed figure was made of."""

    kind: CheckKind
    text: str
    ok: bool
    start: int
    end: int
    note: str
    operands: list[str]


class CoveragePublic(Public):
    read_tokens: int
    total_tokens: int


class TimingsPublic(Public):
    """Milliseconds."""

    parse_ms: float
    index_ms: float
    queue_ms: float
    read_ms: float
    ttft_ms: float
    decode_ms: float
    total_ms: float


class UsagePublic(Public):
    """`read_tokens`: document tokens the engine read for this answer."""

    prompt_tokens: int
    cached_tokens: int
    read_tokens: int
    completion_tokens: int


class NearestPublic(Public):
    """A clause that came near an unanswered question."""

    clause: str | None
    heading: str
    page: int | None
    start_char: int
    end_char: int
    document_id: str
    document: str


class ResultPublic(Public):
    """A checked answer."""

    answer: str
    status: AnswerStatus
    language: Language
    citations: list[CitationPublic]
    checks: list[CheckPublic]
    coverage: CoveragePublic
    timings: TimingsPublic
    usage: UsagePublic
    finish_reason: str
    phrasing: PhrasingUse
    nearest: list[NearestPublic]
    warnings: list[WarningPublic]
    standalone_question: str | None


class AnswerPublic(Entity):
    """A question and, once `state` is completed (or cancelled half-way), its answer; the fields of
    the answer are null until then. `ahead`: while it is queued, how many questions of yours are
    taken up before it; else null."""

    object: Literal["answer"] = "answer"
    state: RunState
    question: str
    document_ids: list[str]
    conversation_id: str
    created_at: datetime
    ahead: int | None = None
    error: FaultPublic | None = None
    answer: str | None = None
    status: AnswerStatus | None = None
    language: Language | None = None
    citations: list[CitationPublic] | None = None
    checks: list[CheckPublic] | None = None
    coverage: CoveragePublic | None = None
    timings: TimingsPublic | None = None
    usage: UsagePublic | None = None
    finish_reason: str | None = None
    phrasing: PhrasingUse | None = None
    nearest: list[NearestPublic] | None = None
    warnings: list[WarningPublic] | None = None
    standalone_question: str | None = None

    @classmethod
    def of(cls, run: AnswerRun, ahead: int | None = None) -> AnswerPublic:
        """The run as it is now."""
        outcome = run.outcome
        fields: dict[str, object] = {}
        if isinstance(outcome, AnswerCompleted):
            fields = result_fields(outcome.answer)
        elif isinstance(outcome, AnswerFailed):
            fields = {"error": FaultPublic(code=outcome.code, message=outcome.message)}
        return cls.model_validate(
            {
                "id": run.id,
                "state": run.state,
                "question": run.question,
                "document_ids": list(run.document_ids),
                "conversation_id": run.conversation_id,
                "created_at": run.created_at,
                "ahead": ahead,
                **fields,
            }
        )

    @classmethod
    def of_saved(cls, asked: Message, given: Message, conversation: Conversation) -> AnswerPublic:
        """An answer that is over, from the database. `document_ids` are then those with which its
        conversation began."""
        fields: dict[str, object] = {}
        state: RunState = given.status
        if given.answer is not None:
            fields = result_fields(given.answer)
            state = "cancelled" if given.answer.finish_reason == CANCELLED else state
        elif given.error_code is not None:
            fault = FaultPublic(code=given.error_code, message=given.error_message or "")
            fields = {"error": fault}
        return cls.model_validate(
            {
                "id": given.id,
                "state": state,
                "question": asked.content,
                "document_ids": list(conversation.document_ids),
                "conversation_id": conversation.id,
                "created_at": given.created_at,
                **fields,
            }
        )


def result_fields(answer: Answer) -> dict[str, object]:
    """The fields of an answer, ready for AnswerPublic."""
    return dict(ResultPublic.model_validate(answer))


def event_data(event: AnswerEvent, run: AnswerRun) -> dict[str, object]:
    """The `data` of a server-sent event; its `type` repeats the event's name."""
    match event:
        case AnswerCreated():
            body: dict[str, object] = {
                "id": run.id,
                "conversation_id": run.conversation_id,
                "question": event.question,
                "standalone_question": event.standalone_question,
                "language": event.language,
                "document_ids": list(event.document_ids),
            }
        case CoverageChanged():
            body = CoveragePublic.model_validate(event.coverage).model_dump()
        case AnswerDelta():
            kind: DeltaKind = event.kind
            body = {"text": event.text, "kind": kind}
        case CitationFound():
            citation = CitationPublic.model_validate(event.citation).model_dump()
            body = {"index": event.index, **citation}
        case CheckDone():
            body = CheckPublic.model_validate(event.check).model_dump()
        case AnswerFramework():
            read = CoveragePublic.model_validate(event.coverage).model_dump()
            body = {"coverage": read, "status": event.status}
        case AnswerConfirmed():
            body = {"coverage": CoveragePublic.model_validate(event.coverage).model_dump()}
        case AnswerRevised():
            read = CoveragePublic.model_validate(event.coverage).model_dump()
            body = {"coverage": read, "changed": list(event.changed)}
        case AnswerCompleted():
            body = AnswerPublic.of(run).model_dump(mode="json")
        case AnswerFailed():
            body = {"code": event.code, "message": event.message}
    return {"type": event.type, **body}
