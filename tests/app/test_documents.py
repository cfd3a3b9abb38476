"""Geometry: what is stored comes back, and characters become one rectangle per line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.documents import BOX_SCALE, merge_lines
from app.errors import Corrupted
from app.geometry import NAME, load_boxes, save_boxes
from retrieval.types import Box, Document, DocumentPage


def box(x0: float, y0: float, x1: float, y1: float) -> list[int]:
    return [round(value * BOX_SCALE) for value in (x0, y0, x1, y1)]


NOWHERE = [BOX_SCALE, BOX_SCALE, 0, 0]


def merged(*boxes: list[int]) -> list[tuple[float, ...]]:
    found = merge_lines(7, np.asarray(boxes, dtype=np.uint16).reshape(-1, 4))
    assert all(item.page == 7 for item in found)
    return [
        tuple(round(value, 3) for value in (item.x0, item.y0, item.x1, item.y1)) for item in found
    ]


def test_one_rectangle_a_line() -> None:
    first = [box(0.1 + 0.02 * n, 0.1, 0.12 + 0.02 * n, 0.12) for n in range(10)]
    second = [box(0.1 + 0.02 * n, 0.13, 0.12 + 0.02 * n, 0.15) for n in range(5)]
    assert merged(*first, NOWHERE, *second) == [(0.1, 0.1, 0.3, 0.12), (0.1, 0.13, 0.2, 0.15)]


def test_raised_and_small_characters_stay_in_their_line() -> None:
    assert merged(box(0.1, 0.1, 0.2, 0.12), box(0.2, 0.095, 0.21, 0.108)) == [
        (0.1, 0.095, 0.21, 0.12)
    ]


def test_the_next_column_and_the_next_cell_begin_anew() -> None:
    left, right = box(0.1, 0.1, 0.2, 0.12), box(0.6, 0.1, 0.7, 0.12)
    assert len(merged(left, right)) == 2
    assert len(merged(right, left)) == 2


def test_nothing_to_mark() -> None:
    assert merged() == []
    assert merged(NOWHERE, box(0.2, 0.1, 0.2, 0.1)) == []


SIDES = st.lists(st.integers(0, BOX_SCALE), min_size=2, max_size=2, unique=True).map(sorted)


@given(
    st.lists(
        st.tuples(SIDES, SIDES).map(lambda sides: (*(s[0] for s in sides), *(s[1] for s in sides))),
        max_size=30,
    )
)
def test_every_character_is_covered(boxes: list[tuple[int, int, int, int]]) -> None:
    lines = merge_lines(1, np.asarray(boxes, dtype=np.uint16).reshape(-1, 4))
    for x0, y0, x1, y1 in boxes:
        assert any(
            line.x0 * BOX_SCALE <= x0 + 0.5
            and line.y0 * BOX_SCALE <= y0 + 0.5
            and line.x1 * BOX_SCALE >= x1 - 0.5
            and line.y1 * BOX_SCALE >= y1 - 0.5
            for line in lines
        )


def document(char_boxes: dict[int, tuple[Box | None, ...]]) -> Document:
    return Document(
        text="ab\ncd",
        pages=(DocumentPage(1, 0, 2), DocumentPage(2, 3, 5)),
        name="x.pdf",
        media_type="application/pdf",
        language="en",
        char_boxes=char_boxes,
    )


def test_stored_and_loaded(tmp_path: Path) -> None:
    given_boxes: dict[int, tuple[Box | None, ...]] = {
        1: ((0.1, 0.2, 0.3, 0.4), None),
        2: ((-0.01, 0.5, 1.02, 0.75), (0.25, 0.25, 0.5, 0.5)),
    }
    assert save_boxes(tmp_path, document(given_boxes))
    boxes = load_boxes(tmp_path)
    assert boxes.shape == (5, 4)
    assert boxes[0] / BOX_SCALE == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=1e-5)
    assert boxes[1].tolist() == NOWHERE and boxes[2].tolist() == NOWHERE
    assert boxes[3] / BOX_SCALE == pytest.approx([0, 0.5, 1, 0.75], abs=1e-5)
    assert boxes[4] / BOX_SCALE == pytest.approx([0.25, 0.25, 0.5, 0.5], abs=1e-5)


def test_no_geometry_no_file(tmp_path: Path) -> None:
    assert not save_boxes(tmp_path, document({}))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04", b"text"])
def test_damage_is_named(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    with pytest.raises(Corrupted, match="upload it again"):
        load_boxes(tmp_path)
