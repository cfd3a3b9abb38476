"""/documents/{id}/pin: what was read of a document makes room after that of all others."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import Field

from app.api.deps import OwnerDep, ServicesDep
from app.api.routes import API_PREFIX
from app.api.routes.documents import DocumentId, loaded
from app.api.schemas.common import Body, Number, Public
from app.errors import Conflict
from app.readiness import make_known, require_askable
from app.services import Services
from app.tokens import content_key

router = APIRouter(prefix=f"{API_PREFIX}/documents", tags=["documents"])


class PinCreate(Body):
    """`ttl_s`: seconds after which the pin ends by itself; a second pin replaces the first."""

    ttl_s: Annotated[Number, Field(ge=1, le=604_800, allow_inf_nan=False)] = 3600.0


class PinPublic(Public):
    """A pin as it was set."""

    document_id: str
    ttl_s: float


@router.post("/{document_id}/pin")
def pin_document(
    document_id: DocumentId,
    services: ServicesDep,
    owner: OwnerDep,
    body: PinCreate | None = None,
) -> PinPublic:
    """Keep the document's KV longest for a time. It reads nothing, ends with the server, and still
    gives way to a question that has no room otherwise; 413 when too much would be pinned."""
    document = loaded(services.library, document_id, owner)
    _require_pages(services)
    make_known(services.engine, {document_id: document}, services.library.load, lazy=True)
    ttl_s = (body or PinCreate()).ttl_s
    services.engine.pin(document.tokens.key, ttl_s)
    return PinPublic(document_id=document_id, ttl_s=ttl_s)


@router.delete("/{document_id}/pin", status_code=204, response_class=Response)
def unpin_document(document_id: DocumentId, services: ServicesDep, owner: OwnerDep) -> None:
    """End the document's pin; harmless when there is none."""
    require_askable(services.library.get(document_id, owner=owner))
    _require_pages(services)
    # The name alone: a document's index need not be built to let go of it.
    services.engine.unpin(content_key(owner, services.library.text(document_id, owner=owner)))


def _require_pages(services: Services) -> None:
    if not services.engine.attends_pages:
        raise Conflict(
            "The model runs on a server elsewhere, which keeps pages by its own rules.",
            code="no_pages",
        )
