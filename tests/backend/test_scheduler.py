"""Who gets the next step when answers, questions and documents wait at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.batch import Batch, Decode, Prefill, ReadBlocks
from backend.line import LONG_TURN, LOOK_AHEAD, QUICK_TOKENS
from backend.reading import DocumentReading
from backend.scheduler import DECODE_BURST, GROUP_SHARE, READING_TURN, Scheduler
from backend.sequence import Sequence
from backend.types import DocumentTokens
from kvstore.store import KVStore
from kvstore.types import KVShape

CHUNK = 512


def document(blocks: int = 1, owner: str = "", key: str = "d", size: int = 2) -> DocumentReading:
    """A document that shall be read, and is not."""
    store = KVStore(KVShape(1, 1, 4), 8, torch.float32)
    ranges = tuple((first, first + size) for first in range(0, blocks * size, size))
    tokens = DocumentTokens(key, tuple(range(blocks * size)), ranges, owner=owner)
    reading = DocumentReading(tokens, "model", "format", store)
    reading.want()
    return reading


@dataclass(eq=False)
class Question:
    """A question of a prompt, blocks that are missing, and an answer of `left` tokens; stands for
    a Sequence."""

    left: int = 1
    prompt_left: int = 10
    owner: str = ""
    missing: int = 0
    finished: bool = False
    context: object | None = None
    arrival: int = 0
    spent: int = 0
    request: Any = field(init=False)

    def __post_init__(self) -> None:
        self.request = SimpleNamespace(owner=self.owner)


EVIDENCE = document(blocks=1000, key="evidence")


def add(scheduler: Scheduler, *questions: Question) -> None:
    for question in questions:
        scheduler.add(cast("Sequence", question))


def step(scheduler: Scheduler) -> Batch | None:
    """What the engine does in one turn of its loop."""
    wanted = None
    for sequence in scheduler.to_open():
        question = cast("Question", sequence)
        if question.missing:
            wanted = ReadBlocks(EVIDENCE, (0,), sequence)
        else:
            question.context = object()
            scheduler.begin_filling(sequence)
        break
    batch = scheduler.schedule(wanted)
    if isinstance(batch, ReadBlocks):
        if batch.asker is not None:
            cast("Question", batch.asker).missing -= 1
        else:
            for index in batch.indexes:
                batch.reading.passed(index)
    elif isinstance(batch, Prefill):
        cast("Question", batch.sequence).prompt_left -= batch.tokens
    elif isinstance(batch, Decode):
        for sequence in batch.sequences:
            question = cast("Question", sequence)
            question.left -= 1
            question.finished = question.left == 0
    scheduler.sweep()
    return batch


def to_open(scheduler: Scheduler) -> list[Question]:
    return cast("list[Question]", scheduler.to_open())


def asker_of(batch: Batch | None) -> Question | None:
    """The question that a step was for."""
    if isinstance(batch, Prefill):
        return cast("Question", batch.sequence)
    return cast("Question", batch.asker) if isinstance(batch, ReadBlocks) else None


def is_reading(batch: Batch | None) -> bool:
    return isinstance(batch, ReadBlocks) and batch.asker is None


def test_short_questions_without_a_pause_do_not_starve_reading() -> None:
    scheduler = Scheduler(CHUNK)
    scheduler.add_reading(document(blocks=1000))
    blocks = answered = 0
    steps = 20 * READING_TURN
    for _ in range(steps):
        if not scheduler.sequences():
            # Ends long before a decoding burst would.
            add(scheduler, Question(left=DECODE_BURST // 4))
        question = next(iter(scheduler.sequences()))
        blocks += is_reading(step(scheduler))
        answered += cast("Question", question).finished
    assert steps // (READING_TURN + 2) <= blocks <= steps // READING_TURN
    assert answered > steps // DECODE_BURST


def test_missing_blocks_of_questions_do_not_starve_reading() -> None:
    scheduler = Scheduler(CHUNK)
    scheduler.add_reading(document(blocks=1000))
    add(scheduler, Question(missing=1000))
    given = [step(scheduler) for _ in range(2 * (READING_TURN + 1))]
    others = [index for index, batch in enumerate(given) if is_reading(batch)]
    assert others == [READING_TURN, 2 * READING_TURN + 1]


def test_questions_alone_are_never_held_up() -> None:
    scheduler = Scheduler(CHUNK)
    add(scheduler, Question(left=1000))
    assert isinstance(step(scheduler), Prefill)
    assert all(isinstance(step(scheduler), Decode) for _ in range(3 * READING_TURN))


def test_what_is_over_does_not_hold_answers_up() -> None:
    scheduler = Scheduler(CHUNK)
    add(scheduler, Question(left=1000))
    step(scheduler)
    for _ in range(READING_TURN):
        step(scheduler)
    over = document(blocks=3)
    over.cancelled = True
    scheduler.add_reading(over)
    assert all(isinstance(step(scheduler), Decode) for _ in range(3 * READING_TURN))
    assert scheduler.readings() == []


def test_groups_are_smaller_while_somebody_waits() -> None:
    reading = document(blocks=20, size=10)
    scheduler = Scheduler(CHUNK, read_tokens=10 * 2 * GROUP_SHARE)
    scheduler.add_reading(reading)
    alone = scheduler.schedule(None)
    assert isinstance(alone, ReadBlocks)
    assert alone.indexes == tuple(range(2 * GROUP_SHARE))
    assert scheduler.group_tokens == 20 * GROUP_SHARE
    question = Question()
    add(scheduler, question)
    assert scheduler.group_tokens == 20 * GROUP_SHARE
    beside = scheduler.schedule(None)
    assert isinstance(beside, ReadBlocks)
    assert beside.indexes == (0, 1)
    scheduler.begin_filling(cast("Sequence", question))
    assert scheduler.group_tokens == 20


@pytest.mark.parametrize("running", [1, 8, 32, 50])
def test_a_question_waits_for_few_tokens_of_others_answers(running: int) -> None:
    scheduler = Scheduler(CHUNK)
    add(scheduler, *(Question(left=1000) for _ in range(running)))
    while scheduler.waiting or any(one.prompt_left for one in scheduler.sequences()):
        step(scheduler)
    step(scheduler)
    # The worst moment: a question has just had its step.
    add(scheduler, Question(left=1000))
    while not isinstance(step(scheduler), Prefill):
        pass
    late = Question()
    add(scheduler, late)
    steps = 0
    while late.prompt_left:
        steps += 1
        step(scheduler)
    assert steps <= max(DECODE_BURST // running, 1) + 1


@pytest.mark.parametrize("reading", [False, True])
@pytest.mark.parametrize("running", [1, 5, 25, 31, 32, 50])
def test_a_group_of_blocks_costs_a_question_one_decoding_step(running: int, reading: bool) -> None:
    scheduler = Scheduler(CHUNK)
    add(scheduler, *(Question(left=10**6) for _ in range(running)))
    while scheduler.waiting or any(one.prompt_left for one in scheduler.sequences()):
        step(scheduler)
    if reading:
        scheduler.add_reading(document(blocks=10**4))
    decoded, groups, most = 0, 0, [0, 0]
    for _ in range(60 * READING_TURN):
        if not scheduler.waiting:
            add(scheduler, Question(left=1, prompt_left=CHUNK))
        batch = step(scheduler)
        decoded += len(batch.sequences) if isinstance(batch, Decode) else 0
        groups += is_reading(batch)
        if asker_of(batch) is not None:
            most[groups] = max(most[groups], decoded)
            decoded = groups = 0
    # One that was just asked has its token with them.
    assert most[0] <= max(DECODE_BURST, running + 1)
    assert bool(most[1]) is reading and most[1] <= max(DECODE_BURST, running + 1) + running + 1


@pytest.mark.parametrize("running", [1, 16, 50])
def test_answers_go_on_beside_questions_and_documents(running: int) -> None:
    scheduler = Scheduler(CHUNK)
    add(scheduler, *(Question(left=10**6) for _ in range(running)))
    while scheduler.waiting or any(one.prompt_left for one in scheduler.sequences()):
        step(scheduler)
    add(scheduler, *(Question(left=10**6, missing=2, owner=f"o{n % 3}") for n in range(20)))
    scheduler.add_reading(document(blocks=1000))
    given = [isinstance(step(scheduler), Decode) for _ in range(10 * READING_TURN)]
    assert all(first or second for first, second in zip(given, given[1:], strict=False))


def test_another_owners_first_question_is_next() -> None:
    scheduler = Scheduler(CHUNK)
    many = [Question(owner="many", prompt_left=2 * CHUNK) for _ in range(50)]
    add(scheduler, *many)
    for _ in range(20):
        step(scheduler)
    first = Question(owner="one")
    add(scheduler, first)
    asked = []
    while first.prompt_left:
        asked.append(asker_of(step(scheduler)))
    assert [question for question in asked if question is not None] == [first]


def test_within_an_owner_the_order_is_that_of_arrival() -> None:
    scheduler = Scheduler(CHUNK)
    questions = [Question(owner="ab"[number % 2], left=1) for number in range(20)]
    add(scheduler, *questions)
    done: dict[str, list[int]] = {"a": [], "b": []}
    while not scheduler.idle:
        question = asker_of(step(scheduler))
        if question is not None:
            done[question.owner].append(question.arrival)
    assert done == {"a": list(range(0, 20, 2)), "b": list(range(1, 20, 2))}


def test_a_long_prompt_does_not_hold_up_quick_ones_nor_they_it() -> None:
    scheduler = Scheduler(CHUNK)
    long = Question(prompt_left=QUICK_TOKENS + 30 * CHUNK)
    add(scheduler, long)
    step(scheduler)
    asked: list[Question | None] = []
    for _ in range(10 * (LONG_TURN + 1)):
        if scheduler.waiting < 3:
            add(scheduler, Question(left=0))
        for question in scheduler.sequences():
            # Answers of no tokens: all steps are for prompts.
            cast("Question", question).finished = question.prompt_left == 0
        scheduler.sweep()
        asked.append(asker_of(step(scheduler)))
    turns = [index for index, question in enumerate(asked) if question is long]
    assert len(turns) >= 9, "it goes on"
    assert all(b - a == LONG_TURN + 1 for a, b in zip(turns, turns[1:], strict=False))


def test_a_question_with_much_to_be_read_steps_behind_the_others() -> None:
    scheduler = Scheduler(CHUNK)
    whole = Question(missing=10**6)
    add(scheduler, whole)
    for _ in range(QUICK_TOKENS // 2 + 1):
        step(scheduler)
    assert whole.spent > QUICK_TOKENS
    quick = Question()
    add(scheduler, quick)
    step(scheduler)
    assert quick.prompt_left == 0


def test_contexts_are_opened_when_their_turn_is_near() -> None:
    scheduler = Scheduler(CHUNK)
    questions = [Question(prompt_left=4 * CHUNK) for _ in range(40)]
    add(scheduler, *questions)
    for _ in range(10):
        step(scheduler)
        assert sum(one.context is not None and one.prompt_left > 0 for one in questions) <= 2
    add(scheduler, Question(owner="another", prompt_left=4 * CHUNK))
    step(scheduler)
    assert len(scheduler.to_open()) <= LOOK_AHEAD


def test_one_that_needs_all_the_room_is_opened_before_others() -> None:
    scheduler = Scheduler(CHUNK)
    large, other = Question(missing=2), Question(owner="another")
    add(scheduler, large, other)
    scheduler.serve_alone(cast("Sequence", large))
    assert to_open(scheduler) == [large]
    while large.context is None:
        step(scheduler)
    assert other.context is None
    assert to_open(scheduler) == [other]
    large.finished = True
    third = Question(missing=1)
    add(scheduler, third)
    scheduler.serve_alone(cast("Sequence", third))
    third.finished = True
    scheduler.sweep()
    assert to_open(scheduler) == [other], "who is over keeps nobody out"


def test_owners_and_then_their_documents_take_turns_in_being_read() -> None:
    scheduler = Scheduler(CHUNK)
    for number in range(20):
        scheduler.add_reading(document(50, owner="many", key=f"m{number}"))
    for _ in range(10):
        step(scheduler)
    scheduler.add_reading(document(3, owner="one", key="o"))
    read = []
    for _ in range(5):
        batch = step(scheduler)
        assert isinstance(batch, ReadBlocks)
        read.append(batch.reading.document.key)
    assert read == ["o", "m10", "o", "m11", "o"]


def test_a_document_is_dropped_as_often_as_it_was_asked_for() -> None:
    scheduler = Scheduler(CHUNK)
    for key in ("a", "b", "a"):
        scheduler.add_reading(document(key=key))
    assert len(scheduler.drop_readings("a")) == 2
    assert [one.document.key for one in scheduler.readings()] == ["b"]
    assert len(scheduler.drop_readings("b")) == 1
    assert scheduler.idle


def test_first_come_serves_in_order_of_arrival() -> None:
    scheduler = Scheduler(CHUNK, first_come=True)
    long = Question(prompt_left=QUICK_TOKENS + CHUNK, owner="a")
    add(scheduler, long)
    scheduler.add_reading(document(3, owner="b", key="first"))
    scheduler.add_reading(document(2, owner="a", key="second"))
    quick = Question(owner="c")
    add(scheduler, quick)
    order = []
    while not scheduler.idle:
        batch = step(scheduler)
        order.append(
            batch.reading.document.key
            if isinstance(batch, ReadBlocks)
            else "long"
            if asker_of(batch) is long
            else "quick"
            if asker_of(batch) is quick
            else "decode"
        )
    chunks = order.count("long")
    assert [name for name in order if name != "decode"] == [
        *["long"] * chunks, *["first"] * 3, *["second"] * 2, "quick",
    ]  # fmt: skip


# What the scheduler promises, over random arrivals

OWNERS = st.sampled_from("abc")
QUESTIONS = st.builds(
    Question,
    left=st.integers(1, 40),
    prompt_left=st.integers(1, 3 * CHUNK),
    owner=OWNERS,
    missing=st.integers(0, 3),
)
DOCUMENTS = st.builds(document, blocks=st.integers(1, 9), owner=OWNERS)
ARRIVALS = st.lists(
    st.tuples(st.integers(0, 30), st.one_of(QUESTIONS, DOCUMENTS)), min_size=1, max_size=40
)


class Watch:
    """Counts what happened since what, and says when a promise is broken."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.without_decode = self.decoded = self.groups = self.without_group = 0
        self.largest = 0
        self.since_first: dict[tuple[str, str], int] = {}
        self.others: dict[tuple[str, str], int] = {}
        self.seen: set[tuple[str, str]] = set()

    def arrive(self, work: Question | DocumentReading) -> None:
        question = isinstance(work, Question)
        kind = "question" if question else "document"
        owner = work.owner if isinstance(work, Question) else work.document.owner
        if (kind, owner) not in self.seen:
            self.seen.add((kind, owner))
            self.since_first[kind, owner] = 0
            self.others[kind, owner] = sum(one == kind for one, _ in self.seen) - 1
        if isinstance(work, Question):
            add(self.scheduler, work)
        else:
            self.scheduler.add_reading(work)

    def step(self) -> None:
        running = [one for one in self.scheduler.sequences() if one.prompt_left == 0]
        pending = len(self.scheduler.sequences()) > len(running)
        unread = any(reading._left for reading in self.scheduler.readings())
        batch = step(self.scheduler)
        assert batch is not None or not (running or pending or unread), "idle beside work"

        decode, reading = isinstance(batch, Decode), is_reading(batch)
        question = asker_of(batch)
        self.without_decode = self.without_decode + 1 if running and not decode else 0
        assert self.without_decode <= 1, "an answer waits for two steps"

        if question is not None or not pending:
            self.decoded = self.groups = self.largest = 0
        else:
            self.decoded += len(running) if decode else 0
            self.largest = max(self.largest, len(running))
            self.groups += reading
        beside = self.largest if self.groups else 0
        assert self.decoded <= max(DECODE_BURST, self.largest) + beside
        assert self.groups <= 1, "a question waits for two groups"

        self.without_group = self.without_group + 1 if unread and not reading else 0
        assert self.without_group <= READING_TURN + 1, "reading starves"

        for kind, served in (("question", question), ("document", reading and batch)):
            if not served:
                continue
            owner = question.owner if question else cast("Any", batch).reading.document.owner
            self.since_first.pop((kind, owner), None)
            for waits in [key for key in self.since_first if key[0] == kind]:
                self.since_first[waits] += 1
                assert self.since_first[waits] <= self.others[waits], "others' work goes first"


@settings(max_examples=150, deadline=None, derandomize=True)
@given(ARRIVALS)
def test_nobody_waits_longer_than_promised(
    arrivals: list[tuple[int, Question | DocumentReading]],
) -> None:
    scheduler = Scheduler(CHUNK)
    watch = Watch(scheduler)
    work = Counter(answers=0)
    for gap, arrival in arrivals:
        for _ in range(gap):
            watch.step()
        watch.arrive(arrival)
        if isinstance(arrival, Question):
            work["steps"] += arrival.left + arrival.missing + -(-arrival.prompt_left // CHUNK)
        else:
            work["steps"] += len(arrival.keys)
    for _ in range(work["steps"]):
        watch.step()
    assert step(scheduler) is None and scheduler.idle, "everything is done at some time"
