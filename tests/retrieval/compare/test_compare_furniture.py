"""Lines that belong to the page, and those that only look like it."""

from __future__ import annotations

import pytest

from retrieval.compare.furniture import find_furniture
from retrieval.types import DocumentPage


def left_out(text: str) -> list[str]:
    return [text[start:end].strip() for start, end in find_furniture(text, ()).spans]


@pytest.mark.parametrize(
    "line", ["Page 3 of 12", "- 4 -", "— 4 —", "第 3 页 共 9 页", "第3页", "Page 7"]
)
def test_lines_that_say_that_they_number_a_page(line: str) -> None:
    assert left_out(f"The fee is due.\n{line}\nIt is paid.") == [line]


def test_bare_numbers_only_in_a_run_a_page_apart() -> None:
    page = "The fee is due in full. " * 40
    assert left_out(f"{page}\n4\n{page}\n5\n{page}\n6\n{page}") == ["4", "5", "6"]
    assert left_out(f"{page}\n4\n{page}\n9\n{page}\n2\n{page}") == []
    assert left_out("Item\n1\n2\n3\n4\n5\n") == []


def test_repeated_lines_only_beside_page_numbers() -> None:
    page = "The fee is due in full. " * 40
    header = "Acme Supply Agreement"
    text = "".join(f"{page}\n{number}\n{header}\n" for number in range(1, 5))
    assert left_out(text).count(header) == 4
    assert left_out(f"{page}\nSigned\n" * 4) == []


def test_repeated_lines_at_the_borders_of_pages() -> None:
    page = "The fee is due in full. " * 40 + "\n"
    text = f"ACME\n{page}" * 4
    size = len(text) // 4
    pages = tuple(DocumentPage(n + 1, n * size, (n + 1) * size) for n in range(4))
    assert len(find_furniture(text, pages).spans) >= 3


def test_page_numbers_of_a_table_of_contents() -> None:
    text = "Contents\n1. Term ........ 3\n2. Price ....... 14\n"
    assert [part.strip(" .") for part in left_out(text)] == ["3", "14"]


def test_headers_and_footers_of_a_docx_are_furniture() -> None:
    text = "1. Fee\nThe fee is EUR 5. See [header] above.\n[header] Contract No. 7\n[footer] Draft"
    assert left_out(text) == ["[header] Contract No. 7", "[footer] Draft"]
