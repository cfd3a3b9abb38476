"""What must hold before a question is queued: it has words, and its documents can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.ask import validate_question
from app.errors import BadQuestion
from app.owners import LOCAL
from app.readiness import require_askable
from app.services import Services
from app.settings import Settings


@dataclass(frozen=True, slots=True)
class Question:
    """A question that was checked. Without `conversation_id` it begins a conversation.
    `until_read`: its answer is settled only when its documents are read. `owner`: who asks."""

    text: str
    document_ids: tuple[str, ...]
    conversation_id: str | None
    until_read: bool = False
    owner: str = LOCAL


def check_text(text: str, settings: Settings) -> str:
    """The question without what can't be read. Raises BadQuestion when nothing is left or it is
    over the limit."""
    limit = settings.max_question_chars
    if len(text) > limit:
        raise BadQuestion(
            f"The question has {len(text):,} characters; the limit is {limit:,}. Ask a shorter "
            "question; long text belongs in a document."
        )
    return validate_question(text)


def check_question(
    services: Services,
    text: str,
    document_ids: Sequence[str],
    conversation_id: str | None,
    *,
    until_read: bool = False,
    owner: str = LOCAL,
) -> Question:
    """Raises BadQuestion, NotFound (no document or conversation of this owner), NotReady,
    Conflict."""
    text = check_text(text, services.settings)
    unique = tuple(dict.fromkeys(document_ids))
    for document_id in unique:
        require_askable(services.library.get(document_id, owner=owner))
    if conversation_id is not None:
        services.conversations.get(conversation_id, owner=owner)
    return Question(text, unique, conversation_id, until_read, owner)
