"""Sets a sample contract as a PDF: cover, contents, roman front matter, headers and footers.

English is set in Bitstream Vera, which comes with reportlab; Chinese in LXGW WenKai, which must be
installed. Does not know where contracts come from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import reportlab
from reportlab.lib import colors
from reportlab.lib.enums import TA_RIGHT
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    BaseDocTemplate,
    Frame,
    NextPageTemplate,
    PageBreak,
    PageTemplate,
    Paragraph,
    Spacer,
    Table,
    TableStyle,
)
from reportlab.platypus.tableofcontents import TableOfContents

from scripts.sample_source import Contract, Entry, right_aligned

_CJK_FOLDER = Path("/usr/share/fonts/truetype/lxgw-wenkai")
_CJK_FONTS = {
    "body": (
        "LXGWWenKai-Regular.ttf",
        "bbf534b0ca093928f94d1782855e65a19a32cde82b075d495d072025521953c8",
    ),
    "bold": (
        "LXGWWenKai-Bold.ttf",
        "2a24551c5c4fb42507aafa4773b08a5ea55d538a8d449032663ec9e3027a707e",
    ),
}
"""Names and SHA-256 of LXGW WenKai 1.250, SIL OFL 1.1 (Debian 12 package fonts-lxgw-wenkai)."""

_VERA = Path(reportlab.__file__).parent / "fonts"
_MARGIN = 30 * mm
_WIDTH = A4[0] - 2 * _MARGIN


class FontMissing(Exception):
    """The font that a sample is set in is not installed; the message says how to get it."""


def write_pdf(contract: Contract, path: Path) -> None:
    """Set `contract` and write it to `path`. The same input gives the same bytes.

    Raises:
        FontMissing: the CJK font is not installed.
    """
    _register_fonts(contract.lang)
    document = _Template(str(path), contract)
    document.multiBuild(_Setter(contract).story(document.page_label))


def _register_fonts(lang: str) -> None:
    if lang == "en":
        for name, file in (("body", "Vera.ttf"), ("bold", "VeraBd.ttf")):
            pdfmetrics.registerFont(TTFont(f"en-{name}", _VERA / file))
        pdfmetrics.registerFontFamily("en-body", normal="en-body", bold="en-bold")
        return
    for name, (file, digest) in _CJK_FONTS.items():
        path = _CJK_FOLDER / file
        if not path.is_file() or hashlib.sha256(path.read_bytes()).hexdigest() != digest:
            raise FontMissing(
                f"The Chinese PDF is set in {path} of LXGW WenKai 1.250, which is not there. "
                "On Debian 12: apt-get install fonts-lxgw-wenkai"
            )
        pdfmetrics.registerFont(TTFont(f"zh-{name}", path))
    pdfmetrics.registerFontFamily("zh-body", normal="zh-body", bold="zh-bold")


class _Template(BaseDocTemplate):  # type: ignore[misc]
    """Page frames, headers, footers, page labels and outline."""

    def __init__(self, path: str, contract: Contract) -> None:
        super().__init__(
            path,
            pagesize=A4,
            leftMargin=_MARGIN,
            rightMargin=_MARGIN,
            topMargin=30 * mm,
            bottomMargin=28 * mm,
            title=contract.title,
            author=" / ".join(contract.parties),
            subject=contract.number,
            invariant=1,
        )
        self._contract = contract
        self._front_pages = 0
        frame = Frame(_MARGIN, 28 * mm, _WIDTH, A4[1] - 58 * mm, 0, 0, 0, 0, id="text")
        self.addPageTemplates(
            [
                PageTemplate("cover", [frame]),
                PageTemplate("front", [frame], onPage=self._draw_front),
                PageTemplate("main", [frame], onPage=self._draw_main),
            ]
        )

    def handle_pageBegin(self) -> None:
        super().handle_pageBegin()
        if self.page == 1:
            self.canv.addPageLabel(0, "ROMAN_LOWER", 1)

    def _draw_front(self, canvas: Any, _document: Any) -> None:
        self._front_pages = max(self._front_pages, canvas.getPageNumber())
        self._draw_edges(canvas, _roman(canvas.getPageNumber()))

    def _draw_main(self, canvas: Any, _document: Any) -> None:
        number = canvas.getPageNumber() - self._front_pages
        if number == 1:
            canvas.addPageLabel(canvas.getPageNumber() - 1, "ARABIC", 1)
        self._draw_edges(canvas, str(number))

    def _draw_edges(self, canvas: Any, label: str) -> None:
        contract = self._contract
        canvas.saveState()
        canvas.setFont(f"{contract.lang}-body", 8)
        canvas.setFillColor(colors.HexColor("#555555"))
        top = A4[1] - 18 * mm
        canvas.drawString(_MARGIN, top, contract.title)
        number = "合同编号：" if contract.lang == "zh" else "Agreement no. "
        canvas.drawRightString(A4[0] - _MARGIN, top, number + contract.number)
        canvas.setLineWidth(0.4)
        canvas.setStrokeColor(colors.HexColor("#999999"))
        canvas.line(_MARGIN, top - 5, A4[0] - _MARGIN, top - 5)
        page = f"第 {label} 页" if contract.lang == "zh" else f"Page {label}"
        canvas.drawCentredString(A4[0] / 2, 15 * mm, page)
        canvas.restoreState()

    def afterFlowable(self, flowable: Any) -> None:
        level = getattr(flowable, "outline_level", None)
        if level is None:
            return
        key = flowable.outline_key
        self.canv.bookmarkPage(key)
        self.canv.addOutlineEntry(flowable.outline_text, key, level, closed=level == 0)
        self.notify("TOCEntry", (level, escape(flowable.outline_text), self.page, key))

    def page_label(self, page: int) -> str:
        """The number printed on a physical page."""
        front = self._front_pages
        return _roman(page) if page <= front else str(page - front)


class _Setter:
    """Turns the parts of a contract into flowables."""

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        zh = contract.lang == "zh"
        base = ParagraphStyle(
            "base",
            fontName=f"{contract.lang}-body",
            bulletFontName=f"{contract.lang}-body",
            bulletFontSize=12 if zh else 10.5,
            fontSize=12 if zh else 10.5,
            leading=27 if zh else 16.5,
            spaceAfter=10 if zh else 9,
            wordWrap="CJK" if zh else None,
        )
        self._base = base
        bold = f"{contract.lang}-bold"
        self._cover = ParagraphStyle("cover", base, fontName=bold, fontSize=26, leading=36)
        self._part = ParagraphStyle(
            "part", base, fontName=bold, fontSize=16, leading=24, spaceAfter=16, keepWithNext=1
        )
        self._heading = ParagraphStyle(
            "heading",
            base,
            fontName=bold,
            fontSize=14 if zh else 11.5,
            spaceBefore=12,
            keepWithNext=1,
        )
        self._item = ParagraphStyle("item", base, leftIndent=34, bulletIndent=0)
        self._subitem = ParagraphStyle("subitem", base, leftIndent=64, bulletIndent=34)
        self._cell = ParagraphStyle("cell", base, fontSize=9, leading=13, spaceAfter=0)
        self._caption = ParagraphStyle(
            "caption", base, fontName=bold, fontSize=9.5, spaceAfter=3, keepWithNext=1
        )
        self._keys = 0

    def story(self, page_label: Callable[[int], str]) -> list[Any]:
        contract = self._contract
        zh = contract.lang == "zh"
        story: list[Any] = [Spacer(1, 60 * mm), Paragraph(escape(contract.title), self._cover)]
        story += [Spacer(1, 6 * mm), Paragraph(escape(contract.subtitle), self._base)]
        story.append(Spacer(1, 20 * mm))
        story += [Paragraph(escape(party), self._base) for party in contract.parties]
        label = "合同编号：" if zh else "Agreement no. "
        story += [
            Spacer(1, 12 * mm),
            Paragraph(label + contract.number, self._base),
            Paragraph(contract.date, self._base),
            Spacer(1, 24 * mm),
            Paragraph(escape(contract.note), self._cell),
            NextPageTemplate("front"),
            PageBreak(),
            Paragraph("目录" if zh else "Contents", self._part),
            self._contents(page_label),
        ]
        for part in contract.parts:
            if part.kind != "front":
                story.append(NextPageTemplate("main"))
            story.append(PageBreak())
            title = part.title
            if part.number:
                title = f"{part.number}　{title}" if zh else f"{part.number} – {title}"
            story.append(self._titled(title, self._part, 0))
            for entry in part.entries:
                story += self._entry(entry)
        return story

    def _contents(self, page_label: Callable[[int], str]) -> TableOfContents:
        contents = TableOfContents(dotsMinLevel=0, formatter=page_label)
        contents.levelStyles = [
            ParagraphStyle("toc0", self._base, fontSize=10.5, leading=17, spaceAfter=2),
            ParagraphStyle(
                "toc1", self._base, fontSize=9.5, leading=15, leftIndent=18, spaceAfter=1
            ),
        ]
        for style in contents.levelStyles:
            # The CJK breaker cannot set the leader dots.
            style.wordWrap = None
        return contents

    def _titled(self, title: str, style: ParagraphStyle, level: int) -> Paragraph:
        paragraph = Paragraph(escape(title), style)
        self._keys += 1
        paragraph.outline_level = level
        paragraph.outline_text = title
        paragraph.outline_key = f"h{self._keys}"
        return paragraph

    def _entry(self, entry: Entry) -> list[Any]:
        zh = self._contract.lang == "zh"
        if entry.kind == "heading":
            return [
                self._titled(f"{entry.number}{'　' if zh else ' '}{entry.text}", self._heading, 1)
            ]
        if entry.kind == "table":
            caption = [Paragraph(escape(entry.text), self._caption)] if entry.text else []
            return [*caption, self._table(entry), Spacer(1, 10)]
        if entry.kind == "paragraph":
            return [Paragraph(self._markup(entry.text), self._base)]
        style = self._item if entry.kind == "item" else self._subitem
        return [Paragraph(self._markup(entry.text), style, bulletText=entry.number)]

    def _markup(self, text: str) -> str:
        pieces = escape(text).split("**")
        return "".join(f"<b>{p}</b>" if i % 2 else p for i, p in enumerate(pieces))

    def _table(self, entry: Entry) -> Table:
        right = right_aligned(entry.rows)
        flush = ParagraphStyle("flush", self._cell, alignment=TA_RIGHT)
        cells = [
            [
                Paragraph(escape(cell), flush if right[column] else self._cell)
                for column, cell in enumerate(row)
            ]
            for row in entry.rows
        ]
        longest = [
            max(pdfmetrics.stringWidth(c, self._cell.fontName, 9) for c in column) + 14
            for column in zip(*entry.rows, strict=True)
        ]
        scale = _WIDTH / sum(longest)
        table = Table(cells, colWidths=[width * scale for width in longest], repeatRows=1)
        table.setStyle(
            TableStyle(
                [
                    ("GRID", (0, 0), (-1, -1), 0.4, colors.HexColor("#888888")),
                    ("BACKGROUND", (0, 0), (-1, 0), colors.HexColor("#eeeeee")),
                    ("VALIGN", (0, 0), (-1, -1), "TOP"),
                    ("LEFTPADDING", (0, 0), (-1, -1), 4),
                    ("RIGHTPADDING", (0, 0), (-1, -1), 4),
                ]
            )
        )
        return table


def _roman(value: int) -> str:
    text = ""
    for number, sign in ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")):
        while value >= number:
            text, value = text + sign, value - number
    return text
