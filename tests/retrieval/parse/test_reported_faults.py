"""Faults that users of such systems met, followed from the file to what can be found and cited."""

from __future__ import annotations

import io
import socket
import zipfile
from pathlib import Path

import docx
import openpyxl
import pytest
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.index import SearchIndex
from retrieval.parse import parse_file
from retrieval.types import Document

HEIGHT = A4[1]
NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
ENCODED = "第一条 定义\r\n第二条 违约金为合同总价的百分之五。"


def parse(tmp_path: Path, data: bytes, name: str) -> Document:
    path = tmp_path / "upload"
    path.write_bytes(data)
    return parse_file(path, name)


def found(document: Document, question: str) -> str:
    """The text of the best chunk for a question."""
    clauses = outline(document.text)
    chunks = split(document, clauses)
    hit = SearchIndex.build(document.text, chunks, clauses).search(question)[0]
    return document.text[hit.chunk.start : hit.chunk.end]


@pytest.mark.parametrize(
    "data",
    [
        ENCODED.encode("gbk"),
        (ENCODED + "附：𠮷某").encode("gb18030"),
        ENCODED.encode("utf-16"),
        b"\xfe\xff" + ENCODED.encode("utf-16-be"),
        ENCODED.encode("utf-8-sig"),
    ],
    ids=["gbk", "gb18030", "utf-16-le", "utf-16-be", "utf-8-sig"],
)
def test_b02_the_penalty_is_found_in_every_encoding(tmp_path: Path, data: bytes) -> None:
    document = parse(tmp_path, data, "合同.txt")
    assert "百分之五" in found(document, "违约金是多少")
    first, second = outline(document.text)[:2]
    assert (first.start, first.title) == (0, "定义")
    assert second.start == document.text.index("第二条")


def numbered_docx(levels: tuple[str, str], paragraphs: list[tuple[int, str]]) -> bytes:
    """A DOCX whose numbers come from Word's list engine alone."""
    kinds = "".join(
        f'<w:lvl w:ilvl="{index}"><w:start w:val="1"/><w:numFmt w:val="decimal"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for index, text in enumerate(levels)
    )
    body = "".join(
        f'<w:p><w:pPr><w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="1"/></w:numPr></w:pPr>'
        f"<w:r><w:t>{text}</w:t></w:r></w:p>"
        for level, text in paragraphs
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(
            "word/document.xml", f"<w:document {NS}><w:body>{body}</w:body></w:document>"
        )
        archive.writestr(
            "word/_rels/document.xml.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{REL}/numbering" Target="numbering.xml"/>'
            "</Relationships>",
        )
        archive.writestr(
            "word/numbering.xml",
            f'<w:numbering {NS}><w:abstractNum w:abstractNumId="1">{kinds}</w:abstractNum>'
            '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num></w:numbering>',
        )
    return stream.getvalue()


def test_b06_a_number_of_words_list_engine_is_found_and_cited(tmp_path: Path) -> None:
    data = numbered_docx(
        ("%1.", "%1.%2"),
        [
            (0, "Payment"),
            (1, "Invoices are sent monthly."),
            (1, "The Buyer pays in ten days."),
            (0, "Term"),
            (1, "The term is two years."),
        ],
    )
    document = parse(tmp_path, data, "a.docx")
    clause = next(one for one in outline(document.text) if one.number.rstrip(".") == "1.2")
    assert "pays in ten days" in document.text[clause.start : clause.end]
    assert "pays in ten days" in found(document, "what does clause 1.2 say?")


def test_b06_chinese_level_text_is_found_and_cited(tmp_path: Path) -> None:
    data = numbered_docx(
        ("第%1条", "%1.%2"),
        [(0, "定义"), (0, "违约金为合同总价的百分之五。"), (0, "争议由法院管辖。")],
    )
    document = parse(tmp_path, data, "a.docx")
    assert "百分之五" in found(document, "第2条怎么规定")


def test_b08_the_sentence_over_the_page_is_one_and_the_lone_heading_stays(
    tmp_path: Path,
) -> None:
    bodies = [
        ("24. LIABILITY", "In any contract year the cap shall not"),
        ("exceed USD 2,000,000 in total.", "The cap covers all claims of the Buyer."),
        ("25. SICK LEAVE", "Employees have ten days of sick leave."),
    ]
    path = tmp_path / "a.pdf"
    canvas = Canvas(str(path), pagesize=A4)
    for number, body in enumerate(bodies, 1):
        canvas.drawString(72, HEIGHT - 40, "ACME Supply Agreement")
        for index, line in enumerate(body):
            canvas.drawString(72, HEIGHT - 90 - 14 * index, line)
        canvas.drawString(72, 36, f"Confidential - Page {number} of 3")
        canvas.showPage()
    canvas.save()
    document = parse_file(path, path.name)
    assert "shall not exceed USD 2,000,000 in total." in found(document, "what is the cap?")
    sick = next(one for one in outline(document.text) if one.number.rstrip(".") == "25")
    page = next(page for page in document.pages if page.start <= sick.start < page.end)
    assert page.number == 3
    assert document.receipt is not None
    figures = document.receipt.figures
    # "Page n of 3" on three pages.
    assert (figures.left_out, figures.missing) == (6, ())


def test_links_pictures_and_templates_elsewhere_are_never_fetched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    word = docx.Document()
    word.add_paragraph("The term is two years.")
    for kind in ("hyperlink", "image", "attachedTemplate", "footnotes", "header", "comments"):
        word.part.rels.get_or_add_ext_rel(f"{REL}/{kind}", "http://127.0.0.1:9/x")
    stream = io.BytesIO()
    word.save(stream)
    book = openpyxl.Workbook()
    book.active["A1"] = "The term is two years."
    book.active["A1"].hyperlink = "http://127.0.0.1:9/x"
    sheet = io.BytesIO()
    book.save(sheet)
    page = (
        b"<html><head><link rel=stylesheet href='http://127.0.0.1:9/x'></head><body>"
        b"<img src='http://127.0.0.1:9/x'><p>The term is two years.</p></body></html>"
    )

    def refuse(*arguments: object, **more: object) -> socket.socket:
        raise AssertionError("a file made its reader open a connection")

    monkeypatch.setattr(socket, "socket", refuse)
    for data, name in (
        (stream.getvalue(), "a.docx"),
        (sheet.getvalue(), "a.xlsx"),
        (page, "a.html"),
    ):
        assert "The term is two years." in parse(tmp_path, data, name).text


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx"])
def test_a_zip_with_an_office_name_is_refused(tmp_path: Path, name: str) -> None:
    from retrieval.errors import TypeMismatch

    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("readme.txt", "x")
    with pytest.raises(TypeMismatch, match="ZIP archive"):
        parse(tmp_path, stream.getvalue(), name)
