"""Answers to "which clauses mention…": every clause of every document that does, with the count.

Nothing is ranked and nothing left out: what goes beyond `list_limit` is told with its number and
how to see it. Knows wording and places; does not know the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.answer import notices
from app.answer.citations import cite
from app.listing_request import ListRequest
from app.types import Citation
from retrieval.scan import Place, Scanner, Wording, can_look_for, wordings
from retrieval.types import Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument


@dataclass(frozen=True, slots=True)
class Listing:
    """`total` places were found in all documents; those shown have a line and a citation each.
    `head` says how many there are, and how to see the rest. `foreign`: documents in another
    language in which nothing was found, because the words for it are not known there."""

    head: str
    lines: tuple[str, ...]
    citations: tuple[Citation, ...]
    total: int
    foreign: tuple[str, ...] = ()


def list_places(
    documents: Sequence[LoadedDocument], request: ListRequest, language: Language, limit: int
) -> Listing:
    """Looks through every document for what is asked; an empty listing says that there is none."""
    listed = [(document, _places(document, request)) for document in documents]
    found = [(document, place) for document, places in listed for place in places]
    mentions = sum(place.count for _, place in found)
    first = min(request.first, max(1, len(found)))
    shown = found[first - 1 : first - 1 + limit]
    citations = tuple(cite(document, place.start, place.end) for document, place in shown)
    lines = tuple(
        notices.quote_line(language, citation, number, several=len(documents) > 1)
        for number, citation in enumerate(citations, start=1)
    )
    head = notices.listing(
        language,
        request.wanted,
        request.kind,
        places=len(found),
        mentions=mentions,
        shown=(first, first - 1 + len(shown)),
    )
    foreign = tuple(
        document.record.name
        for document, places in listed
        if not places
        and request.kind is None
        and not can_look_for(request.wanted, document.index.language)
    )
    return Listing(head, lines, citations, len(found), foreign)


def _places(document: LoadedDocument, request: ListRequest) -> tuple[Place, ...]:
    scanner = Scanner(document.text, document.clauses)
    if request.kind is not None:
        return scanner.facts(request.kind)
    looked_for: Sequence[Wording] = wordings(
        request.wanted, document.index.language, broad=request.broad
    )
    for one in looked_for:
        if places := scanner.mentions(one):
            return places
    return ()
