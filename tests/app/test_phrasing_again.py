"""A second attempt when nothing of the first passed, and claims that are shown as not confirmed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.answer.evidence import Candidate, Found
from app.attempts import request_ids
from app.events import AnswerDelta, AnswerEvent, CheckDone
from app.phrasing import Phrasing, phrase
from app.types import AskOptions, Citation
from backend.types import EngineTimings, FinishReason, TokenEvent, Usage
from retrieval.types import Chunk, Sentence

TEXT = (
    "5. Liability. The total liability of the Recipient shall not exceed USD 2,000,000. Claims "
    "lapse after five years."
)
START, END = TEXT.index("The total"), TEXT.index(" Claims")
QUESTION = "What is the cap on liability?"
WRONG = "The cap for the Recipient is a total of USD 3,000,000."
RIGHT = "The Recipient is liable for a total of USD 2 million."


class Tokenizer:
    """One token a character."""

    def encode(self, text: str, special: bool = False) -> list[int]:
        return [ord(character) for character in text]

    def chat(self, messages: list[dict[str, str]]) -> str:
        return "".join(message["content"] for message in messages)


class Engine:
    """Says each of `replies` in turn and keeps the requests."""

    attends_pages = True

    def __init__(self, *replies: str, finish: FinishReason = "stop") -> None:
        self.replies, self.finish, self.requests = list(replies), finish, list[Any]()
        self.tokenizer = Tokenizer()

    def generate(self, request: Any) -> Iterator[TokenEvent]:
        self.requests.append(request)
        reply = self.replies[len(self.requests) - 1]
        yield TokenEvent(request.request_id, 0, 1, reply)
        yield TokenEvent(
            request.request_id, 1, None, "", self.finish, Usage(10, 4, 0, 5),
            EngineTimings(1.0, 2.0, 3.0, 4.0),
        )  # fmt: skip

    def cancel(self, request_id: str) -> None:
        """It is too late: all is said."""

    def prompt(self, index: int) -> str:
        return "".join(map(chr, self.requests[index].prompt_ids))


def said(
    engine: Engine, options: AskOptions, brief: threading.Event | None = None
) -> tuple[Phrasing, list[AnswerEvent]]:
    chunk = Chunk(0, 0, len(TEXT), "5", "Liability", 1, 1)
    sentence = cast("Sentence", SimpleNamespace(start=START, end=END, chunk=chunk, score=1.0))
    found = Found((cast("Any", SimpleNamespace(hits=())),), (Candidate(0, sentence),))
    document = SimpleNamespace(
        text=TEXT, record=SimpleNamespace(id="d", owner="local"), tokens=None
    )
    quote = Citation(TEXT[START:END], "d", "d", None, None, START, END, "5", (), True)
    events = phrase(
        cast("Any", engine), cast("Any", [document]), found, [quote], QUESTION, "en", "r1",
        threading.Event(), options, offset=100, brief=brief or threading.Event(),
    )  # fmt: skip
    seen: list[AnswerEvent] = []
    while True:
        try:
            seen.append(next(events))
        except StopIteration as end:
            return end.value, seen


def options(**changes: Any) -> AskOptions:
    return AskOptions(pages=False, **changes)


def test_by_default_a_failed_claim_is_asked_once_and_not_shown() -> None:
    engine = Engine(WRONG)
    phrasing, events = said(engine, options())
    assert (phrasing.use, phrasing.text, events) == ("dropped", "", [])
    assert len(engine.requests) == 1
    assert "Claims lapse" not in engine.prompt(0)


def test_what_is_shown_stands_when_others_wait_for_the_model() -> None:
    brief = threading.Event()
    brief.set()
    phrasing, events = said(Engine(f"{RIGHT}\nThe", finish="cancelled"), options(), brief)
    assert (phrasing.use, phrasing.finish_reason) == ("cut", "cut"), "it may have been qualified"
    assert phrasing.text == f"\n\n{RIGHT} (unfinished, because many questions were waiting)"
    deltas = [event for event in events if isinstance(event, AnswerDelta)]
    assert "".join(delta.text for delta in deltas) == phrasing.text
    assert deltas[-1].kind == "notice"
    nothing, events = said(Engine("", finish="cancelled"), options(), brief)
    assert (nothing.use, nothing.finish_reason, events) == ("off", "quote", [])
    assert nothing.usage is not None


def test_words_that_the_engine_ended_for_reasons_of_its_own_are_told_so() -> None:
    phrasing, _ = said(Engine(f"{RIGHT}\nThe", finish="cancelled"), options())
    assert (phrasing.use, phrasing.finish_reason) == ("cut", "cancelled")
    nothing, events = said(Engine("", finish="cancelled"), options())
    assert (nothing.use, nothing.finish_reason, events) == ("none", "cancelled", [])


def test_no_second_attempt_is_made_while_others_wait_for_the_model() -> None:
    brief = threading.Event()
    brief.set()
    engine = Engine(WRONG, RIGHT)
    phrasing, _ = said(engine, options(regenerate=True), brief)
    assert (phrasing.use, len(engine.requests)) == ("dropped", 1)


def test_the_second_attempt_gets_the_whole_chunk_and_only_its_words() -> None:
    engine = Engine(WRONG, RIGHT)
    phrasing, events = said(engine, options(regenerate=True))
    assert phrasing.use == "used"
    assert phrasing.text == f"\n\n{RIGHT}"
    assert [event.text for event in events if isinstance(event, AnswerDelta)] == [f"\n\n{RIGHT}"]
    assert "Claims lapse after five years." in engine.prompt(1)
    assert "Use only these words" in engine.prompt(1)
    assert engine.requests[1].evidence == ()
    assert tuple(request.request_id for request in engine.requests) == request_ids("r1")
    assert len({*request_ids("r1")}) == 2
    assert phrasing.usage == Usage(20, 8, 0, 10)
    assert phrasing.timings == EngineTimings(2.0, 4.0, 3.0, 8.0)


def test_a_first_attempt_that_passes_is_not_repeated() -> None:
    engine = Engine(RIGHT)
    phrasing, _ = said(engine, options(regenerate=True))
    assert (phrasing.use, len(engine.requests)) == ("used", 1)


def test_it_is_asked_again_only_once() -> None:
    engine = Engine(WRONG, WRONG)
    phrasing, events = said(engine, options(regenerate=True))
    assert (phrasing.use, phrasing.text, events) == ("dropped", "", [])
    assert len(engine.requests) == 2


@pytest.mark.parametrize("second", ["", TEXT[START:END]])
def test_silence_or_the_quote_said_again_leaves_the_claim_failed(second: str) -> None:
    phrasing, _ = said(Engine(WRONG, second), options(regenerate=True))
    assert (phrasing.use, phrasing.refused) == ("dropped", WRONG)


def test_a_claim_may_be_shown_as_not_confirmed_with_the_check_that_failed() -> None:
    phrasing, events = said(Engine(WRONG), options(failed="mark"))
    assert phrasing.use == "marked"
    assert phrasing.text == f"\n\nNot confirmed by the quotes: {WRONG}"
    assert "".join(e.text for e in events if isinstance(e, AnswerDelta)) == phrasing.text
    failed = [check for check in phrasing.checks if not check.ok]
    assert [check.text for check in failed] == ["USD 3,000,000"]
    answer = "x" * 100 + phrasing.text
    assert all(answer[check.start : check.end] == check.text for check in phrasing.checks)
    assert tuple(e.check for e in events if isinstance(e, CheckDone)) == phrasing.checks


@pytest.mark.parametrize(
    "reply", ["Yes, it is USD 3,000,000.", QUESTION, "Dinosaurs roamed ancient valleys."]
)
def test_what_answers_nothing_or_has_nothing_to_point_at_stays_unshown(reply: str) -> None:
    phrasing, events = said(Engine(reply), options(failed="mark"))
    assert (phrasing.use, phrasing.text, events) == ("dropped", "", [])


@pytest.mark.parametrize(("finish", "words"), [("length", "cut at"), ("repetition", "repeat")])
def test_a_cut_or_looping_answer_is_told(finish: FinishReason, words: str) -> None:
    phrasing, events = said(Engine(f"{RIGHT} And then", finish=finish), options())
    assert (phrasing.use, phrasing.finish_reason) == ("cut", finish)
    assert words in phrasing.text
    assert isinstance(events[-1], AnswerDelta)
    assert events[-1].kind == "notice"


def test_markers_that_point_at_nothing_are_gone_and_made_up_quotes_are_not_shown() -> None:
    phrasing, _ = said(Engine(f"{RIGHT[:-1]} [7] [1]."), options())
    assert phrasing.text.endswith("USD 2 million [1].")
    made_up = "The Recipient “bears every loss up to USD 2,000,000”."
    phrasing, _ = said(Engine(made_up), options())
    assert phrasing.use == "dropped"
