"""Citation markers: resolved or removed, never renumbered."""

from __future__ import annotations

import logging

import pytest

from app.answer.citations import resolve_markers, without_markers


@pytest.mark.parametrize(
    ("text", "resolved"),
    [
        ("It is due [1].", "It is due [1]."),
        ("It is due [7].", "It is due."),
        ("It is due [2] [0] 【3】.", "It is due [2] [3]."),
        ("It is due [1,2,9].", "It is due [1] [2]."),
        ("应付【1】。", "应付 [1]。"),
        ("as amended [2024]", "as amended [2024]"),
        ("the sum of [●]", "the sum of [●]"),
        ("see [12]", "see [12]"),
    ],
)
def test_markers(text: str, resolved: str) -> None:
    assert resolve_markers(text, 3, ["a blank [12] of the contract"]) == resolved


def test_a_removed_marker_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        resolve_markers("It is due [7].", 3, [])
    assert "[7]" in caplog.text


def test_without_markers_keeps_offsets() -> None:
    text = "due [1] on 2 May [44]"
    masked = without_markers(text, 3)
    assert len(masked) == len(text)
    assert masked == "due     on 2 May [44]"
