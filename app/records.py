"""Rows to values: what a document's rows say, as `DocumentRecord` and the retrieval types. Reads
inside the caller's transaction; writes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, cast

from sqlalchemy import Select, and_, func, select
from sqlalchemy.orm import Session, aliased, undefer

from app.db.models import ChunkRow, ClauseRow, DocumentRow, PageRow, VersionRow
from app.documents import DocumentRecord, DocumentStatus, DocumentTimings, ProgressUnit, Stage
from retrieval.types import Chunk, Clause, Document, DocumentPage, DocumentWarning, Language


def documents_query() -> Select[DocumentRow, VersionRow | None]:
    """Every document with its newest version, if it has one."""
    other = aliased(VersionRow)
    newest = (
        select(func.max(other.number))
        .where(other.document_id == DocumentRow.id)
        .correlate(DocumentRow)
        .scalar_subquery()
    )
    query = select(DocumentRow, VersionRow).outerjoin(
        VersionRow, and_(VersionRow.document_id == DocumentRow.id, VersionRow.number == newest)
    )
    return cast("Select[DocumentRow, VersionRow | None]", query)


def find_document(
    session: Session, document_id: str
) -> tuple[DocumentRow, VersionRow | None] | None:
    """The rows of one document."""
    row = session.execute(documents_query().where(DocumentRow.id == document_id)).one_or_none()
    return None if row is None else (row[0], row[1])


def record_of(row: DocumentRow, version: VersionRow | None) -> DocumentRecord:
    """The record that the rows make."""
    return DocumentRecord(
        id=row.id,
        owner=row.owner,
        name=row.name,
        sha256=row.sha256,
        size=row.size,
        media_type=version.media_type if version else None,
        language=cast("Language", version.language) if version else None,
        status=cast("DocumentStatus", row.status),
        stage=cast("Stage", row.stage),
        progress_done=row.progress_done,
        progress_total=row.progress_total,
        progress_unit=cast("ProgressUnit", row.progress_unit),
        ready_tokens=row.ready_tokens,
        total_tokens=row.total_tokens,
        page_count=version.page_count if version else 0,
        warnings=warnings_of(version.warnings) if version else (),
        error_code=row.error_code,
        error_message=row.error_message,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
        timings=DocumentTimings(row.parse_ms, row.index_ms, row.read_ms),
        computed_tokens=row.computed_tokens,
    )


def warnings_of(stored: list[Any]) -> tuple[DocumentWarning, ...]:
    """Warnings out of their JSON form."""
    return tuple(
        DocumentWarning(item["code"], item["message"], tuple(item["pages"])) for item in stored
    )


def text_of(session: Session, version_id: int) -> str:
    """The text of a version, which other queries leave out."""
    query = select(VersionRow).where(VersionRow.id == version_id).options(undefer(VersionRow.text))
    return session.execute(query).scalar_one().text


def parsed_document(session: Session, row: DocumentRow, version: VersionRow) -> Document:
    """What the parser gave, without the geometry."""
    return Document(
        text=text_of(session, version.id),
        pages=pages_of(session, version.id),
        name=row.name,
        media_type=version.media_type,
        language=cast("Language", version.language),
        warnings=warnings_of(version.warnings),
        encoding=version.encoding,
    )


def pages_of(session: Session, version_id: int) -> tuple[DocumentPage, ...]:
    """Pages in order."""
    rows = session.execute(
        select(PageRow).where(PageRow.version_id == version_id).order_by(PageRow.number)
    ).scalars()
    return tuple(
        DocumentPage(
            row.number,
            row.start,
            row.end,
            row.label,
            row.width,
            row.height,
            cast("Any", row.method),
        )
        for row in rows
    )


def clauses_of(session: Session, version_id: int) -> tuple[Clause, ...]:
    """The outline in order."""
    rows = session.execute(
        select(ClauseRow).where(ClauseRow.version_id == version_id).order_by(ClauseRow.position)
    ).scalars()
    return tuple(
        Clause(row.position, row.number, row.title, row.level, row.start, row.end, row.parent)
        for row in rows
    )


def chunks_of(session: Session, version_id: int) -> tuple[Chunk, ...]:
    """Retrieval units in order."""
    rows = session.execute(
        select(ChunkRow).where(ChunkRow.version_id == version_id).order_by(ChunkRow.position)
    ).scalars()
    return tuple(
        Chunk(
            row.position,
            row.start,
            row.end,
            row.clause,
            row.heading,
            row.page_start,
            row.page_end,
        )
        for row in rows
    )
