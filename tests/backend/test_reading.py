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


def make_reading(lengths: list[int]) -> DocumentReading:
    ends = [sum(lengths[: index + 1]) for index in range(len(lengths))]
    blocks = tuple(zip([0, *ends[:-1]], ends, strict=True))
    document = DocumentTokens("d", tuple(range(ends[-1])), blocks)
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
