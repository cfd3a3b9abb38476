"""Which documents are read side by side: only as far as they fit, and nobody waits for ever."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.batch import ReadBlocks
from backend.reading import DocumentReading
from backend.reading_line import ReadingLine
from backend.scheduler import Scheduler
from backend.sequence import Sequence
from backend.shelf import SHORT_SHARE
from backend.types import DocumentTokens
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape

PAGES = 64
"""Of the pool. One with up to 4 pages is short, long ones have up to 48 side by side."""


class WatchedLine(ReadingLine):
    """Notes what is begun before each owner's oldest document."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead: dict[DocumentReading, list[DocumentReading]] = {}

    def begin(self, reading: DocumentReading) -> None:
        for oldest in self._oldest:
            if oldest is not reading:
                self.ahead.setdefault(oldest, []).append(reading)
        super().begin(reading)


class Library:
    """Scheduler and store together, as the engine has them, without a model. A block is a page."""

    def __init__(self, pages: int = PAGES, *, group: int = 1, first_come: bool = False) -> None:
        self.store = KVStore(KVShape(1, 1, 4), pages, torch.float32)
        self.scheduler = Scheduler(
            512, group * PAGE_TOKENS, self.store.room_for, first_come=first_come
        )
        self.shelf = self.scheduler._shelf
        self.line = self.shelf._line = WatchedLine()

    def know(
        self, key: str, pages: int, owner: str = "", texts: Collection[int] = ()
    ) -> DocumentReading:
        """A document of its own text, but for the first of its blocks, which say `texts`."""
        first = hash_free(key)
        said = [*texts, *range(first, first + pages)][:pages]
        ids = tuple(text for text in said for _ in range(PAGE_TOKENS))
        blocks = tuple((at * PAGE_TOKENS, (at + 1) * PAGE_TOKENS) for at in range(pages))
        document = DocumentTokens(key, ids, blocks, owner=owner)
        reading = DocumentReading(document, "model", "format", self.store)
        self.store.enrol(key, reading.keys)
        return reading

    def give(
        self, key: str, pages: int, owner: str = "", texts: Collection[int] = ()
    ) -> DocumentReading:
        """A document that shall be read."""
        reading = self.know(key, pages, owner, texts)
        reading.want()
        self.scheduler.add_reading(reading)
        return reading

    def step(self, wanted: ReadBlocks | None = None) -> ReadBlocks | None:
        """Read the next group of blocks."""
        batch = cast("ReadBlocks | None", self.scheduler.schedule(wanted))
        if batch is None:
            return None
        for index in batch.indexes:
            self.read_block(batch.reading, index)
        return batch

    def read_block(self, reading: DocumentReading, index: int) -> None:
        key, ids = reading.keys[index], reading.tokens_of(index)
        if self.store.lookup(key, ids) is None:
            self.store.commit(key, ids, self.store.reserve(len(ids)))
            reading.computed_tokens += len(ids)
        reading.passed(index)

    def missing(self, reading: DocumentReading) -> int:
        return len(reading.missing(range(len(reading.keys))))

    @property
    def under_way(self) -> list[str]:
        """Keys of those that take turns."""
        return sorted(one.document.key for one in self.shelf.under_way())

    def read_all(self) -> list[str]:
        """Read everything; the documents in the order in which they ended."""
        ended = []
        while (batch := self.step()) is not None:
            if not batch.reading._left:
                ended.append(batch.reading.document.key)
        return ended


def hash_free(key: str) -> int:
    """A number for a name, far from those of other names."""
    return 1000 * (1 + int.from_bytes(key.encode(), "big") % 999_983)


def test_long_documents_leave_room_to_short_ones() -> None:
    library = Library()
    for number in range(4):
        library.give(f"long{number}", 20)
    library.give("short", 4)
    library.step()
    assert library.under_way == ["long0", "long1", "short"]
    assert library.read_all() == ["short", "long0", "long1", "long2", "long3"]


def test_one_that_needs_the_whole_pool_is_read_alone() -> None:
    library = Library()
    first = library.give("first", 10)
    whole = library.give("whole", PAGES)
    after = library.give("after", 2)
    library.step()
    assert library.under_way == ["after", "first"]
    while library.missing(whole) == PAGES:
        library.step()
    assert not library.missing(first) or library.missing(after) == 0
    late = library.give("late", 1)
    while library.missing(whole):
        assert library.under_way == ["whole"]
        assert library.missing(late) == 1
        library.step()
    assert library.read_all() == ["late"]
    assert library.store.counters.evicted == 10 + 2 + 1


