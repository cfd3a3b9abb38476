"""The tables, the same for SQLite and PostgreSQL. The migrations make them in a database; a test
compares the two.

Times are seconds since 1970 (UTC). Ids are made by the application. Character offsets are half-open
code points of `versions.text`.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s",
    "pk": "pk_%(table_name)s",
}

JOB_OPEN = "status IN ('queued', 'running')"


class Base(DeclarativeBase):
    """Common base; its metadata names every constraint, so that migrations can drop them."""

    metadata = MetaData(naming_convention=NAMING)
    type_annotation_map = {
        str: String(),
        float: Double(),
        int: BigInteger(),
        dict[str, Any]: JSON(),
        list[Any]: JSON(),
    }


class WorkerRow(Base):
    """A process that works on this database. One that stops beating loses its jobs."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    pid: Mapped[int]
    process_started: Mapped[float]
    beat_at: Mapped[float]


class DocumentRow(Base):
    """One uploaded file of one owner, and the state of its ingestion."""

    __tablename__ = "documents"
    __table_args__ = (
        UniqueConstraint("owner", "sha256"),
        Index(None, "owner", "created_at", "id"),
        Index(None, "sha256"),
        CheckConstraint(
            "status IN ('queued', 'in_progress', 'completed', 'failed', 'cancelled')",
            name="status",
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    name: Mapped[str]
    sha256: Mapped[str]
    size: Mapped[int]
    status: Mapped[str]
    stage: Mapped[str]
    progress_done: Mapped[int] = mapped_column(default=0)
    progress_total: Mapped[int] = mapped_column(default=0)
    progress_unit: Mapped[str] = mapped_column(default="pages")
    ready_tokens: Mapped[int] = mapped_column(default=0)
    total_tokens: Mapped[int] = mapped_column(default=0)
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    parse_ms: Mapped[float | None]
    index_ms: Mapped[float | None]
    read_ms: Mapped[float | None]
    created_at: Mapped[float]
    finished_at: Mapped[float | None]
    computed_tokens: Mapped[int | None]
    """Tokens of the last reading that went through the model; null: not read ahead, or read by a
    version that did not count them."""


class VersionRow(Base):
    """The text of a document as it was parsed. A contract's later texts are further versions; an
    upload makes version 1."""

    __tablename__ = "versions"
    __table_args__ = (
        UniqueConstraint("document_id", "number"),
        Index(None, "text_sha256"),
    )

    id: Mapped[int] = mapped_column(
        BigInteger().with_variant(Integer(), "sqlite"), primary_key=True, autoincrement=True
    )
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    number: Mapped[int]
    sha256: Mapped[str]
    media_type: Mapped[str]
    language: Mapped[str]
    encoding: Mapped[str | None]
    text: Mapped[str] = mapped_column(Text, deferred=True)
    text_sha256: Mapped[str]
    page_count: Mapped[int]
    has_boxes: Mapped[bool] = mapped_column(Boolean)
    warnings: Mapped[list[Any]]
    indexed: Mapped[bool] = mapped_column(Boolean, default=False)
    """Clauses and chunks are complete."""
    receipt: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True), deferred=True)
    """What parsing and then indexing counted; null: taken in before there were receipts."""
    created_at: Mapped[float]


class PageRow(Base):
    """A physical page of a version."""

    __tablename__ = "pages"

    version_id: Mapped[int] = mapped_column(
        ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True
    )
    number: Mapped[int] = mapped_column(primary_key=True)
    start: Mapped[int]
    end: Mapped[int]
    label: Mapped[str | None]
    width: Mapped[float | None]
    height: Mapped[float | None]
    method: Mapped[str]


