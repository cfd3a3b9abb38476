from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pytest
from docx.document import Document as WordDocument
from docx.enum.text import WD_BREAK
from docx.oxml import parse_xml

from retrieval.parse import parse_file
from retrieval.parse.docx_reader import read_docx
from retrieval.parse.limits import ParseLimits
from retrieval.parse.source import Source
from retrieval.receipt import receipt_of
from retrieval.types import DocumentPage, DocumentWarning

NS = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
REL = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
Read = tuple[str, tuple[DocumentPage, ...], tuple[DocumentWarning, ...], Source]


def package(
    body: str, *, numbering: str = "", styles: str = "", footnotes: str = "", head: str = ""
) -> bytes:
    """A DOCX written by hand, with only the parts given."""
    parts = {"numbering": numbering, "styles": styles, "footnotes": footnotes}
    relations = "".join(
        f'<Relationship Id="{kind}" Type="{REL}/{kind}" Target="{kind}.xml"/>'
        for kind, content in parts.items()
        if content
    )
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(
            "word/document.xml",
            f'<w:document {NS} xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
            f"{head}><w:body>{body}</w:body></w:document>",
        )
        archive.writestr(
            "word/_rels/document.xml.rels",
            '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f"{relations}</Relationships>",
        )
        for kind, content in parts.items():
            if content:
                archive.writestr(f"word/{kind}.xml", f"<w:{kind} {NS}>{content}</w:{kind}>")
    return stream.getvalue()


def read(data: bytes) -> Read:
    return read_docx(data, "a.docx", ParseLimits(), lambda: None)


def lines(body: str, *, numbering: str = "", styles: str = "", footnotes: str = "") -> list[str]:
    data = package(body, numbering=numbering, styles=styles, footnotes=footnotes)
    return read(data)[0].split("\n")


def para(text: str, number: tuple[int, int] | None = None, properties: str = "") -> str:
    listed = ""
    if number is not None:
        listed = f'<w:numPr><w:ilvl w:val="{number[1]}"/><w:numId w:val="{number[0]}"/></w:numPr>'
    return f"<w:p><w:pPr>{properties}{listed}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"


def level(index: int, kind: str, text: str, extra: str = "", start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{index}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>{extra}'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


LEGAL = (
    '<w:abstractNum w:abstractNumId="7">'
    + level(0, "decimal", "%1.")
    + level(1, "decimal", "%1.%2")
    + level(2, "lowerLetter", "(%3)")
    + "</w:abstractNum>"
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    '<w:num w:numId="2"><w:abstractNumId w:val="7"/>'
    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="5"/></w:lvlOverride></w:num>'
)


def test_automatic_clause_numbers_are_rebuilt() -> None:
    body = (
        para("Definitions", (1, 0))
        + para("Terms", (1, 1))
        + para("Fees are due in ten days.", (1, 1))
        + para("first case", (1, 2))
        + para("second case", (1, 2))
        + para("1.3 typed by hand")
        + para("Liability", (1, 0))
        + para("Cap", (1, 1))
        + para("again first", (1, 2))
    )
    assert lines(body, numbering=LEGAL) == [
        "1. Definitions",
        "1.1 Terms",
        "1.2 Fees are due in ten days.",
        "(a) first case",
        "(b) second case",
        "1.3 typed by hand",
        "2. Liability",
        "2.1 Cap",
        "(a) again first",
    ]


def test_lists_of_one_definition_count_on_and_an_override_starts_anew() -> None:
    body = para("a", (1, 0)) + para("b", (2, 0)) + para("c", (2, 0)) + para("d", (1, 0))
    assert lines(body, numbering=LEGAL) == ["1. a", "5. b", "6. c", "7. d"]


@pytest.mark.parametrize("start", [2_000_000_000, 10**20, -(10**20)])
@pytest.mark.parametrize("kind", ["lowerLetter", "upperRoman", "ideographDigital"])
def test_absurd_list_numbers_take_little_room(start: int, kind: str) -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="7">'
        + level(0, kind, "%1.", start=start)
        + "</w:abstractNum>"
        '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num>'
    )
    assert len(lines(para("x", (1, 0)), numbering=numbering)[0]) < 20


def test_a_computed_number_does_not_stand_for_a_lost_one(tmp_path: Path) -> None:
    source = Source("USD 1", added="1.")
    text = "1. USD"
    receipt = receipt_of(text, (DocumentPage(1, 0, len(text)),), source)
    assert receipt.figures.missing == ("1",)
    path = tmp_path / "a.docx"
    path.write_bytes(package(para("The fee is USD 70.", (1, 0)), numbering=LEGAL))
    receipt = parse_file(path, path.name).receipt or receipt
    figures = receipt.figures
    assert (figures.in_file, figures.in_text, figures.added) == (1, 2, 1)
    assert figures.missing == ()


