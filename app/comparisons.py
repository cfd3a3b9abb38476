"""Compares two versions of a contract: two files, or two documents of the library.

Needs no model. Texts of two languages that have nothing in common are refused; what could not be
read in either version is told with the result, since no comparison covers it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from app.answer.citations import is_paged
from app.comparison_facts import read_facts
from app.errors import AppError, BadRequest, NotFound
from retrieval.clauses import outline
from retrieval.compare import Comparison, Version, compare
from retrieval.compare.types import Change, Edit, Totals
from retrieval.parse import parse_file
from retrieval.types import Clause, Document, DocumentWarning, Language

if TYPE_CHECKING:
    from app.library import Library

_SHARED = 0.2
"""Share of common words below which two texts are hardly versions of one contract."""


@dataclass(frozen=True, slots=True)
class ComparedDocument:
    """One of the two versions. `document_id` is None for a file that is not in the library."""

    document_id: str | None
    name: str
    language: Language
    pages: int
    characters: int


@dataclass(frozen=True, slots=True)
class VersionComparison:
    """The differences between two versions, figures first, with what to know about them.

    `identical`: the texts are the same but for formatting, or are one document.
    """

    old: ComparedDocument
    new: ComparedDocument
    identical: bool
    changes: tuple[Change, ...]
    restated: tuple[Edit, ...]
    totals: Totals
    warnings: tuple[DocumentWarning, ...]
    compare_ms: float


@dataclass(frozen=True, slots=True)
class Source:
    """A version with its name and what could not be read of it."""

    document: ComparedDocument
    version: Version
    warnings: tuple[DocumentWarning, ...]


def compare_files(old: Path, new: Path) -> VersionComparison:
    """Parses two files and compares them. Raises NotFound, BadRequest, ParseError."""
    # A PDF is read by a process of its own, so two of them are read at the same time.
    with ThreadPoolExecutor(max_workers=2) as pool:
        first, second = pool.map(_from_file, (old, new))
    return compare_sources(first, second, same=old.resolve() == new.resolve())


def compare_stored(
    library: Library, old_id: str, new_id: str, *, owner: str | None = None
) -> VersionComparison:
    """Compares two documents of the library. Raises NotFound, NotReady, Conflict, BadRequest."""
    first = _from_library(library, old_id, owner)
    second = first if old_id == new_id else _from_library(library, new_id, owner)
    return compare_sources(first, second, same=old_id == new_id)


def compare_sources(old: Source, new: Source, *, same: bool = False) -> VersionComparison:
    """Compares two versions. `same`: they are one document. Raises BadRequest when they are in two
    languages and have no words in common."""
    started = time.perf_counter()
    found = compare(old.version, new.version, read_facts)
    elapsed_ms = (time.perf_counter() - started) * 1000
    return VersionComparison(
        old=old.document,
        new=new.document,
        identical=not found.changes and not found.restated,
        changes=found.changes,
        restated=found.restated,
        totals=found.totals,
        warnings=(*_about_both(old, new, found, same), *_unread(old, "old"), *_unread(new, "new")),
        compare_ms=elapsed_ms,
    )


def _about_both(
    old: Source, new: Source, found: Comparison, same: bool
) -> tuple[DocumentWarning, ...]:
    if same:
        message = f"“{old.document.name}” was compared with itself, so there are no differences."
        return (DocumentWarning("same_document", message),)
    totals = found.totals
    shared = totals.equal_words / max(min(totals.old_words, totals.new_words), 1)
    if old.document.language != new.document.language:
        message = (
            f"“{old.document.name}” is in {_NAMES[old.document.language]} and "
            f"“{new.document.name}” in {_NAMES[new.document.language]}."
        )
        if shared < _SHARED:
            raise BadRequest(
                f"{message} A comparison needs two versions in one language.",
                code="different_languages",
            )
        return (DocumentWarning("different_languages", message),)
    if shared < _SHARED:
        message = (
            f"The two texts have {shared:.0%} of their words in common: they hardly are versions "
            "of one contract."
        )
        return (DocumentWarning("little_in_common", message),)
    return ()


_NAMES: dict[Language, str] = {"en": "English", "zh": "Chinese"}


def _unread(source: Source, side: str) -> tuple[DocumentWarning, ...]:
    return tuple(
        DocumentWarning(one.code, f"“{source.document.name}” ({side}): {one.message}", one.pages)
        for one in source.warnings
    )


def _from_file(path: Path) -> Source:
    if path.is_dir():
        raise BadRequest(f"{path} is a folder. Name a file in it.", code="is_a_folder")
    try:
        document = parse_file(path, path.name)
    except FileNotFoundError as error:
        raise NotFound(f"There is no file {path}.", code="file_not_found") from error
    except OSError as error:
        raise AppError(f"Can't open {path}: {error.strerror}.", code="file_unreadable") from error
    version = _version(document, outline(document.text))
    return _source(None, document.name, version, document.warnings)


def _from_library(library: Library, document_id: str, owner: str | None) -> Source:
    # Here, because two files are compared without a database.
    from app.readiness import require_askable
    from app.records import clauses_of, find_document, parsed_document

    require_askable(library.get(document_id, owner=owner))
    with library.database.read() as session:
        found = find_document(session, document_id)
        if found is None or found[1] is None:
            raise NotFound(f"There is no document {document_id} any more.")
        row, stored = found[0], found[1]
        document = parsed_document(session, row, stored)
        clauses = clauses_of(session, stored.id)
    version = _version(document, clauses)
    return _source(document_id, document.name, version, document.warnings)


def _version(document: Document, clauses: Sequence[Clause]) -> Version:
    paged = is_paged(document.pages, document.media_type)
    return Version(document.text, tuple(clauses), document.pages, document.language, paged)


def _source(
    document_id: str | None, name: str, version: Version, warnings: tuple[DocumentWarning, ...]
) -> Source:
    compared = ComparedDocument(
        document_id, name, version.language, len(version.pages), len(version.text)
    )
    return Source(compared, version, warnings)
