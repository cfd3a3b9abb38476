"""Sets a sample contract as a Word file whose clause numbers are computed by Word.

Numbers come from multilevel lists (第%1条, %1.%2, (%3)), never typed, as in real contracts. Does
not know where contracts come from.
"""

from __future__ import annotations

import io
import zipfile
from datetime import datetime
from pathlib import Path
from typing import Any

from docx import Document
from docx.enum.section import WD_SECTION
from docx.enum.text import WD_ALIGN_PARAGRAPH
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls, qn
from docx.shared import Mm, Pt
from lxml import etree

from scripts.sample_source import Contract, Entry, right_aligned

_EPOCH = (2025, 1, 1, 0, 0, 0)
_MAIN, _SCHEDULE, _PARTS = 901, 902, 903
"""Numbers of the abstract lists: clauses, schedule titles, parts of a schedule."""


def write_docx(contract: Contract, path: Path) -> None:
    """Set `contract` and write it to `path`. The same input gives the same bytes."""
    document = Document()
    _set_properties(document, contract)
    lists = _Lists(document, contract.lang)
    _set_styles(document, contract.lang)
    _set_cover(document, contract)
    for part in contract.parts:
        if part.kind == "body":
            _start_section(document, contract, "decimal")
        elif part.kind == "schedule":
            document.add_page_break()
            lists.restart_parts()
        heading = document.add_heading(part.title, level=1)
        if part.kind == "schedule":
            lists.number(heading, lists.schedule, 0)
        numbering = lists.parts if part.kind == "schedule" else lists.main
        for entry in part.entries:
            _add_entry(document, entry, lists, numbering)
    buffer = io.BytesIO()
    document.save(buffer)
    _write_fixed(buffer.getvalue(), path)


def _set_properties(document: Any, contract: Contract) -> None:
    properties = document.core_properties
    properties.title = contract.title
    properties.subject = contract.number
    properties.author = contract.parties[0]
    properties.last_modified_by = contract.parties[0]
    properties.comments = ""
    properties.created = properties.modified = datetime(*_EPOCH)


def _set_styles(document: Any, lang: str) -> None:
    latin, east_asian = ("Times New Roman", "SimSun") if lang == "zh" else ("Calibri", "SimSun")
    for name, size in (("Normal", 11), ("Heading 1", 16), ("Heading 2", 12.5)):
        style = document.styles[name]
        style.font.name = latin
        style.font.size = Pt(size)
        fonts = style.element.get_or_add_rPr().get_or_add_rFonts()
        for attribute in ("w:asciiTheme", "w:hAnsiTheme", "w:eastAsiaTheme", "w:cstheme"):
            fonts.attrib.pop(qn(attribute), None)
        fonts.set(qn("w:eastAsia"), east_asian)


def _set_cover(document: Any, contract: Contract) -> None:
    section = document.sections[0]
    section.page_width, section.page_height = Mm(210), Mm(297)
    _set_edges(section, contract, "lowerRoman")
    title = document.add_paragraph()
    title.alignment = WD_ALIGN_PARAGRAPH.CENTER
    title.paragraph_format.space_before = Pt(160)
    run = title.add_run(contract.title)
    run.font.size, run.bold = Pt(26), True
    label = "合同编号：" if contract.lang == "zh" else "Agreement no. "
    lines = (contract.subtitle, *contract.parties, label + contract.number, contract.date)
    for line in (*lines, contract.note):
        paragraph = document.add_paragraph(line)
        paragraph.alignment = WD_ALIGN_PARAGRAPH.CENTER
    document.add_page_break()


def _start_section(document: Any, contract: Contract, style: str) -> None:
    section = document.add_section(WD_SECTION.NEW_PAGE)
    section.header.is_linked_to_previous = False
    section.footer.is_linked_to_previous = False
    _set_edges(section, contract, style)


def _set_edges(section: Any, contract: Contract, style: str) -> None:
    section._sectPr.append(parse_xml(f'<w:pgNumType {nsdecls("w")} w:fmt="{style}" w:start="1"/>'))
    section.header.paragraphs[0].text = f"{contract.title}\t\t{contract.number}"
    footer = section.footer.paragraphs[0]
    footer.alignment = WD_ALIGN_PARAGRAPH.CENTER
    before, after = ("第 ", " 页") if contract.lang == "zh" else ("Page ", "")
    footer.add_run(before)
    field = parse_xml(
        f'<w:fldSimple {nsdecls("w")} w:instr="PAGE"><w:r><w:t>1</w:t></w:r></w:fldSimple>'
    )
    footer._p.append(field)
    footer.add_run(after)


