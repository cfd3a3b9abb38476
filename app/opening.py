"""How an answer opens: the quotes that answer, with what belongs to them, and our notes on them.

Everything here is there before the model says a word. Knows documents and evidence; does not know
the engine.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.answer import notices
from app.answer.attachments import Attachments
from app.answer.checks import check_quotes
from app.answer.computing import Computation, compute
from app.answer.evidence import Found, answers, quote_lines
from app.events import AnswerDelta, AnswerEvent, CheckDone, CitationFound
from app.listing import list_places
from app.listing_request import read_request
from app.types import AskOptions, Check, Citation
from retrieval.types import Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument


@dataclass(frozen=True, slots=True)
class Opening:
    """`head` stands before the quote lines, `notes` behind them, one a line. `exhaustive`: a list
    of all places, to which a model has nothing to add; `places` counts them."""

    lines: tuple[str, ...]
    citations: tuple[Citation, ...]
    head: str = ""
    notes: tuple[str, ...] = ()
    computed: Computation | None = None
    exhaustive: bool = False
    places: int = 0

    @property
    def in_force(self) -> tuple[Citation, ...]:
        """What a model may phrase: the answers, without what an amendment replaced."""
        return tuple(
            citation
            for citation in self.citations
            if citation.role in ("answer", "amendment") and not citation.replaced
        )


def open_list(
    documents: Sequence[LoadedDocument], question: str, language: Language, options: AskOptions
) -> Opening | None:
    """The opening of a question that asks for every place of something; None for any other, and
    where none is found and a search may know more: no clause names the matter that was asked about,
    or a document is in another language, in which the words for it are not known."""
    request = read_request(question) if options.lists else None
    if request is None:
        return None
    found = list_places(documents, request, language, options.list_limit)
    if not found.total and (request.broad or found.foreign):
        return None
    notes = (notices.not_looked_through(language, found.foreign),) if found.foreign else ()
    return Opening(
        found.lines, found.citations, found.head, notes, exhaustive=True, places=found.total
    )


def open_answer(
    found: Found,
    documents: Sequence[LoadedDocument],
    question: str,
    language: Language,
    options: AskOptions,
) -> Opening:
    """The best quotes, what they refer to and lean on, and what can be computed from them."""
    answering = answers(found, documents, options)
    citations = Attachments(answering, documents, question).shown(options)
    several = len(documents) > 1
    computed = compute(question, citations, language) if options.compute else None
    return Opening(
        lines=quote_lines(language, citations, several=several),
        citations=citations,
        notes=tuple(_notes(documents, citations, language, found.unanswered)),
        computed=computed,
    )


def _notes(
    documents: Sequence[LoadedDocument],
    citations: Sequence[Citation],
    language: Language,
    unanswered: Sequence[str],
) -> Iterator[str]:
    if unanswered:
        yield notices.unanswered_parts(language, unanswered)
    cited = {citation.document_id for citation in citations}
    silent = [document.record.name for document in documents if document.record.id not in cited]
    if silent:
        yield notices.silent_documents(language, silent)
    troubled = cited_page_warnings(documents, citations)
    if troubled:
        yield notices.page_warnings(language, troubled)


def cited_page_warnings(
    documents: Sequence[LoadedDocument], citations: Sequence[Citation]
) -> tuple[str, ...]:
    """Messages of the warnings about pages that are cited, each once."""
    pages = {(citation.document_id, citation.page) for citation in citations}
    return tuple(
        dict.fromkeys(
            warning.message
            for document in documents
            for warning in document.record.warnings
            if any((document.record.id, page) in pages for page in warning.pages)
        )
    )


def tell(
    opening: Opening, documents: Sequence[LoadedDocument], language: Language
) -> Generator[AnswerEvent, None, tuple[str, tuple[Check, ...]]]:
    """Says the opening, event by event; returns its text and its checks."""
    text = ""
    if opening.head:
        text = opening.head + "\n"
        yield AnswerDelta(text, "notice")
    quoted = "\n".join(opening.lines)
    yield AnswerDelta(quoted, "quote")
    for number, citation in enumerate(opening.citations, start=1):
        yield CitationFound(number, citation)
    checks = [
        replace(check, start=check.start + len(text), end=check.end + len(text))
        for check in check_quotes(opening.lines, opening.citations, documents)
    ]
    for check in checks:
        yield CheckDone(check)
    text += quoted
    if opening.computed is not None:
        said = "\n" + opening.computed.sentence(language)
        check = opening.computed.check(said, offset=len(text))
        yield AnswerDelta(said, "notice")
        yield CheckDone(check)
        checks.append(check)
        text += said
    for note in opening.notes:
        yield AnswerDelta("\n" + note, "notice")
        text += "\n" + note
    return text, tuple(checks)
