"""One question about one or more documents, from the question to the checked answer.

The answer leads with sentences that retrieval chose, as exact spans of the document, so the first
words come at once and are the document's own; what they refer to, lean on or amend stands with
them. The model's phrasing follows only as far as every
figure, date, clause number, name and negation in it stands in those spans; what fails is not
shown. Whether a document answers at all is decided by retrieval, never by the model's word.

Calls retrieval, the prompt, the engine and the checks; nothing calls it back. Does not know the
database or the doors.
"""

from __future__ import annotations

import dataclasses
import re
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from app.answer import wording
from app.answer.evidence import Found, find, find_parts, look_again, missing_clauses
from app.errors import BadQuestion
from app.events import (
    AnswerCompleted,
    AnswerCreated,
    AnswerDelta,
    AnswerEvent,
    AnswerFramework,
    CoverageChanged,
)
from app.followup import standalone
from app.framework import (
    any_deleted,
    coverage,
    cut_short,
    is_whole,
    leave_deleted,
    leave_unsettled,
    settle,
    wait_until_read,
    will_be_read,
)
from app.opening import open_answer, open_list, tell
from app.pace import Stopped, check, in_turn
from app.phrasing import CUT, NO_PHRASING, Phrasing, phrase
from app.refusal import nearest, refusal
from app.rerank import rerank
from app.types import (
    Answer,
    AnswerStatus,
    AnswerUsage,
    AskOptions,
    Check,
    Citation,
    Timings,
    Turn,
)
from retrieval.language import detect
from retrieval.parts import MOST, count_of_list
from retrieval.types import DocumentWarning, Language

if TYPE_CHECKING:
    from app.documents import LoadedDocument
    from app.engines import AnyEngine

MAX_QUESTION_CHARS = 4000
_BLANKS = re.compile(r"\s+")
_DEFAULT_OPTIONS = AskOptions()
_BRIEF = DocumentWarning(
    "no_wording",
    "Many questions were waiting, so the model did not word this answer: it is the quoted text "
    "alone. Ask again later for its wording.",
)
_CUT = DocumentWarning(
    "no_wording",
    "Many questions were waiting, so the model's wording of this answer ends before it was "
    "finished. Ask again later for the whole.",
)


_LONG = DocumentWarning(
    "long_question",
    "The question is so long that the model would read it for longer than the document, so it did "
    "not word this answer: it is the quoted text alone. Ask a shorter question for its wording.",
)
LONG_TOKENS = 512
"""Of a question that the bundled model still words an answer to. One of 4,000 characters was read
for 15 to 40 s on two cores, twice where the first wording failed."""


def ask(
    engine: AnyEngine,
    documents: Sequence[LoadedDocument],
    question: str,
    *,
    request_id: str,
    history: Sequence[Turn] = (),
    cancelled: threading.Event | None = None,
    options: AskOptions = _DEFAULT_OPTIONS,
    search: Callable[[Sequence[LoadedDocument], str], Found] = find,
    until_read: bool = False,
    brief: threading.Event | None = None,
    turn: threading.Semaphore | None = None,
) -> Iterator[AnswerEvent]:
    """Answer a question, step by step; the last event is `AnswerCompleted`.

    A question that leans on `history` is looked for in the standalone form that `AnswerCreated`
    tells. `search` finds the evidence; an evaluation puts controls in its place. `until_read`: an
    answer that comes while its documents are being read is told as a framework, and confirmed or
    revised when they are; otherwise it ends at once and says that reading goes on. Once `brief` is
    set the model words nothing (more), and a warning says so. It searches while it has a `turn`.
    Raises BadQuestion before the first event for a question that is empty or
    too long, Stopped when it is `cancelled` before anything was quoted, and lets retrieval's errors
    through. An error of the engine leaves the quoted answer standing and is told as a warning.
    """
    started = time.perf_counter()
    question = validate_question(question)
    if not documents:
        raise BadQuestion("Name at least one document to ask about.")
    language = detect(question)
    stop = cancelled or threading.Event()
    hurry = brief or threading.Event()
    rewritten = None
    if options.follow_up:
        rewritten = standalone(question, history, list_limit=options.list_limit)
    asked = tuple(document.record.id for document in documents)
    yield AnswerCreated(request_id, question, language, asked, rewritten)
    yield CoverageChanged(coverage(engine, documents))

    def draft(*, preliminary: bool) -> Generator[AnswerEvent, None, Answer]:
        return _draft(
            engine, documents, rewritten or question, language, request_id, stop, options, search,
            started, rewritten, preliminary=preliminary, brief=hurry, turn=turn,
        )  # fmt: skip

    staying = until_read and will_be_read(engine, documents)
    answer = yield from draft(preliminary=staying)
    if staying and not is_whole(answer.coverage) and not stop.is_set():
        yield AnswerFramework(answer.coverage, answer.status)
        read = yield from wait_until_read(engine, documents, stop)
        if stop.is_set():
            answer = cut_short(answer, read)
        elif any_deleted(documents):
            answer = yield from leave_deleted(answer, read)
        elif not is_whole(read):
            answer = yield from leave_unsettled(answer, read)
        else:
            try:
                answer = yield from settle(answer, draft(preliminary=False))
            except Stopped:
                answer = cut_short(answer, read)
    yield CoverageChanged(answer.coverage)
    yield AnswerCompleted(answer)


