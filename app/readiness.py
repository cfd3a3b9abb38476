"""Whether documents can be asked yet, and if not, why; and that the engine knows those that can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from app.documents import DocumentRecord, LoadedDocument
from app.errors import Conflict, NotFound, NotReady
from backend.errors import RequestTooLarge

if TYPE_CHECKING:
    from app.engines import AnyEngine, Ticket


def require_askable(record: DocumentRecord) -> None:
    """Raises NotReady with the progress while text or index are missing, Conflict with the reason
    after ingestion failed or was cancelled."""
    if record.askable:
        return
    facts: dict[str, object] = {"document_id": record.id, "document_status": record.status}
    if record.status == "failed":
        raise Conflict(
            f"“{record.name}” could not be read: {record.error_message} "
            "Delete it, or retry when the cause is gone.",
            code="document_failed",
            details={**facts, "reason": record.error_code},
        )
    if record.status == "cancelled":
        raise Conflict(
            f"Reading “{record.name}” was cancelled. Retry it to ask questions.",
            code="document_cancelled",
            details=facts,
        )
    progress = {
        "done": record.progress_done,
        "total": record.progress_total,
        "unit": record.progress_unit,
    }
    raise NotReady(
        f"“{record.name}” is not ready yet ({record.stage}, {record.progress_done} of "
        f"{record.progress_total} {record.progress_unit}). Ask again in a moment.",
        details={**facts, "stage": record.stage, "progress": progress},
    )


def start_reading(
    engine: AnyEngine, documents: Sequence[LoadedDocument], *, ingesting_here: bool = False
) -> tuple[Ticket, ...]:
    """Hands the engine those documents it does not know (after a restart it knows none). Returns at
    once, with the tickets of those that it now reads.

    A document that is more than the engine can hold has been taken in with a warning that says so;
    the engine is told of it and reads what questions need. So it is with a document whose ingestion
    is under way when this process does it (`ingesting_here`): it is read in its turn, and asking
    early must not put it beside the others.
    """
    tickets = []
    for document in documents:
        if engine.progress(document.tokens.key) is not None:
            continue
        if ingesting_here and not document.record.final:
            engine.read(document.tokens, lazy=True)
            continue
        try:
            tickets.append(engine.read(document.tokens))
        except RequestTooLarge:
            engine.read(document.tokens, lazy=True)
    return tuple(tickets)


def make_known(
    engine: AnyEngine,
    documents: Mapping[str, LoadedDocument],
    load: Callable[[str], object],
    *,
    lazy: bool = False,
) -> None:
    """Hands the engine those documents, by id, that it does not know, as `start_reading` does; with
    `lazy` it reads nothing of them before it is asked. Raises NotFound, as `load` does, for one
    that was deleted meanwhile: loading can take seconds, and its pages must not come back."""
    new = {
        document_id: document.tokens
        for document_id, document in documents.items()
        if engine.progress(document.tokens.key) is None
    }
    if lazy:
        for tokens in new.values():
            engine.read(tokens, lazy=True)
    else:
        start_reading(engine, tuple(documents.values()), ingesting_here=True)
    for document_id, tokens in new.items():
        try:
            load(document_id)
        except NotFound:
            engine.forget(tokens.key)
            raise