def test_room_is_free_again_when_a_document_is_over() -> None:
    library = Library()
    ends = {}
    for key in ("cancelled", "failed", "dropped", "read"):
        ends[key] = library.give(key, 40)
    library.give("last", 40)
    library.step()
    assert library.under_way == ["cancelled"]
    ends["cancelled"].cancelled = True
    library.step()
    assert library.under_way == ["failed"]
    ends["failed"].error = "no memory"
    library.step()
    assert library.under_way == ["dropped"]
    assert library.scheduler.drop_readings("dropped") == [ends["dropped"]]
    library.step()
    assert library.under_way == ["read"]
    assert library.read_all() == ["read", "last"]
    assert library.scheduler.idle


def test_one_that_is_over_while_it_waits_keeps_nobody() -> None:
    library = Library()
    library.give("first", 40)
    waits = [library.give(key, 60) for key in ("a", "b", "c")]
    library.step()
    waits[0].cancelled = True
    library.scheduler.drop_readings("b")
    waits[2].error = "gone"
    library.step()
    assert library.scheduler.readings() == library.shelf.under_way()
    assert library.read_all() == ["first"]
    assert library.scheduler.idle


def test_a_document_that_is_asked_for_twice_counts_once() -> None:
    library = Library()
    library.give("d", 40)
    library.step()
    again = library.give("d", 40)
    library.give("other", 20)
    library.step()
    assert library.under_way == ["d", "d"]
    library.read_all()
    assert again.progress().status == "done"
    assert library.store.counters.evicted == 0


def test_what_is_pinned_or_held_is_left_alone() -> None:
    library = Library()
    for key in ("pinned", "held"):
        library.give(key, 14)
        library.read_all()
    library.store.pin("pinned", 3600)
    held = library.know("held", 14)
    library.store.hold(held.keys[0])
    # 64 - 14 - 1 pages.
    library.give("a", 30)
    library.give("b", 7)
    library.give("c", 13)
    library.step()
    assert library.under_way == ["a"], "a and b would be more than three quarters of 49"
    library.read_all()
    assert library.store.counters.dropped == {"room": 13 + 1}
    assert library.missing(held) == 13
    library.store.unhold(held.keys[0])


@pytest.mark.parametrize("kept", ["pinned", "held", "nothing"])
def test_what_is_kept_of_a_document_takes_no_room_from_itself(kept: str) -> None:
    library = Library()
    library.give("under way", 8)
    library.step()
    own = library.know("own", 38)
    for index in range(30):
        library.read_block(own, index)
    if kept == "pinned":
        library.store.pin("own", 3600)
    elif kept == "held":
        for key in own.keys[:30]:
            library.store.hold(key)
    # 8 + 38 of 64; with its 30 counted twice they would be 76.
    library.give("own", 38)
    library.step()
    assert library.under_way == ["own", "under way"]


def test_short_ones_pass_one_that_is_due_as_if_its_own_pages_were_free() -> None:
    library = Library()
    library.give("first", 30, owner="a")
    library.step()
    due = library.know("due", 40, owner="b")
    for index in range(30):
        library.read_block(due, index)
    library.store.pin("due", 3600)
    due = library.give("due", 40, owner="b")
    for number in range(80):
        if library.line.is_due(due):
            break
        library.give(f"before{number}", 1, owner="cd"[number % 2])
        library.step()
    assert library.line.is_due(due)
    assert "first" in library.under_way
    library.give("after", 1, owner="e")
    while "due" not in library.under_way:
        library.step()
    assert "after" in [one.document.key for one in library.line.ahead[due]]