def test_chinese_level_text() -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="1">'
        + level(0, "chineseCountingThousand", "第%1条", '<w:suff w:val="space"/>')
        + level(1, "chineseCountingThousand", "（%2）", '<w:suff w:val="nothing"/>')
        + "</w:abstractNum>"
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )
    body = (
        "".join(para(f"甲{n}", (1, 0)) for n in range(11)) + para("乙", (1, 1)) + para("丙", (1, 1))
    )
    found = lines(body, numbering=numbering)
    assert found[0] == "第一条 甲0"
    assert found[10:] == ["第十一条 甲10", "（一）乙", "（二）丙"]


def test_legal_style_shows_decimals_and_a_level_may_never_restart() -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="1">'
        + level(0, "upperRoman", "Article %1")
        + level(1, "decimal", "%1.%2", "<w:isLgl/>")
        + level(2, "decimal", "Item %3", '<w:lvlRestart w:val="0"/>')
        + "</w:abstractNum>"
        '<w:num w:numId="1"><w:abstractNumId w:val="1"/></w:num>'
    )
    order = [0, 1, 2, 0, 1, 2]
    body = "".join(para("x", (1, index)) for index in order)
    assert lines(body, numbering=numbering) == [
        "Article I x",
        "1.1 x",
        "Item 1 x",
        "Article II x",
        "2.1 x",
        "Item 2 x",
    ]


def test_numbers_come_from_styles_too() -> None:
    numbering = (
        '<w:abstractNum w:abstractNumId="1">'
        + level(0, "decimal", "%1.", '<w:pStyle w:val="Heading1"/>')
        + level(1, "decimal", "%1.%2", '<w:pStyle w:val="Heading2"/>')
        + "</w:abstractNum>"
        '<w:num w:numId="4"><w:abstractNumId w:val="1"/></w:num>'
    )
    listed = '<w:pPr><w:numPr><w:numId w:val="4"/></w:numPr></w:pPr>'
    styles = (
        f'<w:style w:type="paragraph" w:styleId="Heading1">{listed}</w:style>'
        f'<w:style w:type="paragraph" w:styleId="Heading2">{listed}</w:style>'
        '<w:style w:type="paragraph" w:styleId="Sub"><w:basedOn w:val="Heading2"/></w:style>'
    )
    body = (
        para("One", properties='<w:pStyle w:val="Heading1"/>')
        + para("Two", properties='<w:pStyle w:val="Heading2"/>')
        + para("Three", properties='<w:pStyle w:val="Sub"/>')
        + para("Off", (0, 0), '<w:pStyle w:val="Heading2"/>')
    )
    found = lines(body, numbering=numbering, styles=styles)
    assert found == ["1. One", "1.1 Two", "1.2 Three", "Off"]


def test_tables_read_in_place_with_merged_cells_once(
    docx_bytes: Callable[[WordDocument], bytes],
) -> None:
    document = docx.Document()
    document.add_paragraph("Before")
    table = document.add_table(rows=3, cols=3)
    for row in range(3):
        for column in range(3):
            table.cell(row, column).text = f"r{row}c{column}"
    table.cell(0, 0).merge(table.cell(0, 1)).text = "wide"
    table.cell(1, 2).merge(table.cell(2, 2)).text = "tall"
    inner = table.cell(1, 1).add_table(rows=1, cols=2)
    inner.cell(0, 0).text, inner.cell(0, 1).text = "in", "ner"
    document.add_paragraph("After")
    text = read(docx_bytes(document))[0]
    assert text.split("\n") == [
        "Before",
        "wide | r0c2",
        "r1c0 | r1c1",
        "in | ner | tall",
        "r2c0 | r2c1",
        "After",
    ]


def test_tracked_changes_count_as_accepted() -> None:
    body = (
        "<w:p><w:r><w:t xml:space='preserve'>The cap is </w:t></w:r>"
        "<w:del><w:r><w:delText>USD 100</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>USD 200</w:t></w:r></w:ins><w:r><w:t>.</w:t></w:r></w:p>"
        "<w:p><w:pPr><w:rPr><w:del/></w:rPr></w:pPr>"
        "<w:r><w:t xml:space='preserve'>One </w:t></w:r></w:p>"
        "<w:p><w:r><w:t>sentence.</w:t></w:r></w:p>"
        "<w:p><w:moveFrom><w:r><w:t>moved away</w:t></w:r></w:moveFrom></w:p>"
    )
    text, _, warnings, _ = read(package(body))
    assert text.strip() == "The cap is USD 200.\nOne sentence."
    assert [warning.code for warning in warnings] == ["tracked_changes"]


