"""Reads the body of a DOCX in order: paragraphs with their computed numbers, tables, footnotes.

Tracked changes count as accepted; comments stay out; headers and footers come once, at the end. It
knows nothing of page layout: page breaks are those that Word wrote into the file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lxml import etree

from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.docx_margins import margin_lines, margin_parts
from retrieval.parse.docx_package import Package
from retrieval.parse.docx_source import docx_source
from retrieval.parse.docx_styles import Numbering, Styles, W, is_on, value
from retrieval.parse.limits import ParseLimits
from retrieval.parse.pages import split_marked
from retrieval.parse.source import Source
from retrieval.types import DocumentPage, DocumentWarning

_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_DROPPED = frozenset(
    W + tag for tag in ("del", "moveFrom", "instrText", "delText", "rt", "rPr", "pPr")
)
# Wingdings marks that stand for ticked and empty boxes; any other symbol is shown as a bullet.
_SYMBOLS = {"F0FE": "☑", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F052": "☑", "F0A3": "☐"}
_SHORT_CELL = 80
# More than any printed page holds: breaks set by hand this far apart are not the only page ends.
_FULL_PAGE_CHARS = 6000


def read_docx(
    data: bytes, name: str, limits: ParseLimits, check: Callable[[], None]
) -> tuple[str, tuple[DocumentPage, ...], tuple[DocumentWarning, ...], Source]:
    """Text, pages, warnings and second count of a DOCX. `check` is called often and may raise.

    Raises Damaged, Encrypted, TooLarge.
    """
    with Package(data, name, limits) as package:
        root = package.document()
        styles = Styles(package.related("styles"))
        numbering = Numbering(package.related("numbering"), styles)
        note_parts = [package.related(kind) for kind in ("footnotes", "endnotes")]
        comments = package.related("comments")
        margins = margin_parts(package, root)
    notes = dict(zip(("footnote", "endnote"), map(_notes, note_parts), strict=True))
    body = root.find(W + "body")
    reader = _Body(styles, numbering, notes, check)
    lines = reader.blocks(body) if body is not None else []
    lines += reader.note_lines()
    lines += margin_lines(margins, reader.blocks)
    text, pages = split_marked("\n".join(lines))
    if not reader.has_rendered_breaks and any(
        page.end - page.start > _FULL_PAGE_CHARS for page in pages
    ):
        pages = (DocumentPage(1, 0, len(text)),)
    used = [notes[kind][key] for kind, key in reader.used_notes]
    source = docx_source([root, *used], comments, margins, reader.added, styles, len(pages))
    return text, pages, reader.warnings(root, len(pages)), source


def _notes(root: etree._Element | None) -> dict[str, etree._Element]:
    if root is None:
        return {}
    return {
        node.get(W + "id", ""): node
        for node in root
        if isinstance(node.tag, str) and node.get(W + "type") in (None, "normal")
    }


@dataclass(slots=True)
class _Body:
    """Turns block elements into lines; "\\f" inside a line marks where Word began a new page.
    `added` notes what the lines hold beyond the words of the file: list numbers, note marks."""

    styles: Styles
    numbering: Numbering
    notes: dict[str, dict[str, etree._Element]]
    check: Callable[[], None]
    added: list[str] = field(default_factory=list)
    _used: list[tuple[str, str]] = field(default_factory=list)
    _boxes: list[str] = field(default_factory=list)
    _carried: str = ""
    _tracked: bool = False
    _hidden: bool = False
    _rendered_breaks: bool = False
    _stated_breaks: bool = False

    def blocks(self, parent: etree._Element) -> list[str]:
        """Lines of the block elements in `parent`, which may be wrapped (sdt, ins, customXml)."""
        lines: list[str] = []
        for node in parent:
            if node.tag == W + "p":
                self.check()
                lines += self._paragraph(node)
            elif node.tag == W + "tbl":
                lines += self._table(node)
            elif node.tag == _MC + "AlternateContent":
                lines += self.blocks(node[0]) if len(node) else []
            elif node.tag in _DROPPED:
                self._tracked = True
            elif isinstance(node.tag, str) and node.tag not in (W + "sectPr", W + "tcPr"):
                lines += self.blocks(node)
        return lines

    @property
    def has_rendered_breaks(self) -> bool:
        """Whether Word wrote down where its pages ended."""
        return self._rendered_breaks

    @property
    def used_notes(self) -> tuple[tuple[str, str], ...]:
        """(kind, id) of the notes that the body refers to, each once."""
        return tuple(dict.fromkeys(self._used))

    def note_lines(self) -> list[str]:
        """Footnotes and endnotes in the order of their marks: "[^1] text"."""
        lines: list[str] = []
        for index, (kind, key) in enumerate(self._used, 1):
            note = self.notes[kind].get(key)
            text = " ".join(self.blocks(note)).strip() if note is not None else ""
            if text:
                lines.append(f"[^{index}] {text.replace(chr(12), '')}")
        return lines

    def warnings(self, root: etree._Element, page_count: int) -> tuple[DocumentWarning, ...]:
        found: list[DocumentWarning] = []
        if self._tracked:
            found.append(
                DocumentWarning(
                    "tracked_changes",
                    "The document has tracked changes; it was read as if all were accepted.",
                )
            )
        if next(root.iter(W + "commentReference"), None) is not None:
            found.append(DocumentWarning("comments", "Comments in the document were left out."))
        if self._hidden:
            found.append(
                DocumentWarning("hidden_text", "Hidden text in the document was left out.")
            )
        if page_count > 1 and self._stated_breaks and not self._rendered_breaks:
            found.append(
                DocumentWarning(
                    "approximate_pages",
                    "Page numbers count only the page breaks set by hand; save the document as PDF "
                    "for exact ones.",
                )
            )
        return tuple(found)

    def _paragraph(self, node: etree._Element) -> list[str]:
        properties = node.find(W + "pPr")
        style = value(properties, "pStyle") or self.styles.default
        boxes, self._boxes = self._boxes, []
        pieces: list[str] = []
        self._runs(node, self.styles.is_hidden(style), pieces)
        raw, self._carried = self._carried + "".join(pieces), ""
        text = collapse_spaces(clean_text(raw))
        lines, self._boxes = self._boxes, boxes
        ended = self._mark_stays(properties)
        before = ""
        if is_on(properties, "pageBreakBefore"):
            self._stated_breaks = True
            before = "\f"
        if not text.replace("\f", "").strip():
            # An empty list paragraph shows its number in Word only with text; it isn't counted
            # when its mark was deleted, and its page break counts in any case.
            if ended and text == "" and not lines and self._is_counted(node):
                self.numbering.label(node)
            return ([before + text] if before + text else []) + lines
        if not ended:
            self._carried = raw
            return lines
        # A break at the very start comes before the number.
        while text.startswith("\f"):
            before, text = before + "\f", text[1:].lstrip()
        label = self.numbering.label(node)
        self.added.append(label)
        return [before + label + text, *lines]

    def _mark_stays(self, properties: etree._Element | None) -> bool:
        """False when the paragraph mark was deleted: the text then runs into the next paragraph."""
        if properties is None:
            return True
        if properties.find(f"{W}rPr/{W}del") is not None:
            self._tracked = True
            return False
        if properties.find(f"{W}rPr/{W}ins") is not None:
            self._tracked = True
        return True

    def _is_counted(self, node: etree._Element) -> bool:
        return node.find(f"{W}pPr/{W}numPr") is not None

    def _runs(self, node: etree._Element, hidden: bool, pieces: list[str]) -> None:
        """Appends the visible text under `node`, a paragraph or anything inside one."""
        for child in node:
            tag = child.tag
            if tag == W + "r":
                self._run(child, hidden, pieces)
            elif tag in (W + "del", W + "moveFrom"):
                self._tracked = True
            elif tag in _DROPPED or not isinstance(tag, str):
                continue
            elif tag == _M + "t":
                pieces.append(child.text or "")
            elif tag == _MC + "AlternateContent":
                if len(child):
                    self._runs(child[0], hidden, pieces)
            else:
                if tag in (W + "ins", W + "moveTo"):
                    self._tracked = True
                self._runs(child, hidden, pieces)

    def _run(self, run: etree._Element, hidden: bool, pieces: list[str]) -> None:
        stated = is_on(run, "rPr/vanish")
        if stated is None:
            stated = self.styles.is_hidden(value(run, "rPr/rStyle")) or hidden
        if stated:
            self._hidden = self._hidden or next(run.iter(W + "t"), None) is not None
            return
        self._content(run, pieces)

    def _content(self, node: etree._Element, pieces: list[str]) -> None:
        for child in node:
            tag = child.tag
            if tag == W + "t" or tag == _M + "t":
                pieces.append(child.text or "")
            elif tag in (W + "tab", W + "ptab"):
                pieces.append("\t")
            elif tag == W + "lastRenderedPageBreak":
                self._rendered_breaks = True
                pieces.append("\f")
            elif tag == W + "br" and child.get(W + "type") == "page":
                self._stated_breaks = True
                pieces.append("\f")
            elif tag in (W + "br", W + "cr"):
                pieces.append("\n")
            elif tag == W + "noBreakHyphen":
                pieces.append("-")
            elif tag == W + "sym":
                pieces.append(_SYMBOLS.get(child.get(W + "char", "").upper(), "•"))
            elif tag in (W + "footnoteReference", W + "endnoteReference"):
                self._reference(child, pieces)
            elif tag == W + "txbxContent":
                # A text box floats: its lines follow the paragraph that it is anchored to.
                self._boxes += self.blocks(child)
            elif tag == _MC + "AlternateContent":
                if len(child):
                    self._content(child[0], pieces)
            elif tag not in _DROPPED and isinstance(tag, str):
                self._content(child, pieces)

    def _reference(self, node: etree._Element, pieces: list[str]) -> None:
        kind = "footnote" if node.tag == W + "footnoteReference" else "endnote"
        key = node.get(W + "id", "")
        if key in self.notes[kind]:
            self._used.append((kind, key))
            # Once here, once before the note itself.
            self.added += [str(len(self._used))] * 2
            pieces.append(f"[^{len(self._used)}]")

    def _table(self, node: etree._Element) -> list[str]:
        lines: list[str] = []
        for row in _wrapped(node, "tr"):
            self.check()
            properties = row.find(W + "trPr")
            if properties is not None and properties.find(W + "del") is not None:
                self._tracked = True
                continue
            cells: list[str] = []
            for cell in _wrapped(row, "tc"):
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                if merged is not None and merged.get(W + "val") != "restart":
                    continue
                cells.append("\n".join(self.blocks(cell)).strip(" \n"))
            # Each cell of a row that crosses a page holds the break; the row counts it once.
            breaks = max((cell.count("\f") for cell in cells), default=0)
            cells = [text for cell in cells if (text := cell.replace("\f", "").strip())]
            nested = next(row.iter(W + "tbl"), None) is not None
            if len(cells) > 1 and not nested and all(len(cell) <= _SHORT_CELL for cell in cells):
                cells = [cell.replace("\n", " ") for cell in cells]
            if cells or breaks:
                lines.append("\f" * breaks + " | ".join(cells))
        return lines


def _wrapped(parent: etree._Element, tag: str) -> list[etree._Element]:
    """Children named `tag`, also inside content controls and tracked insertions."""
    found: list[etree._Element] = []
    for node in parent:
        if node.tag == W + tag:
            found.append(node)
        elif node.tag in (W + "sdt", W + "sdtContent", W + "customXml", W + "ins"):
            found += _wrapped(node, tag)
    return found
