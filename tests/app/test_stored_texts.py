"""Stored documents found in long prompts: exact but for blanks, the longest, each owner's own."""

from __future__ import annotations

import contextlib
import io
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app import stored_texts
from app.records import text_of
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


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_another_owners_prompt_waits_for_no_text_that_is_read_or_hashed(
    add: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = add(contract(8), "a.txt", "slow")
    theirs = add(contract(9), "b.txt", "quick")
    reached, go_on = threading.Event(), threading.Event()
    signature, database = stored_texts._signature, add.texts._database
    open_sessions = []
    read = database.read

    @contextlib.contextmanager
    def counted() -> Iterator[Any]:
        with read() as session:
            open_sessions.append(threading.current_thread())
            try:
                yield session
            finally:
                open_sessions.remove(threading.current_thread())

    def held(document_id: str, text: str) -> Any:
        if document_id == mine:
            reached.set()
            assert threading.current_thread() not in open_sessions, "the session is still open"
            assert go_on.wait(60)
        return signature(document_id, text)

    monkeypatch.setattr(stored_texts, "_signature", held)
    monkeypatch.setattr(database, "read", counted)
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(add.texts.find, contract(8) + " Due?", "slow")
        assert reached.wait(60)
        try:
            quick = pool.submit(add.texts.find, contract(9) + " Due?", "quick").result(30)
        finally:
            go_on.set()
    assert quick is not None and quick.document_id == theirs
    first = slow.result()
    assert first is not None and first.document_id == mine


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_document_deleted_while_its_text_is_looked_for_is_left_out(
    add: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(contract(10), "a.txt")
    kept = add(contract(11), "b.txt")
    read = text_of
    gone = iter([True])

    def deleted(session: Any, version: int) -> str:
        return read(session, -1 if next(gone, False) else version)

    monkeypatch.setattr(stored_texts, "text_of", deleted)
    found = add.texts.find(contract(11) + " Due?", "local")
    assert found is not None and found.document_id == kept