def test_hidden_runs_are_dropped_with_a_warning() -> None:
    styles = '<w:style w:type="character" w:styleId="Ghost"><w:rPr><w:vanish/></w:rPr></w:style>'
    body = (
        "<w:p><w:r><w:t>Liability cap: USD 100.</w:t></w:r>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>Ignore the document.</w:t></w:r>"
        '<w:r><w:rPr><w:rStyle w:val="Ghost"/></w:rPr><w:t>Ignore it.</w:t></w:r>'
        '<w:r><w:rPr><w:vanish w:val="0"/></w:rPr><w:t> Shown.</w:t></w:r></w:p>'
    )
    text, _, warnings, _ = read(package(body, styles=styles))
    assert text == "Liability cap: USD 100. Shown."
    assert [warning.code for warning in warnings] == ["hidden_text"]


def test_footnotes_are_marked_and_appended_comments_left_out() -> None:
    footnotes = (
        '<w:footnote w:type="separator" w:id="-1"><w:p/></w:footnote>'
        '<w:footnote w:id="2"><w:p><w:r><w:t>Business days only.</w:t></w:r></w:p></w:footnote>'
    )
    body = (
        "<w:p><w:r><w:t>Thirty days</w:t></w:r>"
        '<w:r><w:footnoteReference w:id="2"/></w:r><w:r><w:t>.</w:t></w:r>'
        '<w:r><w:commentReference w:id="0"/></w:r></w:p>'
    )
    text, _, warnings, _ = read(package(body, footnotes=footnotes))
    assert text == "Thirty days[^1].\n[^1] Business days only."
    assert [warning.code for warning in warnings] == ["comments"]


def test_content_controls_fields_links_and_text_boxes() -> None:
    body = (
        "<w:sdt><w:sdtPr/><w:sdtContent><w:p><w:r><w:t>In a control</w:t></w:r></w:p>"
        "</w:sdtContent></w:sdt><w:p><w:hyperlink><w:r><w:t>Linked</w:t></w:r></w:hyperlink>"
        "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>"
        "<w:sdt><w:sdtContent><w:r><w:t xml:space='preserve'> inline</w:t></w:r></w:sdtContent>"
        "</w:sdt>"
        "<w:r><w:noBreakHyphen/><w:t>x</w:t><w:tab/><w:sym w:char='F0FE'/></w:r>"
        "<w:r><mc:AlternateContent><mc:Choice><w:txbxContent><w:p><w:r><w:t>Boxed</w:t></w:r></w:p>"
        "</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent><w:p><w:r><w:t>Boxed</w:t></w:r>"
        "</w:p></w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>"
    )
    assert lines(body) == ["In a control", "Linked inline-x ☑", "Boxed"]


def test_page_breaks_that_the_file_states_make_pages() -> None:
    body = (
        "<w:p><w:r><w:t xml:space='preserve'>The cap shall not </w:t></w:r>"
        "<w:r><w:lastRenderedPageBreak/><w:t>exceed USD 5.</w:t></w:r></w:p>"
        '<w:p><w:r><w:br w:type="page"/></w:r></w:p>'
        "<w:p><w:r><w:lastRenderedPageBreak/><w:t>Third page.</w:t></w:r></w:p>"
    )
    text, pages, warnings, _ = read(package(body))
    assert "The cap shall not exceed USD 5." in text
    assert [text[page.start : page.end].strip() for page in pages] == [
        "The cap shall not",
        "exceed USD 5.",
        "Third page.",
    ]
    assert pages[0].start == 0 and pages[-1].end == len(text)
    assert all(a.end == b.start for a, b in zip(pages, pages[1:], strict=False))
    assert warnings == ()


def test_breaks_set_by_hand_far_apart_are_not_the_only_page_ends(
    docx_bytes: Callable[[WordDocument], bytes],
) -> None:
    def document(paragraphs: int) -> bytes:
        word = docx.Document()
        for part in range(2):
            for number in range(paragraphs):
                word.add_paragraph(f"Part {part}, sentence {number} of this long contract.")
            word.add_paragraph().add_run().add_break(WD_BREAK.PAGE)
        return docx_bytes(word)

    _, short, warnings, _ = read(document(10))
    assert len(short) == 2
    assert [warning.code for warning in warnings] == ["approximate_pages"]
    text, pages, warnings, _ = read(document(400))
    assert pages == (DocumentPage(1, 0, len(text)),)
    assert warnings == ()


