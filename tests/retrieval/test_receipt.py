from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval.parse.source import Source, plain_html, plain_markdown
from retrieval.receipt import figures, receipt_of, with_index
from retrieval.types import Chunk, DocumentPage


def page(text: str) -> tuple[DocumentPage, ...]:
    return (DocumentPage(1, 0, len(text)),)


def chunk(index: int, start: int, end: int) -> Chunk:
    return Chunk(index, start, end, None, "", 1, 1)


def test_figures_are_runs_of_digits_and_chinese_numerals() -> None:
    text = "USD 1,500,000.00, 第１２条, 伍佰万元整, 2024-03-01, 一方."
    assert list(figures(text)) == ["1,500,000.00", "12", "伍佰万", "2024", "03", "01"]


def test_a_lost_figure_is_missing_and_one_left_out_on_purpose_is_not() -> None:
    text = "The fee is USD 120."
    source = Source("Page 3\nThe fee is USD 120. The cap is USD 4,500.", "Page 3")
    count = receipt_of(text, page(text), source).figures
    assert (count.in_file, count.in_text, count.left_out) == (3, 1, 1)
    assert count.missing == ("4,500",)
    assert count.missing_count == 1


def test_one_of_two_equal_figures_is_missed() -> None:
    text = "USD 75."
    assert receipt_of(text, page(text), Source("USD 75 and USD 75")).figures.missing == ("75",)


def test_a_figure_cut_by_the_line_end_is_not_missing() -> None:
    text = "二〇二三年三月，第12345678号"
    cut = Source("二〇二\n三年三月，第1234\n5678号")
    assert receipt_of(text, page(text), cut).figures.missing == ()


def test_figures_outside_every_chunk_are_missing_from_the_index() -> None:
    text = "Fee 100. Cap 200. Term 300."
    receipt = receipt_of(text, page(text), Source(text))
    whole = with_index(receipt, text, [chunk(0, 0, 9), chunk(1, 9, len(text))])
    assert whole.figures.in_index == whole.figures.in_file == 3
    assert whole.figures.missing_count == 0
    holed = with_index(receipt, text, [chunk(0, 0, 9), chunk(1, 18, len(text))])
    assert holed.figures.in_index == 2
    assert holed.figures.missing == ("200",)
    cut = with_index(receipt, text, [chunk(0, 0, 5), chunk(1, 5, len(text))])
    assert cut.figures.missing == ("100",)


def test_pages_state_what_they_gave() -> None:
    text = "One page.\n"
    pages = (DocumentPage(1, 0, len(text), "i"), DocumentPage(2, len(text), len(text), "ii"))
    receipt = receipt_of(text, pages, Source(text, tables=(2, 0), garbled=(0.1, 1.0)))
    assert receipt.empty_pages == (2,)
    assert receipt.tables == 2
    assert receipt.garbled == 0.1
    assert [row.characters for row in receipt.pages] == [9, 0]


@given(st.lists(st.integers(0, 10**9)), st.data())
def test_what_is_dropped_is_counted(numbers: list[int], data: st.DataObject) -> None:
    texts = [f"item {number}x{index:010d};" for index, number in enumerate(numbers)]
    kept = [text for text in texts if data.draw(st.booleans())]
    text = " ".join(kept)
    count = receipt_of(text, page(text), Source(" ".join(texts))).figures
    assert count.in_file == 2 * len(texts)
    # An index of ten digits is nobody else's, so each lost item shows at least by it.
    assert count.missing_count >= len(texts) - len(kept)


def test_plain_html_and_markdown_hold_what_is_shown() -> None:
    html = "<head><title>9</title></head><p>USD 1,5<b>00</b></p><script>7</script><td>8<td>6"
    assert list(figures(plain_html(html))) == ["1,500", "8", "6"]
    markdown = "---\nyear: 1999\n---\n1. Fee [see](http://x/2020)\n1. Cap USD 7\n"
    assert list(figures(plain_markdown(markdown))) == ["7"]


def test_plain_html_reads_as_browsers_do() -> None:
    html = (
        '<p title="a>1" x=\'2>3\'>4<b>5</b><!-- 6 -->7</p><script>if (a<8) "</p>9"</script>10'
        "<br/>11<svg><text>12</text></svg>13<!DOCTYPE 14>x &lt; &#49;5 <16 y<17>"
    )
    shown = ["457", "10", "11", "13", "15", "16", "17"]
    assert list(figures(plain_html(html))) == shown


@pytest.mark.parametrize("piece", ["<!--", "<a ", "<a x='", "<![CDATA[", "<script ", "](", "](x "])
def test_marks_that_never_end_take_no_time(piece: str) -> None:
    raw = "USD 7 " + piece * 40_000
    started = time.process_time()
    assert list(figures(plain_html(raw))) == ["7"]
    assert list(figures(plain_markdown(raw))) == ["7"]
    # Python's own parser took from a second to a minute; this takes 0.1 s.
    assert time.process_time() - started < 1


def test_many_lost_figures_take_no_time() -> None:
    lost = " ".join(f"{number * 7919:,}.00" for number in range(1, 10_000))
    found = " ".join(f"{number * 104729 % 10**5}x" for number in range(10_000))
    started = time.process_time()
    assert receipt_of(found, page(found), Source(lost)).figures.missing_count > 0
    assert time.process_time() - started < 2
