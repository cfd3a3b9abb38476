"""The alignment of words: nothing lost, order kept, whatever the texts."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.clauses import outline
from retrieval.compare.alignment import align
from retrieval.compare.types import Version
from retrieval.compare.words import Words, read_words
from retrieval.types import DocumentPage

_SENTENCES = st.lists(
    st.sampled_from(
        [
            "The Supplier shall deliver the goods.",
            "The Buyer shall pay within thirty days.",
            "1. Term.\n",
            "\n2. Price; delivery.",
            "甲方应于三十日内付款。",
            "No waiver is implied.\n\n",
            "(a) any tax;",
            "USD 1,500,000.00",
            "Page 3 of 9\n",
        ]
    ),
    max_size=25,
).map(" ".join)


def words_of(text: str) -> Words:
    version = Version(text, outline(text), (DocumentPage(1, 0, len(text)),), "en")
    return read_words(version, frozenset())


@settings(deadline=None, max_examples=150)
@given(_SENTENCES, _SENTENCES)
def test_differences_and_equal_words_make_up_both_texts(left: str, right: str) -> None:
    old, new = words_of(left), words_of(right)
    x = y = 0
    for hunk in align(old, new):
        assert hunk.old_size or hunk.new_size
        assert hunk.old_start - x == hunk.new_start - y >= 0
        assert old.norms[x : hunk.old_start] == new.norms[y : hunk.new_start]
        x, y = hunk.old_end, hunk.new_end
    assert old.norms[x:] == new.norms[y:]


@settings(deadline=None, max_examples=50)
@given(_SENTENCES)
def test_nothing_differs_from_itself(text: str) -> None:
    assert align(words_of(text), words_of(text)) == []


def test_an_inserted_sentence_stands_between_sentences() -> None:
    old = "The Buyer shall pay. The Buyer shall collect."
    new = "The Buyer shall pay. The Buyer shall inspect. The Buyer shall collect."
    words = words_of(new)
    (hunk,) = align(words_of(old), words)
    assert words.norms[hunk.new_start : hunk.new_end] == ["the", "buyer", "shall", "inspect", "."]


def test_every_character_that_says_something_is_a_word_or_stands_beside_one() -> None:
    text = "1. Fee – USD 5.50 (five); 10%\n“Net” price: -3 °C, 5×2 = 10…\n第一条 甲方付款。"
    words = words_of(text)
    covered = {at for a, b in zip(words.starts, words.ends, strict=True) for at in range(a, b)}
    covered |= {
        at for marks in words.marks.values() for mark in marks for at in range(mark.start, mark.end)
    }
    left = {text[at] for at in range(len(text)) if at not in covered}
    assert left <= set(" \n–“”…")
