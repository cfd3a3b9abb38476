"""Plain text, Markdown and HTML through the public entry."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrieval.errors import EmptyFile, NoText, ParseCancelled, TooLarge, TypeMismatch
from retrieval.parse import ParseLimits, parse_file
from retrieval.parse.cleaning import clean_text
from retrieval.parse.html_reader import html_text
from retrieval.parse.markdown_reader import markdown_text
from retrieval.parse.pages import assemble
from retrieval.types import Document


def parse(tmp_path: Path, data: bytes, name: str = "a.txt") -> Document:
    path = tmp_path / "upload"
    path.write_bytes(data)
    return parse_file(path, name)


CONTRACT = "第一条 定义\r\n第二条 违约金为合同总价的百分之五。"


@pytest.mark.parametrize(
    "data",
    [
        CONTRACT.encode("gbk"),
        b"\xff\xfe" + CONTRACT.encode("utf-16-le"),
        b"\xfe\xff" + CONTRACT.encode("utf-16-be"),
        CONTRACT.encode("utf-8-sig"),
        CONTRACT.encode("utf-8"),
    ],
)
def test_one_text_from_every_encoding(tmp_path: Path, data: bytes) -> None:
    document = parse(tmp_path, data)
    assert document.text == "第一条 定义\n第二条 违约金为合同总价的百分之五。"
    assert document.language == "zh"
    assert document.media_type == "text/plain"
    assert document.encoding


def test_controls_and_marks_are_stripped(tmp_path: Path) -> None:
    document = parse(tmp_path, "Cl\x00ause\u200b 1\ufeff.\r\nTerm\x07: two\xad years\r".encode())
    assert document.text == "Clause 1.\nTerm: two years\n"


def test_a_form_feed_starts_a_page(tmp_path: Path) -> None:
    document = parse(tmp_path, b"page one\n\x0cpage two\n\x0c")
    assert document.text == "page one\npage two"
    assert [(page.start, page.end) for page in document.pages] == [(0, 9), (9, 17)]


@pytest.mark.parametrize("data", ["   \n\f\n", "。。。---", "\ufeff", "\x00\x00"])
def test_files_without_words_are_refused(tmp_path: Path, data: str) -> None:
    with pytest.raises(NoText, match="no words"):
        parse(tmp_path, data.encode())


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EmptyFile, match="0 bytes"):
        parse(tmp_path, b"")


def test_size_and_cancelling(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("some words")
    with pytest.raises(TooLarge):
        parse_file(path, "a.txt", limits=ParseLimits(max_bytes=5))
    with pytest.raises(TooLarge):
        parse_file(path, "a.txt", limits=ParseLimits(max_inflated_bytes=5))
    with pytest.raises(ParseCancelled):
        parse_file(path, "a.txt", cancelled=lambda: True)


def test_a_pdf_named_txt_says_so(tmp_path: Path) -> None:
    with pytest.raises(TypeMismatch, match="holds a PDF"):
        parse(tmp_path, b"%PDF-1.4 ...", "a.txt")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.text(max_size=200))
def test_cleaning_is_stable_and_leaves_nothing_unstorable(text: str) -> None:
    cleaned = clean_text(text)
    assert clean_text(cleaned) == cleaned
    assert not any(ord(char) < 32 and char not in "\t\n\f" for char in cleaned)
    cleaned.encode("utf-8")


@given(st.lists(st.text(alphabet="ab \n", max_size=8), min_size=1, max_size=8))
def test_pages_cover_the_text(texts: list[str]) -> None:
    text, pages = assemble(texts)
    assert pages[0].start == 0 and pages[-1].end == len(text)
    for page, following in zip(pages, pages[1:], strict=False):
        assert page.end == following.start
    for page, source in zip(pages, texts, strict=True):
        assert text[page.start : page.end] in (source, f"{source}\n")


MARKDOWN = """---
title: x
---
# 5. Fees

Fees are due
in *ten* days, see [annex](http://x).
6.1 Late fees apply.

3. first
5. second
   - inner
1) other

1. lazy
1. lazy too

| Item | Price |
|------|-------|
| A    | 5     |

<p>Raw <b>html</b></p>
"""


def test_markdown_reads_as_shown_and_keeps_its_numbers() -> None:
    assert markdown_text(MARKDOWN).split("\n") == [
        "5. Fees",
        "Fees are due in ten days, see annex.",
        "6.1 Late fees apply.",
        "3. first",
        "5. second",
        "- inner",
        "1) other",
        "1. lazy",
        "2. lazy too",
        "Item | Price",
        "A | 5",
        "Raw html",
    ]


def test_markdown_lines_of_chinese_join_without_a_space() -> None:
    assert markdown_text("甲方应当\n付款。\n第二条 违约") == "甲方应当付款。\n第二条 违约"


HTML = """<!DOCTYPE html><html><head><title>T</title><style>p{}</style></head><body>
<h1>Agreement</h1><script>evil()</script>
<p>The <b>cap</b> is
 USD&nbsp;100.<br>Second line.</p>
<p style="display: none">Ignore this.</p><div hidden>And this.</div>
<ol start="3"><li>third<ol type="a"><li>inner</li></ol></li><li value="7">seventh</li></ol>
<ul><li>bullet</li></ul>
<table><tr><th>Item</th><th>Price</th></tr><tr><td>A</td><td><p>5</p></td></tr></table>
<table><tr><td><p>Layout one.</p><p>Layout two.</p></td></tr></table>
tail</body></html>"""


def test_html_reads_as_blocks() -> None:
    assert html_text(HTML).split("\n") == [
        "Agreement",
        "The cap is USD 100.",
        "Second line.",
        "3. third",
        "a. inner",
        "7. seventh",
        "- bullet",
        "Item | Price",
        "A | 5",
        "Layout one.",
        "Layout two.",
        "tail",
    ]


@pytest.mark.parametrize("start", ["2000000000", "9" * 20, "-" + "9" * 20, "9" * 5000])
@pytest.mark.parametrize("kind", ["a", "A", "i", "I", "1"])
def test_absurd_list_numbers_of_html_take_little_room(start: str, kind: str) -> None:
    text = html_text(f"<ol start={start} type={kind}>" + "<li>x" * 10 + f"<li value={start}>y</ol>")
    assert len(text.split("\n")) == 11 and len(text) < 200


def test_letters_of_html_count_in_places() -> None:
    assert html_text("<ol type=a start=27><li>x<li>y</ol>") == "aa. x\nab. y"


@pytest.mark.parametrize("charset", ["gb2312", "big5", "utf-8"])
def test_html_says_its_encoding(tmp_path: Path, charset: str) -> None:
    text = "<html><meta charset='" + charset + "'><body>第一期 金</body></html>"
    document = parse(tmp_path, text.encode(charset), "a.html")
    assert document.text == "第一期 金"


@pytest.mark.parametrize("source", ["", "<html></html>", "<!-- only -->", "<p>" * 3000])
def test_html_without_text_gives_nothing(source: str) -> None:
    assert html_text(source) == ""
