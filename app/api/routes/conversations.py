"""/conversations: list, read, delete. They begin with the first answer asked without one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from app.api.deps import OwnerDep, RunsDep, ServicesDep, StretchDep
from app.api.routes import API_PREFIX
from app.api.schemas.common import ListPublic
from app.api.schemas.conversations import ConversationDetail, ConversationPublic
from app.api.schemas.documents import DeletedPublic

router = APIRouter(prefix=f"{API_PREFIX}/conversations", tags=["conversations"])


@router.get("")
def list_conversations(
    services: ServicesDep,
    owner: OwnerDep,
    stretch: StretchDep,
    document_id: Annotated[
        str | None, Query(max_length=64, description="Those that began with this document.")
    ] = None,
) -> ListPublic[ConversationPublic]:
    """Conversations by time of creation."""
    page = services.conversations.list(
        stretch.limit, stretch.after, stretch.order, owner=owner, document_id=document_id
    )
    entries = [ConversationPublic.model_validate(one) for one in page.data]
    return ListPublic[ConversationPublic].of(entries, has_more=page.has_more, total=page.total)


@router.get("/{conversation_id}")
def get_conversation(
    conversation_id: str, services: ServicesDep, owner: OwnerDep
) -> ConversationDetail:
    """A conversation with its questions and answers."""
    conversation = services.conversations.get(conversation_id, owner=owner)
    return ConversationDetail.with_messages(
        conversation, services.conversations.messages(conversation_id, owner=owner)
    )


@router.delete("/{conversation_id}")
def delete_conversation(
    conversation_id: str, services: ServicesDep, owner: OwnerDep, runs: RunsDep
) -> DeletedPublic:
    """Remove a conversation and its messages; its documents stay. What is being answered in it is
    cancelled."""
    services.conversations.delete(conversation_id, owner=owner)
    runs.drop(conversation_id)
    return DeletedPublic(id=conversation_id, object="conversation")
