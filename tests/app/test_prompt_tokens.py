"""The tokens of prompts that may be far too long: the same as ever, at a bounded cost."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from app.prompt_tokens import LEAST_PIECE, SHORT_CHARS, SURE, encoded_within


class Counting:
    """Tokens of two characters; counts the characters it was given."""

    def __init__(self) -> None:
        self.given = 0

    def encode(self, text: str, special: bool = False) -> list[int]:
        assert special
        self.given += len(text)
        return [ord(character) for character in text[::2]]


@settings(deadline=None)
@given(st.integers(0, 5 * LEAST_PIECE), st.integers(1, 3 * LEAST_PIECE))
def test_a_text_has_its_tokens_or_is_surely_too_long(length: int, limit: int) -> None:
    text = "a" * length
    ids = encoded_within(Counting(), text, limit)
    if ids is None:
        assert (length + 1) // 2 > limit
    else:
        assert ids == Counting().encode(text, special=True)
        assert len(ids) <= max(SURE * limit, LEAST_PIECE, SHORT_CHARS * limit)


def test_megabytes_cost_no_more_than_what_fills_the_window() -> None:
    tokenizer = Counting()
    assert encoded_within(tokenizer, "a" * 15_000_000, 8192) is None
    assert tokenizer.given <= 2 * (SURE + 1) * 8192 + LEAST_PIECE
