"""/documents: upload, state, text, outline, receipt, page images, original file."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated, BinaryIO, Literal, cast

import anyio.to_thread
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from starlette.exceptions import HTTPException

from app.api import page_images
from app.api.deps import LimitersDep, MetricsDep, OwnerDep, ServicesDep, StretchDep
from app.api.disposition import attachment
from app.api.routes import API_PREFIX
from app.api.schemas.common import ListPublic
from app.api.schemas.documents import (
    ClausePublic,
    DeletedPublic,
    DocumentPublic,
    ReceiptPublic,
    TextPublic,
    UploadPublic,
)
from app.api.schemas.terms import DocumentTermsPublic
from app.api.upload import UploadedFile, refuse_foreign
from app.documents import DocumentRecord, LoadedDocument, Waiting
from app.errors import AppError, BadParameter, Conflict
from app.key_terms import terms_of_stored
from app.library import Library
from app.names import display_name
from app.readiness import require_askable
from app.receipts import stored_receipt

log = logging.getLogger(__name__)
router = APIRouter(prefix=f"{API_PREFIX}/documents", tags=["documents"])

_UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}
DocumentId = Annotated[str, Path(max_length=64)]
Offset = Annotated[int, Query(ge=0)]


@router.post(
    "",
    status_code=202,
    openapi_extra=_UPLOAD_BODY,
    responses={
        200: {"model": UploadPublic, "description": "The same bytes are here already."},
        202: {"model": UploadPublic, "description": "Stored; follow Location for its progress."},
    },
)
async def upload_document(
    request: Request,
    services: ServicesDep,
    owner: OwnerDep,
    metrics: MetricsDep,
    limiters: LimitersDep,
    on_duplicate: Literal["return", "error"] = "return",
) -> Response:
    """Store a file and queue its ingestion."""
    file = UploadedFile(request)
    try:
        head = await file.begin()
        name = display_name(file.name, max_chars=services.settings.max_name_chars)
        refuse_foreign(head, name)
        add = partial(services.library.add, cast("BinaryIO", file), name, owner=owner)
        record, duplicate = await limiters.uploads.run(owner, add)
    except (AppError, HTTPException):
        metrics.observe_upload("refused")
        await file.drain()
        raise
    metrics.observe_upload("duplicate" if duplicate else "new")
    if duplicate and on_duplicate == "error":
        raise Conflict(
            f"These bytes are here already, as “{record.name}”.",
            code="duplicate",
            details={"existing_id": record.id},
        )
    waiting = await anyio.to_thread.run_sync(_waiting, services.library, record)
    body = UploadPublic.of_upload(record, waiting, duplicate=duplicate)
    return JSONResponse(
        body.model_dump(mode="json"),
        status_code=200 if duplicate else 202,
        headers={"Location": f"{request.url.path}/{record.id}"},
    )


@router.get("")
def list_documents(
    services: ServicesDep, owner: OwnerDep, stretch: StretchDep
) -> ListPublic[DocumentPublic]:
    """Documents by time of upload."""
    page = services.library.list(stretch.limit, stretch.after, stretch.order, owner=owner)
    waiting = services.library.waiting(page.data)
    entries = [DocumentPublic.of(record, waiting.get(record.id)) for record in page.data]
    return ListPublic[DocumentPublic].of(entries, has_more=page.has_more, total=page.total)


@router.get("/{document_id}")
def get_document(document_id: DocumentId, services: ServicesDep, owner: OwnerDep) -> DocumentPublic:
    """State and progress of one document."""
    record = services.library.get(document_id, owner=owner)
    return DocumentPublic.of(record, services.library.waiting((record,)).get(record.id))


@router.delete("/{document_id}")
def delete_document(
    document_id: DocumentId, services: ServicesDep, owner: OwnerDep
) -> DeletedPublic:
    """Remove a document, its file and everything computed from it."""
    services.library.delete(document_id, owner=owner)
    return DeletedPublic(id=document_id, object="document")


@router.post("/{document_id}/cancel", status_code=202)
def cancel_document(
    document_id: DocumentId, services: ServicesDep, owner: OwnerDep
) -> DocumentPublic:
    """Stop the ingestion; 409 when it is over already. Cancelling twice is harmless."""
    record = services.library.cancel(document_id, owner=owner)
    return DocumentPublic.of(record, _waiting(services.library, record))


@router.post("/{document_id}/retry", status_code=202)
def retry_document(
    document_id: DocumentId, services: ServicesDep, owner: OwnerDep
) -> DocumentPublic:
    """Ingest a failed or cancelled document again, from the stored file."""
    record = services.library.retry(document_id, owner=owner)
    return DocumentPublic.of(record, _waiting(services.library, record))


@router.get("/{document_id}/text")
def get_text(
    document_id: DocumentId,
    services: ServicesDep,
    owner: OwnerDep,
    start: Offset = 0,
    end: Offset | None = None,
) -> TextPublic:
    """The document's text or the stretch `[start, end)` of it, in code points."""
    document = loaded(services.library, document_id, owner)
    start, end = _span(document, start, end)
    return TextPublic(
        document_id=document_id,
        start=start,
        end=end,
        total_chars=len(document.text),
        text=document.text[start:end],
    )


