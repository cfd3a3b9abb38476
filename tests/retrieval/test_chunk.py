"""Chunks cover the document, follow clauses and cut neither figures nor sentences."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.types import Chunk, Document, DocumentPage


def chunks(text: str, pages: tuple[DocumentPage, ...] = (), size: int = 1200) -> tuple[Chunk, ...]:
    document = Document(
        text, pages or (DocumentPage(1, 0, len(text)),), "x.txt", "text/plain", "en"
    )
    return split(document, outline(text), max_chars=size)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["第一条 总则\n", "1. Scope\n", "1.1 The price is USD 1,500,000.00. ", "\n\n", " ",
             "价款为人民币150万元。", "x" * 90, "(a) item; ", "违" * 300,
             "The Supplier shall deliver the Goods within 30 days. "]
        ),
        max_size=40,
    ),
    st.integers(200, 400),
)  # fmt: skip
def test_chunks_cover_everything_once(parts: list[str], size: int) -> None:
    text = "".join(parts)
    found = chunks(text, size=size)
    assert "".join(text[chunk.start : chunk.end] for chunk in found) == text
    assert all(0 < chunk.end - chunk.start <= size for chunk in found)
    assert [chunk.index for chunk in found] == list(range(len(found)))


def test_no_cut_inside_a_figure_or_sentence() -> None:
    sentence = "The Supplier shall pay USD 1,500,000.00 to the Buyer by 1 March 2024 in full. "
    text = "1. Payment\n" + sentence * 60
    found = chunks(text, size=500)
    assert len(found) > 5
    for chunk in found[1:]:
        assert text[chunk.start :].startswith("The Supplier")
    digits = "7" * 30 + " "
    for chunk in chunks(digits * 100, size=200)[1:]:
        assert (digits * 100)[chunk.start - 1] == " "


def test_every_piece_of_a_long_clause_carries_its_heading() -> None:
    text = "Article 4 Liability\n4.1 Cap\n" + "The liability is limited as follows here. " * 90
    text += "\nArticle 5 Term\nOne year."
    found = chunks(text)
    long = [chunk for chunk in found if chunk.clause == "4.1"]
    assert len(long) >= 3 or all("Liability" in chunk.heading for chunk in found[:-1])
    for chunk in found[:-1]:
        assert "Article 4 Liability" in chunk.heading
    assert "Article 5" in found[-1].heading


def test_heading_stays_with_its_body() -> None:
    body = "The Buyer shall pay every invoice within thirty days after receipt. " * 12
    text = f"1. Definitions\n{body}\n2. Payment\n2.1 Invoices\n{body}\n"
    for chunk in chunks(text):
        part = text[chunk.start : chunk.end].strip()
        assert not part.endswith("2. Payment") and not part.endswith("2.1 Invoices")


def test_small_clauses_are_joined() -> None:
    text = "第七条 违约责任\n" + "".join(f"（{n}）应当赔偿损失。\n" for n in "一二三四五六")
    found = chunks(text)
    assert len(found) == 1
    assert found[0].clause == "第七条"


def test_pages_of_a_chunk() -> None:
    first, second = "A" * 30 + "\n", "1. Term\nTwo years.\n"
    pages = (DocumentPage(1, 0, 31), DocumentPage(2, 31, 31 + len(second)))
    found = chunks(first + second, pages)
    assert found[-1].page_end == 2
    assert found[0].page_start == 1


def test_empty_text_and_bad_size() -> None:
    assert chunks("") == ()
    with pytest.raises(ValueError, match="at least 200"):
        chunks("text", size=10)
