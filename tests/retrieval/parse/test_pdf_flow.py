"""The flow of lines into one text, without any PDF."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.parse.joining import hyphen_stays, separator, starts_clause
from retrieval.parse.pdf_chars import Char
from retrieval.parse.pdf_flow import flow
from retrieval.parse.pdf_lines import Line, Region

WIDTH = 6.0
SIZE = 12.0
COLUMN = Region(72.0, 72.0 + 60 * WIDTH)


def line(text: str, top: float, left: float = 72.0) -> Line:
    chars = [
        Char(letter, left + n * WIDTH, top, left + (n + 1) * WIDTH, top + SIZE)
        for n, letter in enumerate(text)
    ]
    return Line(chars, left, top, left + len(text) * WIDTH, top + SIZE, row=int(top), region=COLUMN)


def page(*texts: str) -> list[Line]:
    return [line(text, 100 + 15 * n) for n, text in enumerate(texts)]


def test_a_full_line_goes_on_a_short_one_ends() -> None:
    lines = page(
        "The Supplier shall deliver the goods in good order and on",
        "time.",
        "The Buyer shall pay.",
    )
    assert "".join(flow([lines]).text) == (
        "The Supplier shall deliver the goods in good order and on time.\nThe Buyer shall pay."
    )


def test_a_clause_number_begins_a_paragraph_a_reference_does_not() -> None:
    lines = page(
        "1.1 The cap applies to every claim that is made under the",
        "5.2 of this Agreement or under any order placed below it.",
        "1.2 The Buyer shall pay the price.",
    )
    lines[0].chars[-3:] = lines[0].chars[-3:]
    assert "".join(flow([lines]).text).split("\n") == [
        "1.1 The cap applies to every claim that is made under the 5.2 of this Agreement or under "
        "any order placed below it.",
        "1.2 The Buyer shall pay the price.",
    ]


def test_a_footnote_does_not_cut_the_sentence_that_runs_over_the_page() -> None:
    first = page(
        "1. Scope.",
        "The Supplier shall deliver the goods in good order and at",
        "once.",
        "The price is payable within thirty days after the invoice",
        "and the",
    )
    note = line("1 An invoice is a request for money.", 700)
    note.y0, note.y1 = 700, 709
    joined = "".join(flow([[*first, note], page("cap shall not apply.")]).text)
    assert "and the cap shall not apply." in joined
    assert joined.index("1 An invoice") < joined.index("The price is payable")


@pytest.mark.parametrize(
    ("last", "first", "joined"),
    [
        ("the cap shall not", "exceed USD 5.", "not exceed"),
        ("Fees are due.", "The Buyer pays.", "due.\nThe"),
        ("GENERAL TERMS", "of this contract", "TERMS\nof"),
        ("the Supplier,", "Ruritania Ltd, pays", "Supplier, Ruritania"),
        ("the price is", "25. SICK LEAVE", "is\n25. SICK"),
    ],
)
def test_sentences_over_a_page_border(last: str, first: str, joined: str) -> None:
    assert joined in "".join(flow([page(last), page(first)]).text)


@given(
    st.lists(
        st.lists(st.text(alphabet="ab-第条 1.,\xad", min_size=1, max_size=70), max_size=4),
        min_size=1,
        max_size=5,
    )
)
def test_pages_cover_the_text_and_each_character_has_its_box(texts: list[list[str]]) -> None:
    pages = [page(*(text for text in lines if text.strip())) for lines in texts]
    result = flow(pages)
    assert len(result.text) == len(result.chars)
    assert len(result.starts) == len(pages)
    assert result.starts[0] == 0
    assert result.starts == sorted(result.starts)
    assert all(start <= len(result.text) for start in result.starts)
    assert "\xad" not in result.text
    for text, char in zip(result.text, result.chars, strict=True):
        assert char is None or char.text == text
    ends = [*result.starts[1:], len(result.text)]
    for number, (start, end) in enumerate(zip(result.starts, ends, strict=True)):
        own = {id(char) for found in pages[number] for char in found.chars}
        assert all(char is None or id(char) in own for char in result.chars[start:end])


def test_separator() -> None:
    assert separator("甲方", "应当") == ""
    assert separator("the", "cap") == " "
    assert separator("甲方", "ABC") == ""
    assert separator("the ", "cap") == ""


@pytest.mark.parametrize(
    ("first", "second", "words", "stays"),
    [
        ("capabili", "ties", set(), False),
        ("third", "party", set(), True),
        ("well", "known", {"well-known"}, True),
        ("non", "sense", {"nonsense"}, False),
        ("EX", "A", set(), True),
    ],
)
def test_hyphens(first: str, second: str, words: set[str], stays: bool) -> None:
    assert hyphen_stays(first, second, words) is stays


@pytest.mark.parametrize(
    "text",
    ["第十二条 违约", "第3条", "（一）定义", "(a) goods", "1.1 Term", "12. Fees", "一、总则",
     "Article 5", "• item", "A.1 Prices", "iv) fees"],
)  # fmt: skip
def test_clause_starts(text: str) -> None:
    assert starts_clause(text)


@pytest.mark.parametrize(
    "text", ["The cap", "2024 was", "违约金为", "1,200.00 USD", "10.5% of", "a man"]
)
def test_other_starts(text: str) -> None:
    assert not starts_clause(text)