@pytest.mark.parametrize("looked", [False, True], ids=["gone before a step", "gone after it"])
def test_a_document_goes_forward_only_whatever_makes_room(looked: bool) -> None:
    library = Library()
    library.give("first", 40)
    waits = library.give("waits", 40)
    other = library.know("other", 40)
    library.step()
    told = [waits.progress().status]
    for index in range(40):
        library.read_block(waits, index)
    told.append(waits.progress().status)
    if looked:
        library.step()
        told.append(waits.progress().status)
        assert told[-1] == "done", "all of it is there"
    for index in range(40):
        library.read_block(other, index)
    assert library.missing(waits)
    while library.step() is not None:
        told.append(waits.progress().status)
    assert told == sorted(told, key=("queued", "reading", "done").index)
    assert told[-1] == "done"
    assert bool(library.missing(waits)) is looked, "what is done is not read again"


def test_a_question_takes_no_page_of_a_document_under_way_while_others_have_some() -> None:
    library = Library()
    library.give("idle", 30)
    library.read_all()
    reading = library.give("reading", 40)
    for _ in range(40 - 6):
        library.step()
    # What is idle was used last, and the pool is full.
    idle = library.know("idle", 30)
    library.store.lookup(idle.keys[20], idle.tokens_of(20))
    assert library.store.pool.free == 0
    asker = cast("Sequence", Asker())
    library.scheduler.add(asker)
    asked = library.know("asked", 5)
    for index in range(5):
        library.step(ReadBlocks(asked, (index,), asker))
    assert library.missing(asked) == 0
    assert library.missing(reading) == len(reading._left)


@dataclass(eq=False)
class Asker:
    """A question that waits for blocks; stands for a Sequence."""

    prompt_left: int = 10
    context: object | None = None
    spent: int = 0
    finished: bool = False
    arrival: int = 0
    request: Any = field(default_factory=lambda: SimpleNamespace(owner="asks"))


def test_the_owner_whose_turn_it_is_has_the_room() -> None:
    library = Library()
    for number in range(6):
        library.give(f"many{number}", 30, owner="many")
    for _ in range(10):
        library.step()
    library.give("one", 40, owner="one")
    assert library.read_all() == ["many0", "one", *(f"many{number}" for number in range(1, 6))]


@pytest.mark.parametrize("owner", ["same", "other", "new"])
@pytest.mark.parametrize("size", [3, 10])
def test_a_long_document_does_not_wait_for_ever(owner: str, size: int) -> None:
    library = Library()
    library.give("first", size, owner="same")
    library.step()
    whole = library.give("whole", PAGES, owner="same")
    begun = 0
    while library.missing(whole) == PAGES:
        for _ in range(2):
            name = f"{owner}{begun}" if owner == "new" else owner
            library.give(f"d{begun}", size, owner=name)
            begun += 1
        library.step()
        assert begun < 3 * PAGES
    ahead = library.line.ahead[whole]
    assert sum(one.pages for one in ahead[:-1]) < PAGES, "as many pages as it has, and one more"


def test_short_ones_go_on_beside_long_ones_while_a_long_one_is_due() -> None:
    library = Library()
    first = library.give("first", 40, owner="a")
    due = library.give("due", 40, owner="b")
    for number in range(14):
        library.give(f"s{number}", 3, owner="c")
    library.give("large", 10, owner="c")
    for _ in range(200):
        if library.missing(due) < 40:
            break
        library.step()
    ahead = [one.document.key for one in library.line.ahead[due]]
    assert ahead == ["first", *(f"s{number}" for number in range(14))]
    assert first.progress().status == "done"


def test_a_short_one_that_is_due_is_passed_by_nobody() -> None:
    library = Library(32)
    library.give("first", 29, owner="a")
    library.give("two", 2, owner="b")
    due = library.give("due", 2, owner="b")
    library.step()
    assert library.under_way == ["first", "two"]
    for number in range(3):
        library.give(f"one{number}", 1, owner="c")
    library.read_all()
    assert [one.document.key for one in library.line.ahead[due]] == ["one0", "one1"]


def test_what_is_there_is_not_read_and_closes_the_line_to_nobody() -> None:
    library = Library()
    ready = library.give("ready", 10, owner="a")
    library.read_all()
    library.store.pin("ready", 3600)
    library.give("long", 31, owner="a")
    library.step()
    # It doesn't fit, is its owner's oldest and is passed over by more than it has.
    again = library.give("ready", 10, owner="a")
    for number in range(3):
        library.give(f"b{number}", 9, owner="b")
    assert library.read_all() == ["b0", "b1", "b2", "long"]
    assert again.progress().status == "done"
    assert (again.computed_tokens, ready.computed_tokens) == (0, 10 * PAGE_TOKENS)


