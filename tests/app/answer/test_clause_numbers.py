"""Clause references: one key across languages, lists taken apart."""

from __future__ import annotations

import pytest

from app.answer.clause_numbers import find_clause_numbers


def keys(text: str) -> list[str]:
    return [number.key for number in find_clause_numbers(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Article 12", ["12"]),
        ("第十二条", ["12"]),
        ("第１２条", ["12"]),
        ("clause 12.3(b)", ["12.3(b)"]),
        ("Section 5.1 (a) (ii)", ["5.1(a)(ii)"]),
        ("Clauses 3 and 4", ["3", "4"]),
        ("Sections 5.1(a) and (b)", ["5.1(a)", "5.1(b)"]),
        ("Sections 2, 30 days", ["2"]),
        ("Article IV", ["4"]),
        ("第十二条之一", ["12-1"]),
        ("第十二条第二款第（三）项", ["12/2款/3项"]),
        ("第三章", ["chapter 3"]),
        ("Exhibit A", ["exhibit a"]),
        ("附件一", ["annex 1"]),
        ("Annex 1", ["annex 1"]),
        ("§ 4.2", ["4.2"]),
        ("in part I agree", []),
        ("30 days", []),
    ],
)
def test_references(text: str, expected: list[str]) -> None:
    assert keys(text) == expected


def test_a_clause_stands_in_its_parts_but_not_in_longer_numbers() -> None:
    (number,) = find_clause_numbers("Section 12")
    assert number.known_in({"12(b)"})
    assert number.known_in({"12.3"})
    assert not number.known_in({"120"})
    assert not number.known_in({"exhibit 12"})


@pytest.mark.parametrize(
    ("label", "key"), [("12.3(b)", "12.3(b)"), ("(b)", "(b)"), ("第十二条", "12")]
)
def test_bare_numbers_are_read_where_asked_for(label: str, key: str) -> None:
    assert [number.key for number in find_clause_numbers(label, bare=True)] == [key]
