"""Documents as the REST API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from app.api.schemas.common import Entity, FaultPublic, Public, WarningPublic
from app.documents import (
    DocumentRecord,
    DocumentStatus,
    LoadedDocument,
    ProgressUnit,
    Stage,
    Waiting,
    WaitReason,
)
from retrieval.receipt import Receipt
from retrieval.types import Language


class ProgressPublic(Public):
    """How far the current stage is."""

    done: int
    total: int
    unit: ProgressUnit


class DocumentTimingsPublic(Public):
    """Milliseconds; null while a stage has not ended."""

    parse_ms: float | None
    index_ms: float | None
    read_ms: float | None


class ReadPublic(Public):
    """How the engine read the document: tokens that went through the model, and tokens whose KV was
    there before (the same text in another document, a reading that was taken up again)."""

    computed_tokens: int
    reused_tokens: int


class WaitingPublic(Public):
    """Why nothing happens to a document now. `reason`: `worker`, it is to be taken up behind
    `documents` of yours; `paused`, it is to be taken up or read behind so many, and nothing begins
    for now; `documents`, it is to be read behind so many of yours; `engine`, it waits for
    its turn or for room in the engine, which has so many of yours under way beside it, and may be
    at questions or at other owners' documents."""

    reason: WaitReason
    documents: int


class DocumentPublic(Entity):
    """One uploaded file and the state of its ingestion. It can be asked when `askable`. `read` is
    null until the reading has ended, and for documents that are not read ahead. `waiting` is null
    while something happens to it, and once it is over. `ready_tokens` of `total_tokens` were read
    in its turn; what questions have had read before is told by an answer's `coverage`."""

    object: Literal["document"] = "document"
    name: str
    sha256: str
    size: int
    media_type: str | None
    language: Language | None
    status: DocumentStatus
    stage: Stage
    askable: bool
    progress: ProgressPublic
    waiting: WaitingPublic | None
    ready_tokens: int
    total_tokens: int
    page_count: int
    warnings: list[WarningPublic]
    error: FaultPublic | None
    created_at: datetime
    timings: DocumentTimingsPublic
    read: ReadPublic | None

    @classmethod
    def of(cls, record: DocumentRecord, waiting: Waiting | None) -> DocumentPublic:
        return cls.model_validate(_fields(record, waiting))


class UploadPublic(DocumentPublic):
    """The answer to an upload. `duplicate`: these bytes were here before; nothing was stored."""

    duplicate: bool

    @classmethod
    def of_upload(
        cls, record: DocumentRecord, waiting: Waiting | None, *, duplicate: bool
    ) -> UploadPublic:
        return cls.model_validate(_fields(record, waiting) | {"duplicate": duplicate})


class DeletedPublic(Public):
    """What was deleted."""

    id: str
    object: str
    deleted: Literal[True] = True


class TextPublic(Public):
    """`text` is characters `start` to `end` (half-open, code points) of `total_chars`."""

    object: Literal["document.text"] = "document.text"
    document_id: str
    start: int
    end: int
    total_chars: int
    text: str


class ClausePublic(Entity):
    """A clause of the outline. `parent` is the `id` of the clause around it."""

    object: Literal["clause"] = "clause"
    number: str
    title: str
    level: int
    start: int
    end: int
    parent: str | None
    page: int

    @classmethod
    def all_of(cls, document: LoadedDocument) -> list[ClausePublic]:
        """The whole outline in reading order."""
        return [
            cls(
                id=str(clause.index),
                number=clause.number,
                title=clause.title,
                level=clause.level,
                start=clause.start,
                end=clause.end,
                parent=None if clause.parent is None else str(clause.parent),
                page=document.page_at(clause.start).number,
            )
            for clause in document.clauses
        ]


class PageReceiptPublic(Public):
    """What was got from one page. `method`: text, ocr (recognised in its picture), empty or
    unreadable. `garbled`: share of its characters that can't be decoded. `garbled` and `tables`
    are null for documents that were taken in before they were counted."""

    number: int
    label: str | None
    method: str
    characters: int
    garbled: float | None
    tables: int | None


class FiguresPublic(Public):
    """Figures of the file, counted by a pass of their own, against those that can be searched.
    `added`: numbers that Word computes for its lists, and marks of notes. `left_out`: in running
    headers and footers, hidden or deleted text. `missing_count` were lost; `missing` lists the
    first 50."""

    in_file: int
    in_text: int
    in_index: int | None
    left_out: int
    added: int
    missing_count: int
    missing: list[str]


class ReceiptPublic(Public):
    """What ingestion made of a file, page by page, so that lost text can be seen. `garbled`,
    `tables`, `empty_pages` and `figures` are null for documents that were taken in before they
    were counted: upload those again."""

    object: Literal["document.receipt"] = "document.receipt"
    document_id: str
    name: str
    media_type: str | None
    language: Language | None
    characters: int
    tokens: int
    clauses: int
    chunks: int
    garbled: float | None
    tables: int | None
    empty_pages: list[int] | None
    figures: FiguresPublic | None
    pages: list[PageReceiptPublic]
    warnings: list[WarningPublic]

    @classmethod
    def of(cls, document: LoadedDocument, receipt: Receipt | None) -> ReceiptPublic:
        """`receipt` is what was counted when the document was taken in."""
        counted = {} if receipt is None else {page.number: page for page in receipt.pages}
        return cls(
            document_id=document.record.id,
            name=document.record.name,
            media_type=document.record.media_type,
            language=document.record.language,
            characters=len(document.text),
            tokens=len(document.tokens.token_ids),
            clauses=len(document.clauses),
            chunks=len(document.index.chunks),
            garbled=None if receipt is None else receipt.garbled,
            tables=None if receipt is None else receipt.tables,
            empty_pages=None if receipt is None else list(receipt.empty_pages),
            figures=None if receipt is None else FiguresPublic.model_validate(receipt.figures),
            pages=[
                PageReceiptPublic(
                    number=page.number,
                    label=page.label,
                    method=page.method,
                    characters=len(document.text[page.start : page.end].strip()),
                    garbled=counted[page.number].garbled if page.number in counted else None,
                    tables=counted[page.number].tables if page.number in counted else None,
                )
                for page in document.pages
            ],
            warnings=[WarningPublic.model_validate(one) for one in document.record.warnings],
        )


def progress_of(record: DocumentRecord) -> ProgressPublic:
    """The progress part of a record."""
    return ProgressPublic(
        done=record.progress_done, total=record.progress_total, unit=record.progress_unit
    )


def _fields(record: DocumentRecord, waiting: Waiting | None) -> dict[str, object]:
    fault = None
    if record.error_code is not None:
        fault = FaultPublic(code=record.error_code, message=record.error_message or "")
    return {
        "id": record.id,
        "name": record.name,
        "sha256": record.sha256,
        "size": record.size,
        "media_type": record.media_type,
        "language": record.language,
        "status": record.status,
        "stage": record.stage,
        "askable": record.askable,
        "progress": progress_of(record),
        "waiting": None if waiting is None else WaitingPublic.model_validate(waiting),
        "ready_tokens": record.ready_tokens,
        "total_tokens": record.total_tokens,
        "page_count": record.page_count,
        "warnings": [WarningPublic.model_validate(one) for one in record.warnings],
        "error": fault,
        "created_at": record.created_at,
        "timings": DocumentTimingsPublic.model_validate(record.timings),
        "read": None if record.computed_tokens is None else ReadPublic.model_validate(record),
    }
