"""Stop strings across the borders of pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backend.errors import InvalidSampling
from backend.stop import StopMatcher

_TEXT = st.text(alphabet="ab\n合", max_size=24)
_STOPS = st.lists(st.text(alphabet="ab\n合", min_size=1, max_size=5), max_size=4)


def run(stops: list[str], pieces: list[str]) -> tuple[str, bool]:
    matcher, out = StopMatcher(stops), ""
    for piece in pieces:
        safe, stopped = matcher.push(piece)
        out += safe
        if stopped:
            return out + matcher.flush(), True
    return out + matcher.flush(), False


def expected(stops: list[str], text: str) -> tuple[str, bool]:
    for end in range(1, len(text) + 1):
        endings = [stop for stop in stops if text[:end].endswith(stop)]
        if endings:
            return text[: end - len(max(endings, key=len))], True
    return text, False


@given(text=_TEXT, stops=_STOPS, data=st.data())
def test_result_does_not_depend_on_the_pieces(
    text: str, stops: list[str], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    edges = [0, *cuts, len(text)]
    pieces = [text[a:b] for a, b in zip(edges, edges[1:], strict=False)]
    assert run(stops, pieces) == expected(stops, text)


@given(text=_TEXT, stops=_STOPS)
def test_no_more_is_held_back_than_needed(text: str, stops: list[str]) -> None:
    matcher, out = StopMatcher(stops), ""
    for end, character in enumerate(text, start=1):
        safe, stopped = matcher.push(character)
        out += safe
        if stopped:
            return
        held = text[len(out) : end]
        assert held == "" or any(stop.startswith(held) and stop != held for stop in stops)


def test_stop_split_over_three_pieces() -> None:
    assert run(["\n\nQ:"], ["Yes.", "\n", "\n", "Q:", " next"]) == ("Yes.", True)


def test_nothing_is_given_out_after_a_stop() -> None:
    matcher = StopMatcher(["."])
    assert matcher.push("One. Two") == ("One", True)
    assert matcher.push(" three") == ("", True)
    assert matcher.flush() == ""


def test_empty_stop_string_is_refused() -> None:
    with pytest.raises(InvalidSampling, match="empty"):
        StopMatcher(["", "x"])
