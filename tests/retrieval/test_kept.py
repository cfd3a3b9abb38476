"""Results are kept for a text, not for its words."""

from __future__ import annotations

import threading

from retrieval.amendments import find_amendments
from retrieval.definitions import find_definitions
from retrieval.kept import kept_by_identity


def test_the_same_object_is_found_and_an_equal_one_is_not() -> None:
    calls: list[str] = []

    @kept_by_identity(2)
    def length(text: str) -> int:
        calls.append(text)
        return len(text)

    one = "".join(["a"] * 50)
    two = "".join(["a"] * 50)
    assert one == two and one is not two
    assert [length(one), length(one), length(two), length(two)] == [50] * 4
    assert len(calls) == 2
    third = "b" * 50
    length(third)
    length(two)
    assert len(calls) == 3, "the two used last are there"
    length(one)
    assert len(calls) == 4, "the one used longest ago is not"


def test_several_arguments_count_each() -> None:
    @kept_by_identity(4)
    def pair(text: str, items: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        return text, items

    text, first, second = "".join(["x", "y"]), tuple([1, 2]), tuple([3])
    assert pair(text, first) == (text, first)
    assert pair(text, second) == (text, second)
    assert pair(text, items=first) == (text, first)


def test_threads_agree() -> None:
    @kept_by_identity(3)
    def upper(text: str) -> str:
        return text.upper()

    texts = [f"text {number}" for number in range(10)]
    found: list[bool] = []

    def ask() -> None:
        found.append(all(upper(text) == text.upper() for text in texts * 200))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_definitions_and_amendments_are_kept_for_one_document_alone() -> None:
    text = '1. "Fee" means the price of EUR 5.\n2. Clause 1 is deleted.\n'
    same = "".join(list(text))
    clauses = ()
    assert find_definitions(text) is find_definitions(text)
    assert find_definitions(text) == find_definitions(same)
    assert find_definitions(text) is not find_definitions(same)
    assert find_amendments(text, clauses) == find_amendments(same, clauses)
    assert find_amendments(text, clauses) is not find_amendments(same, clauses)
