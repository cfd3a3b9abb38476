"""Questions that come before their documents were read: framework, then confirmed or revised."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from app import ask as asking
from app import framework
from app.answer.evidence import Found, find
from app.ask import ask
from app.documents import DocumentRecord, DocumentTimings, LoadedDocument
from app.events import (
    AnswerCompleted,
    AnswerConfirmed,
    AnswerDelta,
    AnswerEvent,
    AnswerFramework,
    AnswerRevised,
    CoverageChanged,
)
from app.framework import wait_until_read
from app.pace import Stopped
from app.phrasing import Phrasing
from app.types import AnswerUsage, AskOptions
from backend.types import DocumentTokens, EngineTimings, ReadProgress, Usage
from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.types import Document, DocumentPage, DocumentWarning

FIRST = "1. Liability\nThe total liability of the Supplier shall not exceed EUR 100,000.\n\n"
LAST = (
    "2. Amendment\nClause 1 is deleted and replaced by: The total liability of the Supplier shall "
    "not exceed EUR 900,000.\n"
)
TOKENS = 1000
QUESTION = "What is the cap on the total liability of the Supplier?"


class ReadingEngine:
    """Has read `share` of every document, more whenever it is looked at, up to `end`."""

    attends_pages = True

    def __init__(self, share: float = 0.2, step: float = 0.1, end: float = 1.0) -> None:
        self.share, self.step, self.end = share, step, end
        self.looks = 0

    def progress(self, key: str) -> ReadProgress:
        self.looks += 1
        self.share = min(self.end, self.share + self.step)
        done = self.share >= 1.0
        read = int(self.share * TOKENS)
        return ReadProgress(key, read, TOKENS, read, "done" if done else "reading")


def loaded(text: str, *warnings: DocumentWarning) -> LoadedDocument:
    page = DocumentPage(1, 0, len(text))
    document = Document(text, (page,), "contract.txt", "text/plain", "en")
    clauses = outline(text)
    record = DocumentRecord(
        id="doc-1", owner="local", name="contract.txt", sha256="0" * 64, size=len(text),
        media_type="text/plain", language="en", status="in_progress", stage="reading",
        progress_done=1, progress_total=1, progress_unit="tokens", ready_tokens=0,
        total_tokens=TOKENS, page_count=1, warnings=warnings, error_code=None,
        error_message=None, created_at=datetime(2026, 1, 1, tzinfo=UTC),
        timings=DocumentTimings(1.0, 2.0, 3.0),
    )  # fmt: skip
    edges = np.linspace(0, len(text), TOKENS + 1).astype(np.int32)
    return LoadedDocument(
        record=record, text=text, pages=(page,), clauses=clauses,
        index=SearchIndex.build(text, split(document, clauses), clauses),
        tokens=DocumentTokens("key", tuple(range(TOKENS)), ((0, TOKENS),)),
        token_spans=np.stack([edges[:-1], edges[1:]], axis=1), char_boxes=lambda: None,
    )  # fmt: skip


def answer_of(
    engine: ReadingEngine,
    document: LoadedDocument,
    question: str = QUESTION,
    **more: Any,
) -> list[AnswerEvent]:
    return list(
        ask(
            cast("Any", engine), [document], question, request_id="r1",
            options=AskOptions(phrase=False), until_read=True, **more,
        )
    )  # fmt: skip


def only(events: Sequence[AnswerEvent], kind: type[Any]) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framework, "POLL_S", 0.005)
    monkeypatch.setattr(framework, "TOLD_EVERY_S", 0.0)


def knowing_more_later() -> Callable[[Sequence[LoadedDocument], str], Found]:
    """A search that knows only the beginning of the document the first time."""
    beginning, asked = loaded(FIRST), []

    def search(documents: Sequence[LoadedDocument], question: str) -> Found:
        asked.append(question)
        known = [replace(beginning, record=documents[0].record)] if len(asked) == 1 else documents
        return find(known, question)

    return search


def test_an_answer_is_told_at_once_and_confirmed_when_all_is_read() -> None:
    events = answer_of(ReadingEngine(), loaded(FIRST + LAST))
    kinds = [type(event) for event in events]
    first_words, told = kinds.index(AnswerDelta), kinds.index(AnswerFramework)
    confirmed = kinds.index(AnswerConfirmed)
    assert first_words < told < confirmed < kinds.index(AnswerCompleted)
    [preliminary] = only(events, AnswerFramework)
    assert 0 < preliminary.coverage.read_tokens < TOKENS
    assert preliminary.status == "partial"
    steps = [one.coverage.read_tokens for one in only(events, CoverageChanged)]
    assert steps == sorted(steps) and steps[-1] == TOKENS
    answer = events[-1].answer  # type: ignore[union-attr]
    assert answer.status == "answered" and answer.coverage.read_tokens == TOKENS
    assert "still being read" not in answer.answer
    assert "".join(one.text for one in only(events, AnswerDelta)) == answer.answer
    assert not only(events, AnswerRevised)


def test_a_beginning_that_misleads_is_revised() -> None:
    events = answer_of(ReadingEngine(), loaded(FIRST + LAST), search=knowing_more_later())
    place = next(i for i, event in enumerate(events) if isinstance(event, AnswerRevised))
    before = "".join(one.text for one in only(events[:place], AnswerDelta))
    after = "".join(one.text for one in only(events[place:], AnswerDelta))
    assert "100,000" in before and "900,000" not in before
    assert "900,000" in after
    revised = events[place]
    assert isinstance(revised, AnswerRevised)
    assert "citations" in revised.changed and "wording" in revised.changed
    answer = events[-1].answer  # type: ignore[union-attr]
    assert answer.answer == after and answer.status == "answered"
    assert all(check.ok for check in answer.checks)
    for check in answer.checks:
        assert answer.answer[check.start : check.end] == check.text


def test_a_far_amendment_is_in_the_framework_already() -> None:
    """Search knows the whole text before the engine has read any of it."""
    between = "".join(
        f"{number}. Delivery {number}\nThe parties keep records of delivery {number}, and the "
        "carrier signs a receipt for each pallet that is handed over there on that day.\n\n"
        for number in range(2, 500)
    )
    text = FIRST + between + LAST.replace("2. Amendment", "500. Amendment")
    events = answer_of(ReadingEngine(share=0.0, step=0.03), loaded(text))
    place = next(i for i, event in enumerate(events) if isinstance(event, AnswerFramework))
    told = "".join(one.text for one in only(events[:place], AnswerDelta))
    assert len(text) > 65_000 and events[place].coverage.read_tokens < TOKENS / 4
    assert told.index("EUR 900,000") < told.index("amended since") < told.index("EUR 100,000")
    assert only(events, AnswerConfirmed) and not only(events, AnswerRevised)
    assert events[-1].answer.answer == told  # type: ignore[union-attr]


def test_not_found_at_first_is_revised_when_the_rest_answers() -> None:
    question = "What is the period of notice for ending the lease?"
    rest = "2. Notice\nThe period of notice for ending the lease is ninety days.\n"
    events = answer_of(ReadingEngine(), loaded(FIRST + rest), question, search=knowing_more_later())
    [preliminary] = only(events, AnswerFramework)
    assert preliminary.status == "not_found"
    [revised] = only(events, AnswerRevised)
    assert "status" in revised.changed
    assert "ninety days" in events[-1].answer.answer  # type: ignore[union-attr]


def test_not_found_stays_as_it_was_said() -> None:
    events = answer_of(ReadingEngine(), loaded(FIRST), "Does Mars have life?")
    assert only(events, AnswerConfirmed)
    answer = events[-1].answer  # type: ignore[union-attr]
    assert answer.status == "not_found" and answer.coverage.read_tokens == TOKENS
    assert "".join(one.text for one in only(events, AnswerDelta)) == answer.answer


def test_a_document_that_is_read_has_no_framework() -> None:
    events = answer_of(ReadingEngine(share=1.0), loaded(FIRST))
    assert not only(events, AnswerFramework) and not only(events, AnswerConfirmed)
    assert events[-1].answer.status == "answered"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("question", "status"), [(QUESTION, "partial"), ("Does Mars have life?", "not_found")]
)
def test_cancelling_while_reading_goes_on_ends_the_wait(question: str, status: str) -> None:
    stop = threading.Event()
    engine = ReadingEngine(step=0.0)
    threading.Timer(0.1, stop.set).start()
    started = time.monotonic()
    events = answer_of(engine, loaded(FIRST), question, cancelled=stop)
    assert time.monotonic() - started < 20
    answer = events[-1].answer  # type: ignore[union-attr]
    assert (answer.status, answer.finish_reason) == (status, "cancelled")


def test_an_answer_that_is_stopped_while_it_is_made_again_leaves_the_first_one() -> None:
    stop, again = threading.Event(), knowing_more_later()
    asked: list[str] = []

    def search(documents: Sequence[LoadedDocument], question: str) -> Found:
        asked.append(question)
        if len(asked) == 2:
            stop.set()
        return again(documents, question)

    events = answer_of(ReadingEngine(), loaded(FIRST + LAST), search=search, cancelled=stop)
    assert len(asked) == 2
    assert not only(events, AnswerRevised) and not only(events, AnswerConfirmed)
    answer = events[-1].answer  # type: ignore[union-attr]
    assert "".join(one.text for one in only(events, AnswerDelta)) == answer.answer
    assert (answer.status, answer.finish_reason) == ("partial", "cancelled")


@pytest.mark.parametrize("end", ["confirmed", "revised", "stopped"])
def test_what_a_preliminary_wording_cost_is_counted(
    monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    stop = threading.Event()
    costs = [(Usage(10, 4, 3, 7), EngineTimings(1.0, 2.0, 3.0, 40.0))]
    costs.append((Usage(20, 8, 0, 5), EngineTimings(0.5, 2.0, 3.0, 30.0)))
    left = iter(costs)

    def worded(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        usage, timings = next(left)
        if end == "stopped" and usage is costs[1][0]:
            stop.set()
        yield from ()
        return Phrasing("dropped", usage=usage, timings=timings)

    monkeypatch.setattr(asking, "phrase", worded)
    document = loaded(FIRST + LAST)
    more = {"search": knowing_more_later()} if end == "revised" else {}
    asked = ask(
        cast("Any", ReadingEngine()), [document], QUESTION, request_id="r1", until_read=True,
        cancelled=stop, **more,
    )  # fmt: skip
    events = list(asked)
    kinds = {"confirmed": AnswerConfirmed, "revised": AnswerRevised}
    assert [kind for kind in kinds if only(events, kinds[kind])] == [end] * (end != "stopped")
    answer = only(events, AnswerCompleted)[0].answer
    assert answer.usage == AnswerUsage(30, 12, 3, 12)
    assert (answer.timings.queue_ms, answer.timings.decode_ms) == (1.5, 70.0)
    assert (answer.finish_reason == "cancelled") is (end == "stopped")


def test_what_was_left_is_searched_no_further() -> None:
    stop = threading.Event()
    searched: list[str] = []

    def search(documents: Sequence[LoadedDocument], question: str) -> Found:
        searched.append(question)
        if len(searched) == 2:
            stop.set()
        return find(documents, question)

    question = "What is the cap on liability, and how long does the Agreement remain in force?"
    for _ in range(2):
        events = ask(
            cast("Any", ReadingEngine(share=1.0)), [loaded(FIRST)], question, request_id="r",
            cancelled=stop, search=search,
        )  # fmt: skip
        with pytest.raises(Stopped):
            assert not only(list(events), AnswerDelta)
        assert len(searched) == 2, "of the whole and its two parts"


def test_a_document_that_is_read_on_demand_only_has_no_framework() -> None:
    on_demand = loaded(FIRST, DocumentWarning("read_on_demand", "Not read ahead."))
    events = answer_of(ReadingEngine(step=0.0), on_demand)
    assert not only(events, AnswerFramework) and not only(events, AnswerRevised)
    answer = events[-1].answer  # type: ignore[union-attr]
    assert answer.status == "partial" and "still being read" in answer.answer


@pytest.mark.parametrize(
    ("question", "status"), [(QUESTION, "partial"), ("Does Mars have life?", "not_found")]
)
def test_reading_that_fails_leaves_the_framework_as_it_is(question: str, status: str) -> None:
    class Failing(ReadingEngine):
        def progress(self, key: str) -> ReadProgress:
            seen = super().progress(key)
            return replace(seen, status="failed") if self.share >= 0.6 else seen

    events = answer_of(Failing(end=0.6), loaded(FIRST + LAST), question)
    assert only(events, AnswerFramework)
    assert not only(events, AnswerConfirmed) and not only(events, AnswerRevised)
    answer = events[-1].answer  # type: ignore[union-attr]
    assert answer.status == status and answer.coverage.read_tokens == 600
    assert "".join(one.text for one in only(events, AnswerDelta)) == answer.answer
    assert ("still being read (600 of 1000 tokens)" in answer.answer) == (status == "partial")


def test_nobody_waits_for_what_does_not_move_or_is_never_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def waited(document: LoadedDocument) -> Iterator[AnswerEvent]:
        engine = cast("Any", ReadingEngine(step=0.0))
        return wait_until_read(engine, [document], threading.Event())

    monkeypatch.setattr(framework, "STALLED_S", 0.05)
    assert list(waited(loaded(FIRST))) == []
    monkeypatch.setattr(framework, "STALLED_S", 3600.0)
    on_demand = loaded(FIRST, DocumentWarning("read_on_demand", "Not read ahead."))
    assert list(waited(on_demand)) == []


class Behind(ReadingEngine):
    """Begins with a document when it has read another one, which takes `looks_before` looks and
    `step_seconds` a step."""

    def __init__(self, looks_before: int, step_seconds: float) -> None:
        super().__init__(share=0.0)
        self.looks_before, self.step_seconds = looks_before, step_seconds

    def progress(self, key: str) -> ReadProgress:
        if self.looks < self.looks_before:
            self.looks += 1
            return ReadProgress(key, 0, TOKENS, 0, "queued")
        return super().progress(key)


def test_a_document_that_waits_for_another_ones_reading_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(10**6))
    # Every look at the clock finds a second passed.
    monkeypatch.setattr(framework, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    monkeypatch.setattr(framework, "STALLED_S", 20.0)
    events = answer_of(cast("Any", Behind(looks_before=400, step_seconds=0.4)), loaded(FIRST))
    assert next(clock) > 80, "it waited longer than for what stands still"
    assert only(events, AnswerConfirmed)
    assert events[-1].answer.status == "answered"  # type: ignore[union-attr]


@pytest.mark.parametrize("step_seconds", [0.0, 300.0], ids=["at rest", "hangs"])
def test_nobody_waits_for_an_engine_that_does_nothing(
    monkeypatch: pytest.MonkeyPatch, step_seconds: float
) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(framework, "time", SimpleNamespace(monotonic=lambda: float(next(clock))))
    monkeypatch.setattr(framework, "STALLED_S", 20.0)
    engine = cast("Any", Behind(looks_before=10**6, step_seconds=step_seconds))
    assert list(wait_until_read(engine, [loaded(FIRST)], threading.Event())) == []


@pytest.mark.parametrize(
    ("question", "status"), [(QUESTION, "partial"), ("Does Mars have life?", "not_found")]
)
@pytest.mark.parametrize("forgotten", [True, False])
def test_a_document_that_is_deleted_ends_the_wait_and_nothing_is_confirmed(
    question: str, status: str, forgotten: bool
) -> None:
    gone = threading.Event()

    class Reading(ReadingEngine):
        def progress(self, key: str) -> ReadProgress | None:  # type: ignore[override]
            # The same text in another document: the engine goes on with it and ends it.
            seen = super().progress(key)
            if self.share >= 0.5:
                gone.set()
            return None if gone.is_set() and forgotten else seen

    document = replace(loaded(FIRST + LAST), exists=lambda: not gone.is_set())
    events = answer_of(Reading(step=0.02), document, question)
    assert only(events, AnswerFramework)
    assert not only(events, AnswerConfirmed) and not only(events, AnswerRevised)
    answer = events[-1].answer  # type: ignore[union-attr]
    assert answer.status == status
    assert [warning.code for warning in answer.warnings] == ["document_deleted"]
    assert 0 < answer.coverage.read_tokens < TOKENS, "what was read before it was deleted"
    assert ("was deleted before it was read" in answer.answer) == (status == "partial")
    assert "".join(one.text for one in only(events, AnswerDelta)) == answer.answer
    told = [one.coverage.read_tokens for one in only(events, CoverageChanged)]
    assert told == sorted(told)


@pytest.mark.parametrize(("worded", "warnings"), [(True, ["no_wording"]), (False, [])])
def test_a_brief_answer_asks_no_model_and_says_so(worded: bool, warnings: list[str]) -> None:
    # This engine generates nothing: to ask it would be an error.
    engine = cast("Any", ReadingEngine(share=1.0))
    options = AskOptions(phrase=worded)
    brief = threading.Event()
    brief.set()
    events = list(
        ask(engine, [loaded(FIRST)], QUESTION, request_id="r1", options=options, brief=brief)
    )
    answer = only(events, AnswerCompleted)[0].answer
    assert answer.status == "answered" and answer.citations
    assert [warning.code for warning in answer.warnings] == warnings


def test_an_answer_whose_wording_was_cut_for_others_is_partial_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(*_: Any, **__: Any) -> Iterator[AnswerEvent]:
        yield from ()
        return Phrasing("cut", " Yes. (unfinished)", finish_reason="cut")

    monkeypatch.setattr(asking, "phrase", cut)
    engine = cast("Any", ReadingEngine(share=1.0))
    answer = list(ask(engine, [loaded(FIRST)], QUESTION, request_id="r1"))[-1].answer  # type: ignore[union-attr]
    assert (answer.status, answer.finish_reason) == ("partial", "cut")
    assert [warning.code for warning in answer.warnings] == ["no_wording"]
    assert "before it was finished" in answer.warnings[0].message
