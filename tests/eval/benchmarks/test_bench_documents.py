"""Documents that share no block, of the wanted length."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eval.benchmarks.documents import (
    SALTED_STRETCH,
    Source,
    document_salt,
    load_source,
    parse_length,
    parse_lengths,
    repeated_blocks,
    unique_document,
)
from eval.errors import DatasetError, EvalError

_WORD = re.compile(r"\w+|[^\w\s]")


def count(text: str) -> int:
    """A token a word or sign."""
    return len(_WORD.findall(text))


def ids(text: str) -> list[str]:
    return _WORD.findall(text)


@pytest.fixture(scope="module")
def source() -> Source:
    return load_source([], count)


@given(tokens=st.integers(200, 3000), seed=st.integers(0, 10**9))
def test_a_document_has_the_wanted_length(source: Source, tokens: int, seed: int) -> None:
    text = unique_document(tokens, seed=seed, source=source, count=count)
    assert tokens - SALTED_STRETCH < count(text) <= tokens
    assert text == unique_document(tokens, seed=seed, source=source, count=count)


def test_no_block_of_one_document_stands_in_another_or_twice(source: Source) -> None:
    texts = [unique_document(4096, seed=seed, source=source, count=count) for seed in range(12)]
    tokens = [ids(text) for text in texts]
    numbers = {word: place for place, word in enumerate({w for words in tokens for w in words})}
    documents = [[numbers[word] for word in words] for words in tokens]
    # The smallest block there is, from every place at which blocks could begin.
    for shift in range(0, SALTED_STRETCH, 7):
        assert repeated_blocks([words[shift:] for words in documents], SALTED_STRETCH) == 0
    for text, seed in zip(texts, range(12), strict=True):
        words = ids(text)
        salt = document_salt(seed)
        for start in range(0, len(words) - SALTED_STRETCH, SALTED_STRETCH):
            assert salt in words[start : start + SALTED_STRETCH]


def test_repeated_blocks_are_counted() -> None:
    block = list(range(64))
    assert repeated_blocks([block + block, block], 64) == 2
    assert repeated_blocks([block, list(range(1, 65))], 64) == 0


def test_planted_sentences_stand_spread_in_the_text(source: Source) -> None:
    planted = [f"The fee for lot {name} is EUR 5." for name in ("A", "B", "C")]
    text = unique_document(2000, seed=3, source=source, count=count, planted=planted)
    places = [text.index(sentence) / len(text) for sentence in planted]
    assert places == pytest.approx([0.25, 0.5, 0.75], abs=0.06)


def test_no_room_for_what_is_planted(source: Source) -> None:
    with pytest.raises(EvalError, match="too short"):
        unique_document(64, seed=1, source=source, count=count, planted=["word " * 40])


def test_own_files_are_used_and_wordless_ones_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.txt"
    file.write_text("The quick zebra signs. The slow camel pays.", encoding="utf-8")
    text = unique_document(200, seed=1, source=load_source([file], count), count=count)
    assert "quick zebra" in text and "slow camel" in text
    file.write_text("1234 5678 …", encoding="utf-8")
    with pytest.raises(DatasetError, match="no sentence"):
        load_source([file], count)
    with pytest.raises(DatasetError, match="missing.txt"):
        load_source([tmp_path / "missing.txt"], count)


def test_chinese_text_is_cut_into_short_pieces(tmp_path: Path) -> None:
    def characters(text: str) -> int:
        return sum(not sign.isspace() for sign in text)

    file = tmp_path / "zh.txt"
    file.write_text(
        "乙方应当在收到货物后三十日内支付全部价款并承担相应的违约责任，" * 9 + "。", "utf-8"
    )
    source = load_source([file], characters)
    assert max(tokens for sentence in source.sentences for _, tokens in sentence) <= 36
    assert characters(unique_document(500, seed=1, source=source, count=characters)) <= 500


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("1K,512, 4k", (512, 1024, 4096)),
        ("4K-32K", (4096, 8192, 16384, 32768)),
        ("4K-20K", (4096, 8192, 16384, 20480)),
        ("1M", (1048576,)),
    ],
)
def test_lengths_are_read(text: str, lengths: tuple[int, ...]) -> None:
    assert parse_lengths(text) == lengths


@pytest.mark.parametrize("text", ["", "K", "4G", "-1", "0", "8K-4K", "1.5K", "4K,,8K"])
def test_senseless_lengths_are_refused(text: str) -> None:
    with pytest.raises(EvalError):
        parse_lengths(text)


def test_the_length_is_that_of_the_letter() -> None:
    assert (parse_length("64k"), parse_length("77")) == (65536, 77)
