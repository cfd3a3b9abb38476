"""A question that came before its documents were read: its answer is told at once as a framework,
and confirmed or revised when they are.

Knows how far reading is; does not know how an answer is made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator, Sequence
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Literal

from app.answer import wording
from app.events import AnswerConfirmed, AnswerDelta, AnswerEvent, AnswerRevised, CoverageChanged
from app.types import Answer, AnswerUsage, Coverage
from retrieval.types import DocumentWarning

if TYPE_CHECKING:
    from app.documents import LoadedDocument
    from app.engines import AnyEngine

POLL_S = 0.1
TOLD_EVERY_S = 1.0
"""How often the progress of reading is told while somebody waits for its end."""
STALLED_S = 120.0
"""Without any progress for so long nobody is kept waiting, nor for an engine that is at one step or
at rest for so long. While it is at other work, a document waits for its turn or for room."""

_DELETED = DocumentWarning(
    "document_deleted",
    "A document was deleted while the answer waited for it to be read, so nothing confirms the "
    "answer. Upload the document again to ask it.",
)

Difference = Literal["status", "citations", "wording"]


def coverage(engine: AnyEngine, documents: Sequence[LoadedDocument]) -> Coverage:
    """Tokens read of all tokens of the documents, by the engine's account or the record's,
    whichever is more: a document read before a restart counts as read, its KV is made again."""
    read = total = 0
    for document in documents:
        progress = engine.progress(document.tokens.key)
        read += max(progress.read_tokens if progress else 0, document.record.ready_tokens)
        total += len(document.tokens.token_ids)
    return Coverage(min(read, total), total)


def is_whole(read: Coverage) -> bool:
    """Everything was read."""
    return read.read_tokens >= read.total_tokens


def will_be_read(engine: AnyEngine, documents: Sequence[LoadedDocument]) -> bool:
    """Whether something is left to read and somebody is reading it; a document that is read only on
    demand never will be."""
    return not is_whole(coverage(engine, documents)) and _under_way(engine, documents)


def wait_until_read(
    engine: AnyEngine, documents: Sequence[LoadedDocument], stop: threading.Event
) -> Generator[AnswerEvent, None, Coverage]:
    """Tells how reading goes until it is over: all is read, it failed or was cancelled, it stands
    still, a document is deleted, or `stop` is set. A document that is read only on demand is not
    waited for. Returns what was read by then."""
    told = seen = coverage(engine, documents)
    now = told_at = moved_at = time.monotonic()
    while not is_whole(seen) and _under_way(engine, documents) and now - moved_at < STALLED_S:
        if stop.wait(POLL_S):
            break
        now, before = time.monotonic(), seen
        latest = coverage(engine, documents)
        # Asked after the count: what the engine forgets, it forgets after the record is gone.
        if any_deleted(documents):
            break
        seen = latest
        if seen != before or _awaits_its_turn(engine, documents):
            moved_at = now
        if seen != told and (now - told_at >= TOLD_EVERY_S or is_whole(seen)):
            told, told_at = seen, now
            yield CoverageChanged(seen)
    latest = coverage(engine, documents)
    return seen if any_deleted(documents) else latest


def any_deleted(documents: Sequence[LoadedDocument]) -> bool:
    """Whether one of them was deleted since it was loaded."""
    return not all(document.exists() for document in documents)


def _under_way(engine: AnyEngine, documents: Sequence[LoadedDocument]) -> bool:
    for document in documents:
        progress = engine.progress(document.tokens.key)
        on_demand = any(one.code == "read_on_demand" for one in document.record.warnings)
        if progress is not None and progress.status in ("queued", "reading") and not on_demand:
            return True
    return False


def _awaits_its_turn(engine: AnyEngine, documents: Sequence[LoadedDocument]) -> bool:
    """Whether reading has not begun because the engine is at something else."""
    found = [engine.progress(document.tokens.key) for document in documents]
    states = {progress.status for progress in found if progress is not None}
    begun = "reading" in states or "queued" not in states
    return not begun and 0 < engine.step_seconds < STALLED_S


def settle(
    first: Answer, again: Generator[AnswerEvent, None, Answer]
) -> Generator[AnswerEvent, None, Answer]:
    """Makes the answer once more and confirms the first one, or puts the new one in its place. One
    that was stopped half-way takes no place: the first one stands. Whatever became of them, what
    the model spent on both is counted."""
    events: list[AnswerEvent] = []
    while True:
        try:
            events.append(next(again))
        except StopIteration as end:
            made: Answer = end.value
            break
    if made.finish_reason == "cancelled":
        return cut_short(_with_cost_of(made, first), made.coverage)
    timings = replace(made.timings, ttft_ms=first.timings.ttft_ms)
    answer = _with_cost_of(first, replace(made, timings=timings))
    changed = differences(first, answer)
    if not changed:
        yield AnswerConfirmed(answer.coverage)
        # What was said stands, to the letter: a refusal told how much was read by then.
        return replace(answer, answer=first.answer, checks=first.checks)
    yield AnswerRevised(answer.coverage, changed)
    yield from events
    return answer


def _with_cost_of(other: Answer, answer: Answer) -> Answer:
    """The answer with the model's tokens and times of the other one as well."""
    tokens = zip(astuple(answer.usage), astuple(other.usage), strict=True)
    timings = replace(
        answer.timings,
        queue_ms=answer.timings.queue_ms + other.timings.queue_ms,
        decode_ms=answer.timings.decode_ms + other.timings.decode_ms,
    )
    return replace(answer, usage=AnswerUsage(*map(sum, tokens)), timings=timings)


def leave_unsettled(first: Answer, read: Coverage) -> Generator[AnswerEvent, None, Answer]:
    """Reading ended before its end, so the first answer stands, and says how far it goes."""
    if first.status == "not_found":
        return replace(first, coverage=read)
    notice = "\n\n" + wording.still_reading(first.language, read)
    yield AnswerDelta(notice, "notice")
    return replace(first, answer=first.answer + notice, status="partial", coverage=read)


def leave_deleted(first: Answer, read: Coverage) -> Generator[AnswerEvent, None, Answer]:
    """A document was deleted before its end was read: the first answer stands, confirmed by nobody,
    and says so. Another document with the same text changes nothing: it was not asked."""
    read = max(first.coverage, read, key=lambda one: one.read_tokens)
    left = replace(first, coverage=read, warnings=(*first.warnings, _DELETED))
    if first.status == "not_found":
        return left
    if is_whole(read):
        # It was deleted before anybody could confirm what was read.
        return replace(left, status="partial")
    notice = "\n\n" + wording.deleted_meanwhile(first.language, read)
    yield AnswerDelta(notice, "notice")
    return replace(left, answer=first.answer + notice, status="partial")


def cut_short(first: Answer, read: Coverage) -> Answer:
    """The first answer, which nobody confirmed; a "not found" stays one."""
    status = first.status if first.status == "not_found" else "partial"
    return replace(first, status=status, coverage=read, finish_reason="cancelled")


def differences(first: Answer, second: Answer) -> tuple[Difference, ...]:
    """What a reader would see differently: found or not, other places, other words."""
    found: list[Difference] = []
    if first.status == second.status == "not_found":
        return ()
    if (first.status == "not_found") != (second.status == "not_found"):
        found.append("status")

    def places(answer: Answer) -> list[tuple[str, int, int]]:
        return [(one.document_id, one.start_char, one.end_char) for one in answer.citations]

    if places(first) != places(second):
        found.append("citations")
    if first.answer != second.answer:
        found.append("wording")
    return tuple(found)
