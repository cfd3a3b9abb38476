"""/documents/{id}/pin: what was read of a document makes room after that of all others."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from app.api.deps import OwnerDep, ServicesDep
from app.api.routes import API_PREFIX
from app.api.routes.documents import DocumentId
from app.api.schemas.common import Public
from app.errors import Conflict
from app.readiness import require_askable
from app.services import Services
from backend.types import DocumentTokens

router = APIRouter(prefix=f"{API_PREFIX}/documents", tags=["documents"])


class PinCreate(BaseModel):
    """`ttl_s`: seconds after which the pin ends by itself; a second pin replaces the first."""

    ttl_s: Annotated[float, Field(ge=1, le=604_800, allow_inf_nan=False)] = 3600.0


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
    tokens = _tokens(services, document_id, owner)
    if services.engine.progress(tokens.key) is None:
        services.engine.read(tokens, lazy=True)
    ttl_s = (body or PinCreate()).ttl_s
    services.engine.pin(tokens.key, ttl_s)
    return PinPublic(document_id=document_id, ttl_s=ttl_s)


@router.delete("/{document_id}/pin", status_code=204, response_class=Response)
def unpin_document(document_id: DocumentId, services: ServicesDep, owner: OwnerDep) -> None:
    """End the document's pin; harmless when there is none."""
    services.engine.unpin(_tokens(services, document_id, owner).key)


def _tokens(services: Services, document_id: str, owner: str) -> DocumentTokens:
    require_askable(services.library.get(document_id, owner=owner))
    if not services.engine.attends_pages:
        raise Conflict(
            "The model runs on a server elsewhere, which keeps pages by its own rules.",
            code="no_pages",
        )
    return services.library.load(document_id, owner=owner).tokens
