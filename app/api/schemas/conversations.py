"""Conversations as the REST API shows them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from app.api.schemas.answers import ResultPublic
from app.api.schemas.common import Entity, FaultPublic
from app.conversations import Conversation, Message, MessageRole, MessageStatus


class ConversationPublic(Entity):
    """Questions and answers about documents, which may be deleted by now."""

    object: Literal["conversation"] = "conversation"
    title: str
    document_ids: list[str]
    created_at: datetime
    updated_at: datetime


class MessagePublic(Entity):
    """A question (`user`) or an answer (`assistant`, with its `result` once completed)."""

    object: Literal["message"] = "message"
    role: MessageRole
    status: MessageStatus
    content: str
    result: ResultPublic | None
    error: FaultPublic | None
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, message: Message) -> MessagePublic:
        fault = None
        if message.error_code is not None:
            fault = FaultPublic(code=message.error_code, message=message.error_message or "")
        return cls(
            id=message.id,
            role=message.role,
            status=message.status,
            content=message.content,
            result=None if message.answer is None else ResultPublic.model_validate(message.answer),
            error=fault,
            created_at=message.created_at,
            finished_at=message.finished_at,
        )


class ConversationDetail(ConversationPublic):
    """A conversation with all its messages, oldest first."""

    messages: list[MessagePublic]

    @classmethod
    def with_messages(
        cls, conversation: Conversation, messages: tuple[Message, ...]
    ) -> ConversationDetail:
        shown = ConversationPublic.model_validate(conversation)
        return cls(
            **shown.model_dump(), messages=[MessagePublic.of(message) for message in messages]
        )
