"""Streams of tokens become text without broken characters."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backend.detokenizer import IncrementalDecoder
from backend.loader import load_checkpoint
from backend.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(tiny_llama: Path) -> Tokenizer:
    return load_checkpoint(tiny_llama).tokenizer


def stream(tokenizer: Tokenizer, ids: list[int]) -> list[str]:
    decoder = IncrementalDecoder(tokenizer)
    return [*map(decoder.push, ids), decoder.flush()]


@given(text=st.text(max_size=60))
@settings(deadline=None)
def test_pieces_join_to_the_text_and_hold_whole_characters(tokenizer: Tokenizer, text: str) -> None:
    pieces = stream(tokenizer, tokenizer.encode(text))
    assert "".join(pieces) == text
    assert all("\ufffd" not in piece for piece in pieces) or "\ufffd" in text


@given(data=st.data())
@settings(deadline=None, max_examples=300)
def test_any_tokens_stream_to_their_full_decode(tokenizer: Tokenizer, data: st.DataObject) -> None:
    ids = data.draw(st.lists(st.integers(0, tokenizer.vocab_size - 1), max_size=30))
    assert "".join(stream(tokenizer, ids)) == tokenizer.decode(ids)


def test_a_character_waits_for_its_last_token(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("🎉")
    assert len(ids) == 4
    assert stream(tokenizer, ids) == ["", "", "", "🎉", ""]


def test_a_cut_character_is_marked_at_the_end(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("a🎉")[:-1]
    assert "".join(stream(tokenizer, ids)) == "a\ufffd" == tokenizer.decode(ids)


def test_control_tokens_give_no_text(tokenizer: Tokenizer) -> None:
    ids = [*tokenizer.encode("货"), tokenizer.control_ids["<|im_end|>"]]
    assert "".join(stream(tokenizer, ids)) == "货"


def test_flush_starts_a_new_stream(tokenizer: Tokenizer) -> None:
    decoder = IncrementalDecoder(tokenizer)
    decoder.push(tokenizer.encode("🎉")[0])
    assert decoder.flush() == "\ufffd"
    assert "".join(map(decoder.push, tokenizer.encode("合同"))) == "合同"
