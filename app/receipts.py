"""Ingestion receipts: kept with a version of a document, or made for a file that is not stored.

Does not know how a receipt is counted (`retrieval.receipt`) or shown.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.errors import BadRequest, NotFound
from retrieval import chunk
from retrieval.clauses import outline
from retrieval.parse import parse_file
from retrieval.receipt import FigureCount, PageReceipt, Receipt, with_index
from retrieval.types import Chunk, DocumentWarning, Language

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from app.db.session import Database
    from retrieval.parse import ParseLimits


@dataclass(frozen=True, slots=True)
class FileReceipt:
    """The receipt of a file that is not in the library. `parse_ms`: reading, outline and chunks."""

    name: str
    media_type: str
    language: Language
    encoding: str | None
    clauses: int
    chunks: int
    receipt: Receipt
    warnings: tuple[DocumentWarning, ...]
    parse_ms: float


def receipt_of_file(path: Path, limits: ParseLimits | None = None) -> FileReceipt:
    """Parses a file and counts what it gave; needs neither model nor database.

    Raises NotFound, BadRequest, ParseError.
    """
    if not path.is_file():
        raise NotFound(f"There is no file {path}.", code="file_not_found")
    started = time.perf_counter()
    try:
        document = parse_file(path, path.name, limits=limits)
    except OSError as error:
        message = f"Cannot read {path}: {error.strerror}."
        raise BadRequest(message, code="file_unreadable") from error
    clauses = outline(document.text)
    chunks = chunk.split(document, clauses)
    # parse_file always makes one; only documents out of the database come without.
    assert document.receipt is not None
    return FileReceipt(
        name=document.name,
        media_type=document.media_type,
        language=document.language,
        encoding=document.encoding,
        clauses=len(clauses),
        chunks=len(chunks),
        receipt=with_index(document.receipt, document.text, chunks),
        warnings=document.warnings,
        parse_ms=(time.perf_counter() - started) * 1000,
    )


def receipt_json(receipt: Receipt | None) -> dict[str, Any] | None:
    """The receipt of a document that was just parsed, as it is stored."""
    return None if receipt is None else {"parsed": asdict(receipt)}


def receipt_from(stored: dict[str, Any]) -> Receipt:
    """A receipt out of its stored form."""
    figures = stored["figures"]
    return Receipt(
        characters=stored["characters"],
        garbled=stored["garbled"],
        tables=stored["tables"],
        empty_pages=tuple(stored["empty_pages"]),
        figures=FigureCount(**figures | {"missing": tuple(figures["missing"])}),
        pages=tuple(PageReceipt(**page) for page in stored["pages"]),
    )


def save_index_figures(
    session: Session, version_id: int, text: str, chunks: Sequence[Chunk]
) -> None:
    """Completes the stored receipt of a version with what its chunks hold."""
    # Here, because a file's receipt is made without a database.
    from sqlalchemy import select, update

    from app.db.models import VersionRow

    query = select(VersionRow.receipt).where(VersionRow.id == version_id)
    stored = session.execute(query).scalar_one()
    if stored is None:
        return
    # Indexing may run again after a crash, so it starts from what parsing counted.
    complete = with_index(receipt_from(stored["parsed"]), text, chunks)
    session.execute(
        update(VersionRow)
        .where(VersionRow.id == version_id)
        .values(receipt=stored | {"indexed": asdict(complete)})
    )


def stored_receipt(database: Database, document_id: str) -> Receipt | None:
    """The receipt of a document's newest version; None when it has none, as documents that were
    taken in by a version that made none."""
    from sqlalchemy import select

    from app.db.models import VersionRow

    query = (
        select(VersionRow.receipt)
        .where(VersionRow.document_id == document_id)
        .order_by(VersionRow.number.desc())
        .limit(1)
    )
    with database.read() as session:
        stored = session.execute(query).scalar_one_or_none()
    return None if stored is None else receipt_from(stored.get("indexed") or stored["parsed"])
