from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.tokenizer import Tokenizer
from eval.errors import DatasetError
from eval.tasks.haystack import Text, Window, window


def stub(text: str) -> Window:
    """A window in which each character is a token."""
    return Window(text, np.arange(len(text), dtype=np.int32), ("t",), 1)


@given(
    text=st.text("ab .。;\n ", min_size=1, max_size=300),
    token=st.integers(-5, 320),
    reach=st.integers(0, 40),
)
def test_a_border_is_near_and_keeps_order(text: str, token: int, reach: int) -> None:
    at = stub(text).border(token, reach)
    wanted = min(max(token, 0), len(text) - 1)
    assert abs(at - wanted) <= reach


@given(text=st.text("ab.\n", min_size=1, max_size=300), tokens=st.integers(1, 400))
def test_a_cut_is_the_beginning(text: str, tokens: int) -> None:
    cut = stub(text).cut(tokens)
    assert text.startswith(cut.text)
    assert len(cut.starts) == len(cut.text)
    assert abs(len(cut.text) - min(tokens, len(text))) <= tokens // 200


def test_paragraphs_are_preferred_to_lines_and_lines_to_sentences() -> None:
    text = "One. Two\nthree.\n\n  Four"
    assert stub(text).border(8, 20) == text.index("  Four")
    assert stub(text[:14]).border(5, 20) == text.index("three")
    assert stub(text[:8]).border(5, 20) == text.index("Two")
    assert stub("abcdef").border(3, 20) == 3
    assert stub(text).place(0) == 0
    assert stub(text).place(1) == len(text)


@settings(max_examples=25, deadline=None)
@given(tokens=st.integers(50, 4000), seed=st.integers(0, 99))
def test_a_window_holds_enough_and_counts_right(
    contracts: list[Text], tokens: int, seed: int
) -> None:
    found = window(contracts, tokens, random.Random(seed), repeat=False)
    assert len(found.starts) >= tokens
    assert found.rounds == 1
    assert found.starts[0] >= 0
    assert int(found.starts[-1]) < len(found.text)
    assert bool((np.diff(found.starts) >= 0).all())
    known = [text.text for text in contracts]
    assert any(found.text[:40].strip() in text for text in known)


def test_used_up_texts_are_an_error_or_repeated(tokenizer: Tokenizer) -> None:
    texts = [Text(name, f"{name} pays five per cent.\n" * 20, "en", tokenizer) for name in "ab"]
    held = sum(len(text.starts) for text in texts)
    with pytest.raises(DatasetError, match=rf"hold {held:,} tokens .* {held + 1:,} are wanted"):
        window(texts, held + 1, random.Random(0), repeat=False)
    repeated = window(texts, 2 * held + 1, random.Random(0), repeat=True)
    assert repeated.rounds == 3
    assert len(repeated.starts) > 2 * held
