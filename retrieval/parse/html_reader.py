"""Reads HTML as blocks of text: one block a line, table rows with " | ", list numbers written out.
Scripts, styles and hidden elements are dropped. It loads nothing from outside and knows no style
sheets, only inline styles."""

from __future__ import annotations

import re

from lxml import etree, html

from retrieval.errors import Damaged
from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.decode import decode
from retrieval.parse.numerals import numeral
from retrieval.parse.source import Source, plain_html

_DROPPED = frozenset(
    [
        "script",
        "style",
        "template",
        "noscript",
        "head",
        "iframe",
        "object",
        "embed",
        "svg",
        "math",
        "canvas",
        "audio",
        "video",
        "select",
        "textarea",
        "button",
        "input",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "caption",
        "center",
        "dd",
        "details",
        "dialog",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "td",
        "tfoot",
        "th",
        "thead",
        "title",
        "tr",
        "ul",
    ]
)
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![.\d])", re.I)
_META = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.I)
_XML = re.compile(rb"""^\s*<\?xml[^>]+encoding\s*=\s*["']([A-Za-z0-9_:.-]+)""", re.I)
_LIST_KINDS = {
    "1": "decimal",
    "a": "lowerLetter",
    "A": "upperLetter",
    "i": "lowerRoman",
    "I": "upperRoman",
}


def read_html(data: bytes, name: str) -> tuple[str, str, Source]:
    """Text, encoding and second count of an HTML file. Raises Undecodable or Damaged."""
    head = data[:4096]
    found = _META.search(head) or _XML.search(head)
    raw, encoding = decode(data, name, declared=found.group(1).decode() if found else None)
    cleaned = clean_text(raw).replace("\f", " ")
    hidden: list[str] = []
    try:
        text = html_text(cleaned, hidden)
    except (etree.ParserError, RecursionError) as error:
        raise Damaged(f"“{name}” can't be read as HTML ({error}). Save the page again.") from error
    return text, encoding, Source(plain_html(cleaned), "\n".join(hidden))


def html_text(source: str, hidden: list[str] | None = None) -> str:
    """The visible text of an HTML page or fragment; empty for one without elements or text.

    `hidden` collects the text of elements that a style or attribute hides.
    """
    if not source.strip():
        return ""
    # Bytes with a stated encoding: lxml refuses strings that declare one themselves.
    parser = html.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
    )
    root = etree.fromstring(source.encode("utf-8"), parser)
    if root is None:
        return ""
    writer = _Writer([] if hidden is None else hidden)
    writer.element(root)
    return writer.text()


class _Writer:
    """Collects lines. lxml's parser caps the depth of the tree at 256, so recursion is safe."""

    def __init__(self, hidden: list[str]) -> None:
        self._hidden = hidden
        self._lines: list[str] = []
        self._line: list[str] = []
        self._prefix = ""

    def text(self) -> str:
        self._break()
        return "\n".join(self._lines)

    def element(self, node: html.HtmlElement) -> None:
        tag = node.tag
        if not isinstance(tag, str) or tag in _DROPPED or self._hides(node):
            return
        if tag == "br":
            self._break()
        elif tag == "table":
            self._table(node)
        elif tag == "pre":
            self._break()
            for line in "".join(node.itertext()).split("\n"):
                self._line.append(line)
                self._break()
        elif tag == "ol":
            self._ordered(node)
        elif tag in _BLOCKS:
            self._break()
            if tag == "li":
                self._prefix += "- " if not self._prefix else ""
            self._children(node)
            self._break()
        else:
            self._children(node)

    def _children(self, node: html.HtmlElement) -> None:
        self._line.append(_flow(node.text))
        for child in node:
            self.element(child)
            self._line.append(_flow(child.tail))

    def _ordered(self, node: html.HtmlElement) -> None:
        self._break()
        kind = _LIST_KINDS.get(node.get("type", "1"), "decimal")
        number = _integer(node.get("start"), 1)
        for child in node:
            if child.tag == "li" and not _is_hidden(child):
                number = _integer(child.get("value"), number)
                self._prefix += f"{numeral(number, kind)}. "
                number += 1
            self.element(child)
        self._break()

    def _table(self, node: html.HtmlElement) -> None:
        """Rows of a data table; a table that only lays out blocks reads as those blocks."""
        self._break()
        for row in node.iter("tr"):
            if _nearest(row, "table") is not node or self._hides(row):
                continue
            cells: list[str] = []
            for cell in row:
                if cell.tag not in ("td", "th") or self._hides(cell):
                    continue
                inner = _Writer(self._hidden)
                inner._children(cell)
                text = inner.text()
                if text.strip():
                    cells.append(text)
            if len(cells) > 1:
                cells = [cell.replace("\n", " ") for cell in cells]
            self._line.append(" | ".join(cells).replace("\n", "\v"))
            self._break()
        caption = node.find("caption")
        if caption is not None:
            self.element(caption)

    def _hides(self, node: html.HtmlElement) -> bool:
        if not _is_hidden(node):
            return False
        self._hidden.append("".join(node.itertext()))
        return True

    def _break(self) -> None:
        text = collapse_spaces("".join(self._line)).replace("\v", "\n").strip()
        self._line = []
        if text:
            self._lines.append(self._prefix + text)
            self._prefix = ""


def _flow(text: str | None) -> str:
    return re.sub(r"[ \t\n\r\f\xa0]+", " ", text or "")


def _is_hidden(node: html.HtmlElement) -> bool:
    return "hidden" in node.attrib or _HIDDEN.search(node.get("style", "")) is not None


def _nearest(node: html.HtmlElement, tag: str) -> html.HtmlElement | None:
    return next(node.iterancestors(tag), None)


def _integer(value: str | None, default: int) -> int:
    try:
        return int(value) if value is not None else default
    except ValueError:
        return default
