"""How many quotes are shown."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval.showing import MOST, shown
from retrieval.types import Chunk, Sentence

CHUNK = Chunk(0, 0, 100, None, "", 1, 1)


def sentences(*likely: float | None, score: float = 1.0) -> list[Sentence]:
    return [Sentence(at, at + 1, CHUNK, score, one) for at, one in enumerate(likely)]


def test_a_sure_quote_stands_alone() -> None:
    assert len(shown(sentences(0.97, 0.9, 0.9))) == 1


def test_open_question_shows_more_until_it_is_settled() -> None:
    assert len(shown(sentences(0.6, 0.6, 0.8, 0.6, 0.6))) == 3
    assert len(shown(sentences(0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3))) == MOST


def test_near_zero_ones_do_not_pad() -> None:
    assert len(shown(sentences(0.5, 0.01, 0.01))) == 1
    assert len(shown(sentences(0.01, 0.01))) == 1


def test_without_likelihood_the_close_ones_are_shown() -> None:
    found = [Sentence(at, at + 1, CHUNK, score) for at, score in enumerate((1.0, 0.9, 0.8, 0.8))]
    assert len(shown(found)) == 3
    assert len(shown(found, closeness=0.85)) == 2
    assert len(shown(found, limit=1)) == 1


@given(st.lists(st.floats(0, 1), max_size=9), st.integers(1, 7))
def test_never_none_never_too_many_and_always_a_beginning(values: list[float], limit: int) -> None:
    found = sentences(*sorted(values, reverse=True))
    chosen = shown(found, limit)
    assert list(chosen) == found[: len(chosen)]
    assert min(1, len(found)) <= len(chosen) <= limit


def test_nothing_to_show() -> None:
    assert shown([]) == ()
