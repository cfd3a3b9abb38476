"""The words of a "not found": what was looked for, what was read, what came nearest, and which
pages could not be read.

Knows the evidence of every document; does not decide that nothing was found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.answer import notices, wording
from app.answer.citations import nearest_clauses
from app.answer.evidence import Found
from app.types import Coverage, NearestClause
from retrieval.types import Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument

_NEAREST_OF_ONE, _NEAREST_OF_SEVERAL = 3, 2


def refusal(
    documents: Sequence[LoadedDocument],
    found: Found,
    absent: Sequence[str],
    language: Language,
    read: Coverage,
    *,
    listed: str = "",
) -> str:
    """What a "not found" says. `absent`: clauses that the question names and that do not exist;
    `listed`: what a list that is empty says of itself."""
    parts = [wording.no_such_clause(language, absent, len(documents))] if absent else []
    if listed:
        parts.append(listed)
    elif found.absent:
        parts.append(wording.not_mentioned(language, found.absent, len(documents)))
    parts.append(notices.not_found(language, read, len(documents), _extent(documents)))
    near = nearest(documents, found)
    if near:
        parts.append(
            wording.nearest(
                language,
                [notices.near(language, one, several=len(documents) > 1) for one in near],
            )
        )
    parts += [
        notices.unread_pages(language, pages, document.record.name if len(documents) > 1 else None)
        for document in documents
        if (pages := unread_pages(document))
    ]
    return (" " if language == "en" else "").join(parts)


def nearest(documents: Sequence[LoadedDocument], found: Found) -> tuple[NearestClause, ...]:
    """The clauses that came near, those of the likeliest document first."""
    order = sorted(range(len(documents)), key=lambda one: -found.evidence[one].support)
    limit = _NEAREST_OF_ONE if len(documents) == 1 else _NEAREST_OF_SEVERAL
    return tuple(
        clause
        for one in order
        for clause in nearest_clauses(documents[one], found.evidence[one].hits, limit)
    )


def unread_pages(document: LoadedDocument) -> tuple[int, ...]:
    """Pages whose text could not be read, so that an answer may stand there unseen."""
    return tuple(page.number for page in document.pages if page.method in ("empty", "unreadable"))


def _extent(documents: Sequence[LoadedDocument]) -> tuple[int, int]:
    """(characters, document pages) of the text that was searched; pages are 0 where none are."""
    characters = sum(len(document.text) for document in documents)
    pages = sum(len(document.pages) for document in documents if len(document.pages) > 1)
    return characters, pages