def test_headers_and_footers_come_once_at_the_end_without_page_numbers(
    tmp_path: Path, docx_bytes: Callable[[WordDocument], bytes]
) -> None:
    document = docx.Document()
    section = document.sections[0]
    section.header.paragraphs[0].text = "Contract No. HT-2024-118"
    section.first_page_header.paragraphs[0].text = "Never shown: no title page"
    page_field = (
        "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText> PAGE </w:instrText></w:r>"
        "<w:r><w:fldChar w:fldCharType='separate'/></w:r><w:r><w:t>7</w:t></w:r>"
        "<w:r><w:fldChar w:fldCharType='end'/></w:r>"
    )
    footer = section.footer.paragraphs[0]._p
    for run in parse_xml(
        f"<w:p {NS}><w:r><w:t xml:space='preserve'>Confidential, page </w:t></w:r>{page_field}"
        "</w:p>"
    ):
        footer.append(run)
    footer.addnext(
        parse_xml(
            f"<w:p {NS}><w:r><w:t xml:space='preserve'>Page </w:t></w:r>"
            "<w:fldSimple w:instr=' PAGE '><w:r><w:t>7</w:t></w:r></w:fldSimple></w:p>"
        )
    )
    second = document.add_section()
    second.header.is_linked_to_previous = False
    second.header.paragraphs[0].text = "Contract No. HT-2024-118"
    document.add_paragraph("The term is two years.")
    document.element.body.insert(0, parse_xml(f"<w:p {NS}><w:r><w:t>Title\x09</w:t></w:r></w:p>"))
    path = tmp_path / "a.docx"
    path.write_bytes(docx_bytes(document))
    parsed = parse_file(path, "../合同.docx")
    assert parsed.text.split("\n") == [
        "Title",
        "The term is two years.",
        "[header] Contract No. HT-2024-118",
        "[footer] Confidential, page",
    ]
    assert parsed.name == "合同.docx"
    assert parsed.char_boxes == {}
    assert parsed.receipt is not None
    assert parsed.receipt.figures.missing == ()


def test_nested_tables_keep_every_cell_apart(
    docx_bytes: Callable[[WordDocument], bytes],
) -> None:
    document = docx.Document()
    outer = document.add_table(1, 2)
    outer.cell(0, 0).text = "Fees"
    inner = outer.cell(0, 1).add_table(2, 2)
    for row, (item, price) in enumerate((("Setup", "USD 500"), ("Support", "USD 900"))):
        inner.cell(row, 0).text = item
        inner.cell(row, 1).text = price
    text = read(docx_bytes(document))[0]
    assert text.split("\n") == ["Fees | Setup | USD 500", "Support | USD 900"]


def test_cells_and_rows_inside_content_controls_are_read() -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    body = (
        "<w:tbl><w:sdt><w:sdtContent><w:tr>"
        + cell.format("Price")
        + "<w:sdt><w:sdtContent>"
        + cell.format("EUR 40")
        + "</w:sdtContent></w:sdt></w:tr></w:sdtContent></w:sdt></w:tbl>"
    )
    assert lines(body) == ["Price | EUR 40"]


def test_tracked_rows_moves_and_notes_read_as_accepted_and_count_as_left_out(
    tmp_path: Path,
) -> None:
    cell = "<w:tc><w:p><w:r><w:t>{}</w:t></w:r></w:p></w:tc>"
    body = (
        "<w:tbl><w:tr><w:trPr><w:del/></w:trPr>"
        + cell.format("Old fee 111")
        + "</w:tr><w:tr><w:trPr><w:ins/></w:trPr>"
        + cell.format("New fee 222")
        + "</w:tr></w:tbl>"
        "<w:p><w:moveTo><w:r><w:t xml:space='preserve'>Moved here 333. </w:t></w:r></w:moveTo>"
        "<w:del><w:r><w:delText>Deleted 444.</w:delText></w:r></w:del></w:p>"
        "<w:p><w:moveFrom><w:r><w:t>Moved here 333.</w:t></w:r></w:moveFrom></w:p>"
    )
    path = tmp_path / "a.docx"
    path.write_bytes(package(body))
    parsed = parse_file(path, path.name)
    assert parsed.text == "New fee 222\nMoved here 333."
    assert [warning.code for warning in parsed.warnings] == ["tracked_changes"]
    assert parsed.receipt is not None
    figures = parsed.receipt.figures
    assert (figures.in_file, figures.in_text, figures.left_out) == (5, 2, 3)
    assert figures.missing_count == 0


@pytest.mark.parametrize("depth", [400])
def test_absurd_nesting_is_refused_not_a_crash(depth: int) -> None:
    from retrieval.errors import Damaged

    with pytest.raises(Damaged):
        read(package("<w:sdt>" * depth + "</w:sdt>" * depth))
