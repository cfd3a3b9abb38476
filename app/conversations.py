"""Conversations, their questions and their answers. An answer and its citations are saved in one
transaction; an answer that is never saved ends as `failed`, at the latest when the next process
notices that its writer is gone (`app.workers`).

Does not know how an answer is made.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from sqlalchemy import ColumnElement, Text, delete, func, insert, select, tuple_, update
from sqlalchemy import cast as cast_to
from sqlalchemy.orm import Session

from app.answer_json import answer_from, answer_to_json, citation_columns
from app.db.models import CitationRow, ConversationRow, MessageRow
from app.db.session import Database, changed
from app.errors import Conflict, NotFound
from app.owners import LOCAL
from app.paging import Order, Page
from app.types import Answer, Citation, PageBox, Turn
from app.workers import Worker

MessageRole = Literal["user", "assistant"]
MessageStatus = Literal["in_progress", "completed", "failed", "cancelled"]
TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Conversation:
    """Questions and answers about `document_ids` (which may be deleted by now)."""

    id: str
    owner: str
    title: str
    document_ids: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Message:
    """A question (`user`) or an answer (`assistant`). `answer` is set when an answer is completed;
    `error_code` and `error_message` when it failed."""

    id: str
    conversation_id: str
    role: MessageRole
    status: MessageStatus
    content: str
    answer: Answer | None
    error_code: str | None
    error_message: str | None
    created_at: datetime
    finished_at: datetime | None


class Conversations:
    """All conversations of one database. Thread-safe."""

    def __init__(self, database: Database, worker: Worker) -> None:
        self.database = database
        self.worker = worker

    def create(
        self, *, owner: str = LOCAL, title: str = "", document_ids: Sequence[str] = ()
    ) -> Conversation:
        """A new conversation; without a title the first question becomes it."""
        with self.database.write() as session:
            now = self.database.now(session)
            row = ConversationRow(
                id=f"conv_{uuid.uuid4().hex}",
                owner=owner,
                title=_title(title),
                document_ids=list(document_ids),
                created_at=now,
                updated_at=now,
            )
            session.add(row)
            session.flush()
            return _conversation(row)

    def get(self, conversation_id: str, *, owner: str | None = None) -> Conversation:
        """Raises NotFound."""
        with self.database.read() as session:
            return _conversation(_find(session, conversation_id, owner))

    def list(
        self,
        limit: int = 20,
        after: str | None = None,
        order: Order = "desc",
        *,
        owner: str | None = None,
        document_id: str | None = None,
    ) -> Page[Conversation]:
        """Conversations by time of creation, `limit` of them after the conversation `after`; of
        `document_id` those that began with it, also when it is deleted by now."""
        where = [] if owner is None else [ConversationRow.owner == owner]
        if document_id is not None:
            where.append(_about(document_id))
        place = tuple_(ConversationRow.created_at, ConversationRow.id)
        with self.database.read() as session:
            total = session.execute(
                select(func.count()).select_from(ConversationRow).where(*where)
            ).scalar_one()
            query = select(ConversationRow).where(*where)
            if after is not None:
                last = _find(session, after, owner)
                mark = tuple_(last.created_at, last.id)
                query = query.where(place > mark if order == "asc" else place < mark)
            if order == "asc":
                query = query.order_by(ConversationRow.created_at, ConversationRow.id)
            else:
                query = query.order_by(ConversationRow.created_at.desc(), ConversationRow.id.desc())
            rows = session.execute(query.limit(limit + 1)).scalars().all()
            found = tuple(_conversation(row) for row in rows[:limit])
        return Page(found, has_more=len(rows) > limit, total=total)

    def delete(self, conversation_id: str, *, owner: str | None = None) -> None:
        """Remove a conversation with its messages. Raises NotFound."""
        with self.database.write() as session:
            _find(session, conversation_id, owner)
            session.execute(delete(ConversationRow).where(ConversationRow.id == conversation_id))

    def start_answer(
        self, conversation_id: str, answer_id: str | None = None, *, question: str
    ) -> Message:
        """Save a question and open its answer, `in_progress`, right behind it: of questions asked
        at once too none comes between. Should the process die, the answer ends as `failed`.
        Raises NotFound."""
        with self.database.write() as session:
            # Before the title, which writes the row: two that took them the other way round would
            # wait for each other.
            self.database.lock(session, conversation_id)
            conversation = _find(session, conversation_id, None)
            if not conversation.title:
                conversation.title = _title(question)
            asked = self._append(session, conversation, "user", "completed", _clean(question))
            asked.finished_at = asked.created_at
            row = self._append(
                session, conversation, "assistant", "in_progress", "", answer_id=answer_id
            )
            row.worker_id = self.worker.id
            session.flush()
            return _message(row, ())

    def save_answer(self, conversation_id: str, answer_id: str, answer: Answer) -> Message:
        """Complete an answer with its citations (one that was not started is added whole). Raises
        NotFound, Conflict when it has ended."""
        with self.database.write() as session:
            if session.get(MessageRow, answer_id) is None:
                conversation = _find(session, conversation_id, None)
                self._append(
                    session, conversation, "assistant", "in_progress", "", answer_id=answer_id
                )
            self._end(
                session,
                answer_id,
                status="completed",
                content=_clean(answer.answer),
                answer=answer_to_json(answer),
            )
            rows = [
                citation_columns(citation) | {"message_id": answer_id, "position": position}
                for position, citation in enumerate(answer.citations)
            ]
            if rows:
                session.execute(insert(CitationRow), rows)
            return _ended(session, answer_id)

    def fail_answer(
        self,
        message_id: str,
        code: str,
        message: str,
        *,
        status: Literal["failed", "cancelled"] = "failed",
        content: str = "",
    ) -> Message:
        """End an answer without a result; `content` is what was streamed until then. Raises
        NotFound, Conflict when it has ended."""
        with self.database.write() as session:
            self._end(
                session,
                message_id,
                status=status,
                content=_clean(content),
                error_code=code,
                error_message=_clean(message),
            )
            return _ended(session, message_id)

    def turns(self, conversation_id: str) -> tuple[Turn, ...]:
        """Questions that got an answer, oldest first. Raises NotFound."""
        found = []
        question: str | None = None
        for message in self.messages(conversation_id):
            if message.role == "user":
                question = message.content
            elif question is not None and message.status == "completed":
                found.append(Turn(question, message.content))
                question = None
        return tuple(found)

    def message(self, message_id: str, *, owner: str | None = None) -> Message:
        """One message. Raises NotFound."""
        with self.database.read() as session:
            row = session.get(MessageRow, message_id)
            of = None if row is None else session.get(ConversationRow, row.conversation_id)
            # Another owner's message is not told apart from one that never was.
            if row is None or of is None or owner not in (None, of.owner):
                raise NotFound(f"There is no answer {message_id}.")
            return _message(row, _citations(session, [row.id]).get(row.id, ()))

    def messages(self, conversation_id: str, *, owner: str | None = None) -> tuple[Message, ...]:
        """All messages in order. Raises NotFound."""
        with self.database.read() as session:
            _find(session, conversation_id, owner)
            rows = (
                session.execute(
                    select(MessageRow)
                    .where(MessageRow.conversation_id == conversation_id)
                    .order_by(MessageRow.position)
                )
                .scalars()
                .all()
            )
            citations = _citations(session, [row.id for row in rows])
            return tuple(_message(row, citations.get(row.id, ())) for row in rows)

    def _append(
        self,
        session: Session,
        conversation: ConversationRow,
        role: str,
        status: str,
        content: str,
        *,
        answer_id: str | None = None,
    ) -> MessageRow:
        self.database.lock(session, conversation.id)
        last = session.execute(
            select(func.max(MessageRow.position)).where(
                MessageRow.conversation_id == conversation.id
            )
        ).scalar_one()
        now = self.database.now(session)
        row = MessageRow(
            id=answer_id or f"msg_{uuid.uuid4().hex}",
            conversation_id=conversation.id,
            position=0 if last is None else last + 1,
            role=role,
            status=status,
            content=content,
            created_at=now,
        )
        conversation.updated_at = now
        session.add(row)
        session.flush()
        return row

    def _end(self, session: Session, message_id: str, **values: Any) -> None:
        ended = changed(
            session,
            update(MessageRow)
            .where(MessageRow.id == message_id, MessageRow.status == "in_progress")
            .values(worker_id=None, finished_at=self.database.now(session), **values),
        )
        if ended:
            return
        row = session.get(MessageRow, message_id)
        if row is None:
            raise NotFound(f"There is no answer {message_id}.")
        raise Conflict(f"The answer {message_id} has ended as {row.status}.")


def _find(session: Session, conversation_id: str, owner: str | None) -> ConversationRow:
    row = session.get(ConversationRow, conversation_id)
    if row is None or owner not in (None, row.owner):
        raise NotFound(f"There is no conversation {conversation_id}.")
    return row


def _about(document_id: str) -> ColumnElement[bool]:
    """The ids stand in quotation marks in the stored list: one is in it when taking it out changes
    the text, upper and lower case told apart in every database."""
    ids = cast_to(ConversationRow.document_ids, Text)
    return func.replace(ids, json.dumps(document_id), "") != ids


def _ended(session: Session, message_id: str) -> Message:
    """Read before the commit: once that has happened nothing may fail, or what is saved would be
    told as not saved."""
    row = session.get_one(MessageRow, message_id, populate_existing=True)
    return _message(row, _citations(session, [row.id]).get(row.id, ()))


def _citations(session: Session, message_ids: Sequence[str]) -> dict[str, tuple[Citation, ...]]:
    rows = session.execute(
        select(CitationRow)
        .where(CitationRow.message_id.in_(message_ids))
        .order_by(CitationRow.message_id, CitationRow.position)
    ).scalars()
    found: dict[str, tuple[Citation, ...]] = {}
    for row in rows:
        citation = Citation(
            quote=row.quote,
            document_id=row.document_id,
            document=row.document,
            page=row.page,
            page_label=row.page_label,
            start_char=row.start_char,
            end_char=row.end_char,
            clause=row.clause,
            boxes=tuple(PageBox(**box) for box in row.boxes),
            verified=row.verified,
        )
        found[row.message_id] = (*found.get(row.message_id, ()), citation)
    return found


def _conversation(row: ConversationRow) -> Conversation:
    return Conversation(
        id=row.id,
        owner=row.owner,
        title=row.title,
        document_ids=tuple(row.document_ids),
        created_at=datetime.fromtimestamp(row.created_at, UTC),
        updated_at=datetime.fromtimestamp(row.updated_at, UTC),
    )


def _message(row: MessageRow, citations: tuple[Citation, ...]) -> Message:
    answer = None if row.answer is None else answer_from(row.answer, row.content, citations)
    return Message(
        id=row.id,
        conversation_id=row.conversation_id,
        role=cast("MessageRole", row.role),
        status=cast("MessageStatus", row.status),
        content=row.content,
        answer=answer,
        error_code=row.error_code,
        error_message=row.error_message,
        created_at=datetime.fromtimestamp(row.created_at, UTC),
        finished_at=None
        if row.finished_at is None
        else datetime.fromtimestamp(row.finished_at, UTC),
    )


def _title(text: str) -> str:
    """A text as a title; one that is cut says so."""
    whole = _clean(text)
    return whole if len(whole) <= TITLE_CHARS else f"{whole[: TITLE_CHARS - 1].rstrip()}…"


def _clean(text: str) -> str:
    """PostgreSQL stores no NUL."""
    return text.replace("\0", "")
