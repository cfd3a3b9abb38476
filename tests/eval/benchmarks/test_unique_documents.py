"""Unique documents: salted everywhere, of the wanted length, never alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.errors import BadParameter
from eval.benchmarks.documents import (
    STRETCH,
    load_pieces,
    salt_of,
    sample_files,
    unique_document,
)
from eval.benchmarks.lengths import parse_length, parse_lengths, show_length
from eval.errors import DatasetError


def words(text: str) -> int:
    return len(text.split())


def weight(text: str) -> int:
    return sum(1 if c.isascii() else 4 for c in text)


@pytest.fixture(scope="module")
def pieces() -> tuple[str, ...]:
    return load_pieces(sample_files())


def test_pieces_of_the_samples_are_short_and_in_both_languages(pieces: tuple[str, ...]) -> None:
    assert len(pieces) > 500
    assert len(set(pieces)) == len(pieces)
    assert max(map(weight, pieces)) <= STRETCH
    text = "".join(pieces)
    assert "Supplier" in text
    assert "合同" in text


@settings(max_examples=30)
@given(data=st.data())
def test_a_salt_stands_in_every_stretch(pieces: tuple[str, ...], data: st.DataObject) -> None:
    seed, tokens = data.draw(st.integers(0, 2**40)), data.draw(st.integers(1, 3000))
    text = unique_document(tokens, seed=seed, count=words, pieces=pieces)
    lines = text.splitlines()
    assert words(text) >= tokens
    # No more than the margin of one in a hundred and one line.
    assert words(text) <= tokens + tokens // 100 + 1 + words(lines[-1])
    for number, line in enumerate(lines, start=1):
        assert line.startswith(f"[{salt_of(seed)}.{number}] ")


def test_two_documents_share_no_line(pieces: tuple[str, ...]) -> None:
    one, two = (unique_document(2000, seed=s, count=words, pieces=pieces) for s in (1, 2))
    lines = [*one.splitlines(), *two.splitlines()]
    assert len(set(lines)) == len(lines)
    assert one == unique_document(2000, seed=1, count=words, pieces=pieces)


def test_a_counter_that_merges_lines_still_gets_its_length() -> None:
    def merging(text: str) -> int:
        # Every line costs three tokens alone and one within a text.
        lines = text.count("\n")
        return 3 if lines == 1 else lines

    text = unique_document(300, seed=5, count=merging, pieces=("a", "b", "c"))
    assert text.count("\n") >= 300


def test_long_sentences_are_cut_without_loss(tmp_path: Path) -> None:
    sentence = " ".join(f"word{i}" for i in range(200))
    (tmp_path / "long.txt").write_text(sentence + ".\n" + "长" * 300 + "。\n", encoding="utf-8")
    found = load_pieces([tmp_path / "long.txt"], stretch=40)
    assert max(map(weight, found)) <= 40
    assert " ".join(found).startswith(" ".join(f"word{i}" for i in range(200)) + ".")
    # Equal pieces count once.
    assert found[-2:] == ("长" * 10, "。")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="nothing.txt"):
        load_pieces([tmp_path / "nothing.txt"])
    with pytest.raises(DatasetError, match="--text"):
        load_pieces([])


def test_lengths_are_read_and_shown() -> None:
    assert parse_lengths("16K, 4k,512") == (512, 4096, 16384)
    assert parse_length("1M") == 1024 * 1024
    assert [show_length(n) for n in (4096, 2**20, 500)] == ["4K", "1M", "500"]
    for wrong in ("", "4G", "-1", "0", "4.5K", "K"):
        with pytest.raises(BadParameter):
            parse_length(wrong)