def _draft(
    engine: AnyEngine,
    documents: Sequence[LoadedDocument],
    question: str,
    language: Language,
    request_id: str,
    stop: threading.Event,
    options: AskOptions,
    search: Callable[[Sequence[LoadedDocument], str], Found],
    started: float,
    rewritten: str | None,
    *,
    preliminary: bool,
    brief: threading.Event,
    turn: threading.Semaphore | None,
) -> Generator[AnswerEvent, None, Answer]:
    """Search, quote, phrase until `brief` is set; returns the answer. `preliminary`: somebody else
    says that reading goes on. Raises Stopped."""

    def searched(where: Sequence[LoadedDocument], what: str) -> Found:
        # Of twenty questions that were left, each search is as long as all of them take together.
        check(stop.is_set)
        return search(where, what)

    with in_turn(turn, stop.is_set):
        found = find_parts(searched, documents, question)
        check(stop.is_set)
        absent = missing_clauses(documents, question)
        opening = open_list(documents, question, language, options)
        answered = bool(opening.places if opening else found.answerable and not absent)
        if answered and opening is None:
            if options.backtrack:
                found = look_again(found, documents, question)
                check(stop.is_set)
            if not options.rerank:
                opening = open_answer(found, documents, question, language, options)
    if answered and opening is None:
        # The model takes as long for it as the engine has other work.
        found = rerank(engine, found, documents, question)
        with in_turn(turn, stop.is_set):
            opening = open_answer(found, documents, question, language, options)
    if opening is None or not answered:
        notice = refusal(
            documents, found, absent, language, coverage(engine, documents),
            listed=opening.head if opening else "",
        )  # fmt: skip
        yield AnswerDelta(notice, "notice")
        return _answer(
            engine, documents, found, question, language, notice, started, status="not_found",
            rewritten=rewritten,
        )  # fmt: skip

    first_token = time.perf_counter()
    text, checks = yield from tell(opening, documents, language)

    phrasing: Phrasing = NO_PHRASING
    worded = options.phrase and opening.in_force and not opening.exhaustive
    long = worded and _is_long(engine, question)
    if worded and not long and not brief.is_set() and not stop.is_set():
        phrasing = yield from phrase(
            engine, documents, found, opening.in_force, question, language, request_id, stop,
            options, offset=len(text), brief=brief,
        )  # fmt: skip
        text += phrasing.text

    read = coverage(engine, documents)
    if not is_whole(read) and not preliminary:
        notice = "\n\n" + wording.still_reading(language, read)
        yield AnswerDelta(notice, "notice")
        text += notice
    complete = is_whole(read) and phrasing.use != "cut" and not stop.is_set()
    answer = _answer(
        engine, documents, found, question, language, text, started,
        status="answered" if complete else "partial",
        citations=opening.citations,
        checks=(*checks, *phrasing.checks),
        phrasing=phrasing,
        first_token=first_token,
        cancelled=stop.is_set(),
        rewritten=rewritten,
    )  # fmt: skip
    if phrasing.finish_reason == CUT:
        answer = dataclasses.replace(answer, warnings=(*answer.warnings, _CUT))
    elif long:
        answer = dataclasses.replace(answer, warnings=(*answer.warnings, _LONG))
    elif worded and brief.is_set() and phrasing.use == "off":
        answer = dataclasses.replace(answer, warnings=(*answer.warnings, _BRIEF))
    return answer


def _is_long(engine: AnyEngine, question: str) -> bool:
    """Whether the question is too long to be worded; servers elsewhere read in no time."""
    # A token has a byte at least: of usual questions nothing need be counted.
    may_be = engine.attends_pages and len(question.encode()) > LONG_TOKENS
    return may_be and len(engine.tokenizer.encode(question)) > LONG_TOKENS


def validate_question(question: str) -> str:
    """The question without surrounding white space and control characters, each run of blanks as
    one: patterns over the question must not take the square of its length.

    Raises BadQuestion when nothing is left or it is longer than `MAX_QUESTION_CHARS`.
    """
    spaced = _BLANKS.sub(lambda run: "\n" if "\n" in run[0] else " ", question)
    cleaned = "".join(c for c in spaced if c.isprintable() or c == "\n").strip()
    if not cleaned:
        raise BadQuestion("The question is empty. Write what you want to know about the document.")
    if len(cleaned) > MAX_QUESTION_CHARS:
        raise BadQuestion(
            f"The question has {len(cleaned):,} characters; the limit is {MAX_QUESTION_CHARS:,}. "
            "Ask a shorter question; long text belongs in a document."
        )
    return cleaned


def _answer(
    engine: AnyEngine,
    documents: Sequence[LoadedDocument],
    found: Found,
    question: str,
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
    rewritten: str | None = None,
) -> Answer:
    now = time.perf_counter()
    timings, usage = phrasing.timings, phrasing.usage
    warnings = [warning for document in documents for warning in document.record.warnings]
    if phrasing.use == "failed":
        message = f"The model could not phrase the answer: {phrasing.error}"
        warnings.append(DocumentWarning("phrasing_failed", message))
    if asked := count_of_list(question):
        warnings.append(
            DocumentWarning(
                "many_parts",
                f"The question asks {asked} things at once. Up to {MOST} are looked for one by "
                "one; these were looked for together, so some may have no quote. Ask them in "
                "questions of their own.",
            )
        )
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
        nearest=nearest(documents, found) if status == "not_found" else (),
        warnings=tuple(warnings),
        phrasing=phrasing.use,
        standalone_question=rewritten,
    )