def _add_entry(document: Any, entry: Entry, lists: _Lists, numbering: int) -> None:
    if entry.kind == "table":
        if entry.text:
            document.add_paragraph().add_run(entry.text).bold = True
        _add_table(document, entry)
        return
    if entry.kind == "heading":
        lists.number(document.add_heading(entry.text, level=2), numbering, 0)
        return
    paragraph = document.add_paragraph()
    for index, piece in enumerate(entry.text.split("**")):
        if piece:
            paragraph.add_run(piece).bold = bool(index % 2) or None
    if entry.kind != "paragraph":
        lists.number(paragraph, numbering, 1 if entry.kind == "item" else 2)


def _add_table(document: Any, entry: Entry) -> None:
    right = right_aligned(entry.rows)
    table = document.add_table(rows=len(entry.rows), cols=len(entry.rows[0]), style="Table Grid")
    for row, cells in zip(table.rows, entry.rows, strict=True):
        for column, (cell, text) in enumerate(zip(row.cells, cells, strict=True)):
            cell.text = text
            if right[column]:
                cell.paragraphs[0].alignment = WD_ALIGN_PARAGRAPH.RIGHT
    document.add_paragraph()


class _Lists:
    """The multilevel lists of one file. `main`, `schedule` and `parts` are list numbers."""

    def __init__(self, document: Any, lang: str) -> None:
        self._element = document.part.numbering_part.element
        zh = lang == "zh"
        count = "chineseCountingThousand" if zh else "decimal"
        subitem = ("decimal", "（%3）") if zh else ("lowerLetter", "(%3)")
        self._define(
            _MAIN,
            [(count, "第%1条" if zh else "%1."), ("decimal", "%1.%2"), subitem],
        )
        self._define(_SCHEDULE, [(count, "附件%1" if zh else "Schedule %1 –")])
        part = (count, "第%1部分") if zh else ("upperLetter", "Part %1:")
        self._define(_PARTS, [part, ("decimal", "%1.%2"), subitem])
        self._next = 901
        self.main = self._start(_MAIN)
        self.schedule = self._start(_SCHEDULE)
        self.parts = self._start(_PARTS)

    def _define(self, number: int, levels: list[tuple[str, str]]) -> None:
        xml = "".join(
            f'<w:lvl w:ilvl="{index}"><w:start w:val="1"/><w:numFmt w:val="{form}"/>'
            # Level 2 of a Chinese list reads 7.3, not 七.3.
            f"{'<w:isLgl/>' if index == 1 and levels[0][0].startswith('chinese') else ''}"
            f'<w:suff w:val="space"/><w:lvlText w:val="{text}"/><w:lvlJc w:val="left"/>'
            f'<w:pPr><w:ind w:left="{360 * index}" w:hanging="0"/></w:pPr></w:lvl>'
            for index, (form, text) in enumerate(levels)
        )
        abstract = parse_xml(
            f'<w:abstractNum {nsdecls("w")} w:abstractNumId="{number}">'
            f'<w:multiLevelType w:val="multilevel"/>{xml}</w:abstractNum>'
        )
        # The schema wants every abstractNum before the first num.
        self._element.insert(0, abstract)

    def _start(self, abstract: int, restart: bool = False) -> int:
        number, self._next = self._next, self._next + 1
        override = (
            '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride>'
            if restart
            else ""
        )
        self._element.append(
            parse_xml(
                f'<w:num {nsdecls("w")} w:numId="{number}">'
                f'<w:abstractNumId w:val="{abstract}"/>{override}</w:num>'
            )
        )
        return number

    def restart_parts(self) -> None:
        """Begin the parts of the next schedule at 1."""
        self.parts = self._start(_PARTS, restart=True)

    def number(self, paragraph: Any, numbering: int, level: int) -> None:
        """Make `paragraph` a member of a list."""
        properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
        properties.get_or_add_ilvl().val = level
        properties.get_or_add_numId().val = numbering


def _write_fixed(data: bytes, path: Path) -> None:
    """Write the package with one fixed time for every member, so that bytes repeat."""
    with (
        zipfile.ZipFile(io.BytesIO(data)) as source,
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for item in source.infolist():
            # The template's preview picture shows another document.
            if item.filename == "docProps/thumbnail.jpeg":
                continue
            member = zipfile.ZipInfo(item.filename, _EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            content = source.read(item.filename)
            if item.filename == "_rels/.rels":
                content = _without_thumbnail(content)
            target.writestr(member, content)


def _without_thumbnail(relations: bytes) -> bytes:
    root = parse_xml(relations)
    for relation in list(root):
        if relation.get("Target", "").endswith("thumbnail.jpeg"):
            root.remove(relation)
    return etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True)
