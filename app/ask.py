"""One question about one or more documents, from the question to the checked answer.

The answer leads with sentences that retrieval chose, as exact spans of the document, so the first
words come at once and are the document's own. The model's phrasing follows only as far as every
figure, date, clause number, name and negation in it stands in those spans; what fails is not
shown. Whether a document answers at all is decided by retrieval, never by the model's word.

Calls retrieval, the prompt, the engine and the checks; nothing calls it back. Does not know the
database or the doors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from app.answer import wording
from app.answer.checks import check_quotes
from app.answer.citations import nearest_clauses
from app.answer.evidence import Found, find, lead, missing_clauses
from app.errors import BadQuestion
from app.events import (
    AnswerCompleted,
    AnswerCreated,
    AnswerDelta,
    AnswerEvent,
    CheckDone,
    CitationFound,
    CoverageChanged,
)
from app.phrasing import NO_PHRASING, Phrasing, phrase
from app.rerank import rerank
from app.types import (
    Answer,
    AnswerStatus,
    AnswerUsage,
    AskOptions,
    Check,
    Citation,
    Coverage,
    Timings,
    Turn,
)
from retrieval.language import detect
from retrieval.types import DocumentWarning, Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument
    from backend.engine import Engine

MAX_QUESTION_CHARS = 4000
_DEFAULT_OPTIONS = AskOptions()


def ask(
    engine: Engine,
    documents: Sequence[LoadedDocument],
    question: str,
    *,
    request_id: str,
    history: Sequence[Turn] = (),
    cancelled: threading.Event | None = None,
    options: AskOptions = _DEFAULT_OPTIONS,
    search: Callable[[Sequence[LoadedDocument], str], Found] = find,
) -> Iterator[AnswerEvent]:
    """Answer a question, step by step; the last event is `AnswerCompleted`.

    `history` is accepted for the conversation's sake and not used yet: a follow-up without words
    of its own gets "not found" rather than a guess. `search` finds the evidence; an evaluation
    puts controls in its place. Raises BadQuestion before the first event for a question that is
    empty or too long, and lets retrieval's errors through. An error of the engine leaves the quoted
    answer standing and is told as a warning.
    """
    started = time.perf_counter()
    question = validate_question(question)
    if not documents:
        raise BadQuestion("Name at least one document to ask about.")
    language = detect(question)
    stop = cancelled or threading.Event()
    yield AnswerCreated(request_id, question, language, tuple(d.record.id for d in documents))
    yield CoverageChanged(coverage(engine, documents))

    found = search(documents, question)
    absent = missing_clauses(documents, question)
    if absent or not found.answerable:
        notice = _refusal(documents, found, absent, language, coverage(engine, documents))
        yield AnswerDelta(notice, "notice")
        yield AnswerCompleted(
            _answer(engine, documents, found, language, notice, started, status="not_found")
        )
        return

    if options.rerank:
        found = rerank(engine, found, documents, question)
    lines, citations = lead(found, documents, language, options)
    text = "\n".join(lines)
    yield AnswerDelta(text, "quote")
    first_token = time.perf_counter()
    for number, citation in enumerate(citations, start=1):
        yield CitationFound(number, citation)
    checks = check_quotes(lines, citations, documents)
    for check in checks:
        yield CheckDone(check)

    phrasing: Phrasing = NO_PHRASING
    if options.phrase and not stop.is_set():
        phrasing = yield from phrase(
            engine, documents, found, citations, question, language, request_id, stop, options,
            offset=len(text),
        )  # fmt: skip
        text += phrasing.text

    read = coverage(engine, documents)
    complete = read.read_tokens >= read.total_tokens and phrasing.use != "cut"
    if read.read_tokens < read.total_tokens:
        notice = "\n\n" + wording.still_reading(language, read)
        yield AnswerDelta(notice, "notice")
        text += notice
    yield CoverageChanged(read)
    yield AnswerCompleted(
        _answer(
            engine,
            documents,
            found,
            language,
            text,
            started,
            status="answered" if complete and not stop.is_set() else "partial",
            citations=citations,
            checks=(*checks, *phrasing.checks),
            phrasing=phrasing,
            first_token=first_token,
            cancelled=stop.is_set(),
        )  # fmt: skip
    )


def validate_question(question: str) -> str:
    """The question without surrounding white space and control characters.

    Raises BadQuestion when nothing is left or it is longer than `MAX_QUESTION_CHARS`.
    """
    cleaned = "".join(c for c in question if c.isprintable() or c in "\n\t").strip()
    if not cleaned:
        raise BadQuestion("The question is empty. Write what you want to know about the document.")
    if len(cleaned) > MAX_QUESTION_CHARS:
        raise BadQuestion(
            f"The question has {len(cleaned):,} characters; the limit is {MAX_QUESTION_CHARS:,}. "
            "Ask a shorter question; long text belongs in a document."
        )
    return cleaned


def coverage(engine: Engine, documents: Sequence[LoadedDocument]) -> Coverage:
    """Tokens read of all tokens of the documents, by the engine's account or the record's,
    whichever is more: a document read before a restart counts as read, its KV is made again."""
    read = total = 0
    for document in documents:
        progress = engine.progress(document.tokens.key)
        read += max(progress.read_tokens if progress else 0, document.record.ready_tokens)
        total += len(document.tokens.token_ids)
    return Coverage(min(read, total), total)


def _refusal(
    documents: Sequence[LoadedDocument],
    found: Found,
    absent: Sequence[str],
    language: Language,
    read: Coverage,
) -> str:
    """The words of a "not found" answer: what is missing, what came near, what was unreadable."""
    parts = [wording.no_such_clause(language, absent, len(documents))] if absent else []
    silent = found.absent
    if silent:
        parts.append(wording.not_mentioned(language, silent, len(documents)))
    parts.append(wording.not_found(language, read, len(documents)))
    best = documents[found.best_document]
    near = nearest_clauses(best, found.evidence[found.best_document].hits)
    if near:
        parts.append(wording.nearest(language, [wording.near(language, item) for item in near]))
    pages = [page for document in documents for page in unread_pages(document)]
    if pages:
        parts.append(wording.unread_pages(language, pages))
    return (" " if language == "en" else "").join(parts)


def unread_pages(document: LoadedDocument) -> tuple[int, ...]:
    """Pages whose text could not be read, so that an answer may stand there unseen."""
    return tuple(page.number for page in document.pages if page.method in ("empty", "unreadable"))


def _answer(
    engine: Engine,
    documents: Sequence[LoadedDocument],
    found: Found,
    language: Language,
    text: str,
    started: float,
    *,
    status: AnswerStatus,
    citations: tuple[Citation, ...] = (),
    checks: tuple[Check, ...] = (),
    phrasing: Phrasing = NO_PHRASING,
    first_token: float | None = None,
    cancelled: bool = False,
) -> Answer:
    now = time.perf_counter()
    timings, usage = phrasing.timings, phrasing.usage
    warnings = [warning for document in documents for warning in document.record.warnings]
    if phrasing.use == "failed":
        message = f"The model could not phrase the answer: {phrasing.error}"
        warnings.append(DocumentWarning("phrasing_failed", message))
    best = found.best_document
    near = nearest_clauses(documents[best], found.evidence[best].hits)
    return Answer(
        answer=text,
        status=status,
        language=language,
        citations=citations,
        checks=checks,
        coverage=coverage(engine, documents),
        timings=Timings(
            parse_ms=sum(d.record.timings.parse_ms or 0.0 for d in documents),
            index_ms=sum(d.record.timings.index_ms or 0.0 for d in documents),
            queue_ms=timings.queue_ms if timings else 0.0,
            read_ms=sum(d.record.timings.read_ms or 0.0 for d in documents),
            ttft_ms=1000 * ((first_token or now) - started),
            decode_ms=timings.decode_ms if timings else 0.0,
            total_ms=1000 * (now - started),
        ),
        usage=AnswerUsage(
            prompt_tokens=usage.prompt_tokens if usage else 0,
            cached_tokens=usage.cached_tokens if usage else 0,
            read_tokens=usage.read_tokens if usage else 0,
            completion_tokens=usage.completion_tokens if usage else 0,
        ),
        finish_reason="cancelled" if cancelled else phrasing.finish_reason,
        nearest=near if status == "not_found" else (),
        warnings=tuple(warnings),
        phrasing=phrasing.use,
    )
