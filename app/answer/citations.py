"""Quotes as exact spans of a document, and the markers that point to them.

A citation is made from offsets, never by searching for a string, so `quote` equals
`text[start_char:end_char]` by construction. Knows one loaded document at a time; does not know
whether a quote answers the question.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from app.types import Citation, NearestClause
from retrieval.clauses import label_at, label_over
from retrieval.types import DocumentPage, Hit

if TYPE_CHECKING:
    from app.documents import LoadedDocument

_log = logging.getLogger(__name__)

# Media types whose single "page" is the whole file and not a page that anyone could turn to.
_PAGED_MEDIA = ("application/pdf",)

_MARKER = re.compile(r"\s*(?:\[([\d,，、\s]{1,20})\]|【([\d,，、\s]{1,20})】)")


def cite(document: LoadedDocument, start: int, end: int) -> Citation:
    """The citation of `text[start:end]`, without the white space around it."""
    text = document.text
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    page = page_at(document, start)
    return Citation(
        quote=text[start:end],
        document_id=document.record.id,
        document=document.record.name,
        page=page.number if page else None,
        page_label=page.label if page else None,
        start_char=start,
        end_char=end,
        clause=label_over(document.clauses, start, end),
        boxes=tuple(document.boxes(start, end)),
        verified=bool(text[start:end]),
    )


def page_at(document: LoadedDocument, position: int) -> DocumentPage | None:
    """The page that holds a character, or None for formats without pages."""
    if not is_paged(document.pages, document.record.media_type):
        return None
    return document.page_at(position)


def is_paged(pages: Sequence[DocumentPage], media_type: str | None) -> bool:
    """Whether a file of this type has pages that anyone could turn to."""
    return len(pages) > 1 or media_type in _PAGED_MEDIA


def clause_at(document: LoadedDocument, position: int) -> str | None:
    """The label of the deepest clause that holds a character ("12.3(b)"), None outside of all.

    A chunk may join several small clauses, so its own clause number would not do.
    """
    return label_at(document.clauses, position)


def nearest_clauses(
    document: LoadedDocument, hits: Sequence[Hit], limit: int = 3
) -> tuple[NearestClause, ...]:
    """The clauses that came near, one entry a clause, best first."""
    found: dict[tuple[str | None, str], NearestClause] = {}
    for hit in hits:
        chunk = hit.chunk
        if not (chunk.clause or chunk.heading):
            continue
        page = page_at(document, chunk.start)
        found.setdefault(
            (chunk.clause, chunk.heading),
            NearestClause(
                clause=chunk.clause,
                heading=chunk.heading,
                page=page.number if page else None,
                start_char=chunk.start,
                end_char=chunk.end,
                document_id=document.record.id,
                document=document.record.name,
            ),
        )
    return tuple(found.values())[:limit]


def resolve_markers(text: str, count: int, spans: Sequence[str]) -> str:
    """The text without citation markers that point to none of the `count` citations.

    A marker that names several is kept with those that exist. A bracketed figure that is text of a
    cited span ("[2024]", "[●]") or too long to be a marker is not a citation and stays. Markers are
    never renumbered onto another source.
    """

    def resolved(match: re.Match[str]) -> str:
        body = match.group(1) or match.group(2)
        whole = match.group(0).strip()
        numbers = [int(number) for number in re.findall(r"\d+", body)]
        if not numbers or any(number > 999 for number in numbers):
            return match.group(0)
        if any(whole in span for span in spans):
            return match.group(0)
        kept = [number for number in numbers if 1 <= number <= count]
        if len(kept) < len(numbers):
            _log.info("removed a citation marker that points at nothing: %s", whole)
        return "".join(f" [{number}]" for number in kept)

    return _MARKER.sub(resolved, text)


def without_markers(text: str, count: int) -> str:
    """The text with spaces in place of its markers [1] to [count], every offset kept."""
    return re.sub(
        r"\[(\d{1,3})\]",
        lambda match: " " * len(match[0]) if 1 <= int(match[1]) <= count else match[0],
        text,
    )