class ClauseRow(Base):
    """A clause of a version; `position` is its index in the outline, `parent` that of the clause
    around it."""

    __tablename__ = "clauses"

    version_id: Mapped[int] = mapped_column(
        ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[str]
    title: Mapped[str]
    level: Mapped[int]
    start: Mapped[int]
    end: Mapped[int]
    parent: Mapped[int | None]


class ChunkRow(Base):
    """A retrieval unit of a version."""

    __tablename__ = "chunks"

    version_id: Mapped[int] = mapped_column(
        ForeignKey("versions.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    start: Mapped[int]
    end: Mapped[int]
    clause: Mapped[str | None]
    heading: Mapped[str]
    page_start: Mapped[int]
    page_end: Mapped[int]


class JobRow(Base):
    """One ingestion of one document, from upload or retry to its end. `worker_id` is the process
    that has it (waiting in that process's line, or running); NULL: anyone may take it."""

    __tablename__ = "jobs"
    __table_args__ = (
        Index(
            "uq_jobs_open_document",
            "document_id",
            unique=True,
            sqlite_where=text(JOB_OPEN),
            postgresql_where=text(JOB_OPEN),
        ),
        Index(None, "document_id"),
        Index(None, "status", "created_at"),
        Index(None, "worker_id"),
        CheckConstraint(
            "status IN ('queued', 'running', 'completed', 'failed', 'cancelled')", name="status"
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    document_id: Mapped[str] = mapped_column(ForeignKey("documents.id", ondelete="CASCADE"))
    status: Mapped[str]
    worker_id: Mapped[str | None] = mapped_column(ForeignKey("workers.id", ondelete="SET NULL"))
    attempts: Mapped[int] = mapped_column(default=0)
    cancel_requested: Mapped[bool] = mapped_column(Boolean, default=False)
    created_at: Mapped[float]
    started_at: Mapped[float | None]
    finished_at: Mapped[float | None]


class ConversationRow(Base):
    """Questions and answers about a set of documents."""

    __tablename__ = "conversations"
    __table_args__ = (Index(None, "owner", "created_at", "id"),)

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    title: Mapped[str]
    document_ids: Mapped[list[Any]]
    created_at: Mapped[float]
    updated_at: Mapped[float]


class MessageRow(Base):
    """A question, or an answer with what it carries beside its citations. `worker_id` is the
    process that is writing the answer."""

    __tablename__ = "messages"
    __table_args__ = (
        UniqueConstraint("conversation_id", "position"),
        Index(None, "worker_id"),
        CheckConstraint(
            "status IN ('in_progress', 'completed', 'failed', 'cancelled')", name="status"
        ),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    conversation_id: Mapped[str] = mapped_column(ForeignKey("conversations.id", ondelete="CASCADE"))
    position: Mapped[int]
    role: Mapped[str]
    status: Mapped[str]
    content: Mapped[str] = mapped_column(Text)
    answer: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    error_code: Mapped[str | None]
    error_message: Mapped[str | None]
    worker_id: Mapped[str | None] = mapped_column(ForeignKey("workers.id", ondelete="SET NULL"))
    created_at: Mapped[float]
    finished_at: Mapped[float | None]


class CitationRow(Base):
    """A quote of an answer. `document_id` is no foreign key: the history outlives its documents."""

    __tablename__ = "citations"
    __table_args__ = (Index(None, "document_id"),)

    message_id: Mapped[str] = mapped_column(
        ForeignKey("messages.id", ondelete="CASCADE"), primary_key=True
    )
    position: Mapped[int] = mapped_column(primary_key=True)
    document_id: Mapped[str]
    document: Mapped[str]
    quote: Mapped[str] = mapped_column(Text)
    page: Mapped[int | None]
    page_label: Mapped[str | None]
    start_char: Mapped[int]
    end_char: Mapped[int]
    clause: Mapped[str | None]
    boxes: Mapped[list[Any]]
    verified: Mapped[bool] = mapped_column(Boolean)


class ApiKeyRow(Base):
    """A key of an owner. The key itself is nowhere: `sha256` is that of its text, `prefix` how it
    begins."""

    __tablename__ = "api_keys"
    __table_args__ = (
        UniqueConstraint("sha256"),
        Index(None, "prefix"),
        CheckConstraint("role IN ('user', 'admin')", name="role"),
    )

    id: Mapped[str] = mapped_column(primary_key=True)
    owner: Mapped[str]
    role: Mapped[str]
    prefix: Mapped[str]
    sha256: Mapped[str]
    created_at: Mapped[float]
    expires_at: Mapped[float | None]
    last_used_at: Mapped[float | None]
    revoked_at: Mapped[float | None]
