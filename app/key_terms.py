"""Key terms of a file or of a document of the library. Needs no model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.answer.citations import is_paged
from app.errors import BadRequest, NotFound
from app.terms.extraction import find_terms
from app.terms.types import KeyTerm
from retrieval import chunk
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.parse import parse_file
from retrieval.types import DocumentWarning, Language

if TYPE_CHECKING:
    from app.library import Library


@dataclass(frozen=True, slots=True)
class DocumentTerms:
    """The key terms of one document. `document_id` is None for a file that is not in the library;
    `warnings` tell what could not be read, where a term may stand unseen."""

    document_id: str | None
    name: str
    language: Language
    pages: int
    characters: int
    terms: tuple[KeyTerm, ...]
    warnings: tuple[DocumentWarning, ...]
    terms_ms: float


def terms_of_file(path: Path) -> DocumentTerms:
    """Parses a file and reads its terms. Raises NotFound, BadRequest, ParseError."""
    if not path.is_file():
        raise NotFound(f"There is no file {path}.", code="file_not_found")
    try:
        document = parse_file(path, path.name)
    except OSError as error:
        message = f"Cannot read {path}: {error.strerror}."
        raise BadRequest(message, code="file_unreadable") from error
    started = time.perf_counter()
    clauses = outline(document.text)
    index = SearchIndex.build(document.text, chunk.split(document, clauses), clauses)
    pages = document.pages if is_paged(document.pages, document.media_type) else ()
    found = find_terms(index, clauses, pages)
    return DocumentTerms(
        document_id=None,
        name=document.name,
        language=index.language,
        pages=len(document.pages),
        characters=len(document.text),
        terms=found,
        warnings=document.warnings,
        terms_ms=(time.perf_counter() - started) * 1000,
    )


def terms_of_stored(
    library: Library, document_id: str, *, owner: str | None = None
) -> DocumentTerms:
    """Reads the terms of a document of the library. Raises NotFound, NotReady, Conflict."""
    # Here, because a file is read without a database.
    from app.readiness import require_askable

    require_askable(library.get(document_id, owner=owner))
    document = library.load(document_id, owner=owner)
    started = time.perf_counter()
    pages = document.pages if is_paged(document.pages, document.record.media_type) else ()
    found = find_terms(document.index, document.clauses, pages)
    return DocumentTerms(
        document_id=document_id,
        name=document.record.name,
        language=document.index.language,
        pages=len(document.pages),
        characters=len(document.text),
        terms=found,
        warnings=document.record.warnings,
        terms_ms=(time.perf_counter() - started) * 1000,
    )
