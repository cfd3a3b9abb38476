"""Stored documents found in long prompts: exact but for blanks, the longest, each owner's own."""

from __future__ import annotations

import io
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import stored_texts
from app.stored_texts import HEAD, SHORTEST, StoredText, StoredTexts

WORDS = (
    "the Supplier",
    "甲方应当",
    "shall deliver",
    "within 30 days",
    "EUR 1,000.00",
    "……",
    "12.3(b)",
)


def contract(seed: int, words: int = 600) -> str:
    chosen = random.Random(seed).choices(WORDS, k=words)
    return f"Contract {seed}\n\n" + " ".join(
        f"{word} {number}" for number, word in enumerate(chosen)
    )


def placed(prompt: str, *texts: str) -> tuple[int, int] | None:
    """Which of the texts stands where in the prompt: its number and the place of its beginning."""
    known = [stored_texts._signature(str(number), text) for number, text in enumerate(texts)]
    codes, places = stored_texts._visible(prompt)
    found = stored_texts._longest(codes, [one for one in known if one is not None])
    return None if found is None else (int(found[0].document_id), int(places[found[1]]))


@given(
    st.text(max_size=300), st.text(max_size=300), st.sampled_from((" ", "\r\n", "\n\n", "\u00a0"))
)
@settings(max_examples=40, deadline=None)
def test_a_text_is_found_wherever_it_stands_and_however_it_is_wrapped(
    before: str, after: str, blank: str
) -> None:
    text = contract(1)
    assert placed(before + text.replace(" ", blank) + after, text) == (0, len(before))


@given(st.integers(min_value=0, max_value=len(contract(2)) - 1))
@settings(max_examples=40, deadline=None)
def test_one_other_letter_anywhere_is_another_text(place: int) -> None:
    text = contract(2)
    changed = text[:place] + "#" + text[place + 1 :]
    assert placed(changed, text) is None


def test_hashes_of_runs_are_those_of_the_runs() -> None:
    codes, _ = stored_texts._visible(contract(3))
    hashes = stored_texts._hashes(codes)
    assert len(hashes) == len(codes) - HEAD + 1
    for place in (0, 1, 63, 64, 1000, len(hashes) - 1):
        assert stored_texts._hashes(codes[place : place + HEAD])[0] == hashes[place]


def test_the_longest_text_wins_and_pieces_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    short = contract(4)
    long = short + " and more " + contract(5)
    assert placed("Read: " + long, short, long) == (1, 6)
    assert placed("Read: " + short + " and less", short, long) == (0, 6)
    # The same where the prompt is looked through in pieces that cut the beginning.
    monkeypatch.setattr(stored_texts, "_STEP", 100)
    for size in range(60, 130):
        assert placed("x" * size + " " + short, short, long) == (0, size + 1)


def test_a_beginning_that_never_ends_is_not_followed_for_ever() -> None:
    dots = "." * SHORTEST
    assert placed("." * 20_000 + "x", dots + "y", dots) == (1, 0)
    assert placed("." * 20_000, dots + "y") is None


@pytest.fixture
def add(start: Callable[..., Any]) -> Callable[..., Any]:
    """add(text, name, owner) -> the document's id, and `add.texts` over the same database."""
    services = start()
    texts = StoredTexts(services.database)

    def stored(text: str, name: str, owner: str = "local") -> str:
        record, _ = services.library.add(io.BytesIO(text.encode()), name, owner=owner)
        assert services.library.wait(record.id, timeout=60).status == "completed"
        return str(record.id)

    stored.texts = texts  # type: ignore[attr-defined]
    stored.library = services.library  # type: ignore[attr-defined]
    return stored


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_each_owner_finds_their_own_documents_while_they_are_stored(add: Any) -> None:
    text = contract(6)
    prompt = f"Answer from this contract.\r\n\r\n{text.replace(' ', chr(10))}\n\nWhat is due?"
    assert add.texts.find(prompt, "local") is None
    mine, theirs = add(text, "a.txt"), add(text, "b.txt", "other")
    start = prompt.index("Contract\n6")
    end = prompt.index("\n\nWhat")
    assert add.texts.find(prompt, "local") == StoredText(mine, start, end)
    assert add.texts.find(prompt, "other") == StoredText(theirs, start, end)
    assert add.texts.find(prompt, "third") is None
    assert add.texts.find(prompt[:-400], "local") is None
    add.library.delete(mine)
    assert add.texts.find(prompt, "local") is None


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_short_documents_are_left_in_the_prompt(add: Any) -> None:
    text = contract(7, words=20)
    add(text, "short.txt")
    assert add.texts.find(text * 40, "local") is None