@router.get("/{document_id}/clauses")
def get_clauses(
    document_id: DocumentId, services: ServicesDep, owner: OwnerDep
) -> ListPublic[ClausePublic]:
    """The whole clause outline."""
    clauses = ClausePublic.all_of(loaded(services.library, document_id, owner))
    return ListPublic[ClausePublic].of(clauses, has_more=False, total=len(clauses))


@router.get("/{document_id}/terms")
async def get_terms(
    document_id: DocumentId, services: ServicesDep, owner: OwnerDep, limiters: LimitersDep
) -> DocumentTermsPublic:
    """Parties, dates, term, amounts, caps, law and the other key terms, each with its place."""
    work = partial(terms_of_stored, services.library, document_id, owner=owner)
    result = await limiters.comparing.run(owner, work)
    return DocumentTermsPublic.model_validate(result)


@router.get("/{document_id}/receipt")
def get_receipt(document_id: DocumentId, services: ServicesDep, owner: OwnerDep) -> ReceiptPublic:
    """What ingestion got from each page, figures found against figures kept, and warnings."""
    document = loaded(services.library, document_id, owner)
    return ReceiptPublic.of(document, stored_receipt(services.database, document_id))


@router.get(
    "/{document_id}/pages/{number}.png",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}, "description": "The page."}},
)
async def get_page_image(
    document_id: DocumentId,
    number: int,
    services: ServicesDep,
    owner: OwnerDep,
    limiters: LimitersDep,
    boxes: Annotated[str, Query(description="x0,y0,x1,y1;… as fractions of the page")] = "",
    start: Offset | None = None,
    end: Offset | None = None,
    scale: Annotated[float, Query(ge=0.25, le=4)] = 1.5,
) -> Response:
    """A page as a picture, with the given boxes and the span `[start, end)` marked."""
    marked = page_images.parse_boxes(boxes)
    if (start is None) != (end is None):
        raise BadParameter("Give both start and end, or neither.", code="bad_span")

    def prepare() -> tuple[LoadedDocument, FilePath]:
        document = loaded(services.library, document_id, owner)
        return document, services.library.file_path(document_id, owner=owner)

    document, path = await anyio.to_thread.run_sync(prepare)
    page_images.require_page_image(document.record.media_type, len(document.pages), number)
    if start is not None:
        first, last = _span(document, start, end)
        span = partial(page_images.span_boxes, document, first, last, number)
        marked += await anyio.to_thread.run_sync(span)
    draw = partial(page_images.render, path, number, marked, scale)
    png = await limiters.rendering.run(owner, draw)
    # A browser that is given another key must not show what it kept for the one before.
    headers = {"Cache-Control": "private, max-age=3600", "Vary": "Authorization, X-API-Key"}
    return Response(png, media_type="image/png", headers=headers)


@router.get(
    "/{document_id}/file",
    response_class=FileResponse,
    responses={200: {"content": {"application/octet-stream": {}}, "description": "The file."}},
)
def get_file(document_id: DocumentId, services: ServicesDep, owner: OwnerDep) -> FileResponse:
    """The original file, as it was uploaded."""
    record = services.library.get(document_id, owner=owner)
    return FileResponse(
        services.library.file_path(document_id, owner=owner),
        media_type=record.media_type or "application/octet-stream",
        # Someone else's HTML must not run with this server's rights, whatever a browser does.
        headers={
            "Content-Disposition": attachment(record.name),
            "Content-Security-Policy": "sandbox; default-src 'none'",
        },
    )


def loaded(library: Library, document_id: str, owner: str) -> LoadedDocument:
    """The owner's document. Raises NotFound, and NotReady or Conflict for one without an index."""
    require_askable(library.get(document_id, owner=owner))
    return library.load(document_id, owner=owner)


def _waiting(library: Library, record: DocumentRecord) -> Waiting | None:
    """What a document waits for to which something was just done. None when that can't be told now:
    an error would say that it was not done."""
    try:
        return library.waiting((record,)).get(record.id)
    except AppError as error:
        log.info("can't tell what document %s waits for: %s", record.id, error)
        return None


def _span(document: LoadedDocument, start: int, end: int | None) -> tuple[int, int]:
    total = len(document.text)
    end = total if end is None else min(end, total)
    if start > end:
        raise BadParameter(
            f"start {start} is behind end {end}; the text has {total} characters.", code="bad_span"
        )
    return start, end
