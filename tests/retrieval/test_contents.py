"""A table of contents is told from the clauses that it lists."""

from __future__ import annotations

from retrieval.contents import is_contents, is_contents_line


def test_entries_with_page_numbers_are_contents() -> None:
    assert is_contents("4.1   Quality Agreement 35 4.2   Manufacturing Standards 35 4.3 Other 36")
    assert is_contents("1. Definitions ........ 3\n2. Term ........ 5")
    assert is_contents_line("第一条 定义 ……………… 3")
    assert is_contents_line("23. Insurance … 14")


def test_clauses_are_no_contents() -> None:
    assert not is_contents("4.1 Quality. The Supplier shall keep 35 records.")
    assert not is_contents("3.1 The Buyer shall pay within 30 days.\n3.2 Interest runs from day 5.")
    assert not is_contents_line("The price is USD 5.00.")