def test_first_come_reads_one_after_the_other() -> None:
    library = Library(first_come=True)
    for number, owner in enumerate("aba"):
        library.give(f"d{number}", 5, owner=owner)
    library.step()
    assert library.under_way == ["d0"]
    assert library.read_all() == ["d0", "d1", "d2"]


# What is promised, over random documents

OWNERS = "abc"
KEYS = st.integers(0, 15)
GIVEN = st.tuples(
    st.just("give"),
    st.one_of(st.integers(1, 6), st.integers(1, PAGES)),
    st.sampled_from(OWNERS),
    st.lists(st.integers(1, 20), max_size=8),
)
ASKED = st.tuples(st.just("ask"), KEYS, st.integers(0, PAGES))
USED = st.tuples(st.just("use"), KEYS)
ENDED = st.tuples(st.sampled_from(["cancel", "fail", "drop", "again"]), KEYS)
MOVES = st.lists(
    st.tuples(st.integers(0, 12), st.one_of(GIVEN, GIVEN, ASKED, USED, ENDED)),
    min_size=2, max_size=40,
)  # fmt: skip


class Watch:
    """Reads what is given and says when a promise is broken."""

    def __init__(self, group: int) -> None:
        self.library = Library(group=group)
        self.given: list[DocumentReading] = []
        self.dropped: set[str] = set()

    def move(self, name: str, *what: Any) -> None:
        library = self.library
        if name == "give":
            pages, owner, texts = what
            self.given.append(library.give(f"d{len(self.given)}", pages, owner, texts))
            return
        if not self.given:
            return
        reading = self.given[what[0] % len(self.given)]
        index = what[1] % len(reading.keys) if name == "ask" else 0
        if name == "ask":
            # Whatever it pushes out: it comes before all reading.
            library.read_block(reading, index)
        elif name == "use":
            library.store.lookup(reading.keys[0], reading.tokens_of(0))
        elif name == "cancel":
            reading.cancelled = True
        elif name == "fail":
            reading.error = "failed"
        elif name == "drop":
            library.scheduler.drop_readings(reading.document.key)
            self.dropped.add(reading.document.key)
        else:
            second = DocumentReading(reading.document, "model", "format", library.store)
            second.want()
            library.scheduler.add_reading(second)
            self.given.append(second)

    def step(self) -> bool:
        before = self.library.store._blocks.keys() | set()
        reads = self.library.step() is not None
        gone = before - self.library.store._blocks.keys()
        for reading in self.library.shelf.under_way():
            assert not gone.intersection(reading.keys), "a reading took a page of another"
        return reads

    def check_line(self) -> None:
        short = PAGES * SHORT_SHARE
        for waited, ahead in self.library.line.ahead.items():
            pages, due = 0, len(ahead)
            for place, one in enumerate(ahead):
                if pages >= waited.pages:
                    due = place
                    break
                pages += one.pages
            beside = [one for one in ahead[due:] if not one.pages <= short < waited.pages]
            assert len(beside) <= len(OWNERS) - 1, "one that was due was passed over"


@settings(max_examples=200, deadline=None, derandomize=True)
@given(MOVES, st.integers(1, 20))
def test_any_mix_is_read_and_no_reading_takes_anothers_pages(
    moves: list[tuple[int, tuple[Any, ...]]], group: int
) -> None:
    watch = Watch(group)
    for gap, move in moves:
        watch.move(*move)
        for _ in range(gap):
            watch.step()
    most = sum(len(one.keys) for one in watch.given)
    while watch.step():
        most -= 1
        assert most >= 0, "a block is read twice"
    assert watch.library.scheduler.idle
    watch.check_line()
    for reading in watch.given:
        ended = reading.cancelled or reading.error or reading.document.key in watch.dropped
        assert ended or reading.progress().status == "done"
    watch.library.store.check_integrity()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(GIVEN, min_size=2, max_size=20), st.integers(1, 20))
def test_without_questions_a_document_ends_without_holes(
    documents: list[tuple[Any, ...]], group: int
) -> None:
    watch = Watch(group)
    for document in documents:
        watch.move(*document)
    while (batch := watch.library.step()) is not None:
        if not batch.reading._left:
            assert watch.library.missing(batch.reading) == 0
