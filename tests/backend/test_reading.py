"""Where tokens stand in a document's blocks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from backend.reading import DocumentReading
from backend.types import DocumentTokens
from kvstore.store import KVStore
from kvstore.types import PAGE_TOKENS, KVShape


def make_reading(lengths: list[int], *, chained: bool = False) -> DocumentReading:
    ends = [sum(lengths[: index + 1]) for index in range(len(lengths))]
    blocks = tuple(zip([0, *ends[:-1]], ends, strict=True))
    anchors = tuple((first,) for first, _ in blocks) if chained else ()
    document = DocumentTokens("d", tuple(range(ends[-1])), blocks, anchors=anchors)
    store = KVStore(KVShape(1, 1, 4), 8, torch.float32)
    return DocumentReading(document, "model", "format", store)


LENGTHS = st.lists(st.integers(1, 200), min_size=1, max_size=6)


@given(LENGTHS, st.integers(-5, 1300), st.integers(1, 1300))
def test_blocks_of_a_range(lengths: list[int], first: int, size: int) -> None:
    reading = make_reading(lengths)
    expected = [
        index
        for index, (start, end) in enumerate(reading.document.blocks)
        if start < first + size and first < end
    ]
    assert reading.blocks_of(first, first + size) == expected


@given(LENGTHS)
def test_every_position_has_its_place(lengths: list[int]) -> None:
    reading = make_reading(lengths)
    places = [reading.locate(position) for position in range(sum(lengths))]
    assert places == [
        (block, token // PAGE_TOKENS, token % PAGE_TOKENS)
        for block, length in enumerate(lengths)
        for token in range(length)
    ]
    for outside in (-1, sum(lengths)):
        with pytest.raises(ValueError, match="outside"):
            reading.locate(outside)


def put(reading: DocumentReading, index: int) -> None:
    ids = reading.tokens_of(index)
    store = reading._store
    store.commit(reading.keys[index], ids, store.reserve(len(ids)))
    reading.passed(index)


def test_what_was_read_for_a_question_and_is_gone_is_read_in_its_turn() -> None:
    reading = make_reading([64] * 4)
    reading.want()
    put(reading, 2)
    reading._store.forget(reading.keys[2])
    reading.begun = True
    assert reading.next_left(4 * 64) == (0, 1, 2, 3)
    put(reading, 0)
    put(reading, 3)
    reading._store.forget(reading.keys[0])
    assert reading.next_left(4 * 64) == (1, 2), "once it was its turn a block is read once"


def test_blocks_that_a_chained_one_sees_come_before_it_again() -> None:
    reading = make_reading([64] * 4, chained=True)
    reading.want()
    reading.begun = True
    for index in range(3):
        put(reading, index)
    for index in range(2):
        reading._store.forget(reading.keys[index])
    assert reading.next_left(4 * 64) == (0, 1)
    put(reading, 0)
    put(reading, 1)
    assert reading.next_left(4 * 64) == (3,)
    put(reading, 3)
    assert reading.nothing_left() and reading.next_left(64) == ()


def test_done_comes_with_all_tokens_though_the_last_block_is_read_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reading = make_reading([64] * 4)
    reading.want()
    reading.begun = True
    for index in range(3):
        put(reading, index)
    available = reading._store.available

    def look(key: bytes) -> bool:
        found = available(key)
        if key == reading.keys[3] and not found:
            put(reading, 3)
        return found

    monkeypatch.setattr(reading._store, "available", look)
    told = [reading.progress(), reading.progress()]
    assert [(one.status, one.read_tokens) for one in told] == [("reading", 192), ("done", 256)]


@given(LENGTHS)
def test_pages_are_those_of_all_blocks(lengths: list[int]) -> None:
    assert make_reading(lengths).pages == sum(-(-length // PAGE_TOKENS) for length in lengths)
