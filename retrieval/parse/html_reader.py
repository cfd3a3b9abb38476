"""Reads HTML as blocks of text: one block a line, table rows with " | ", list numbers written out.
Scripts, styles and hidden elements are dropped. It loads nothing from outside and knows no style
sheets, only inline styles."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree, html

from retrieval.errors import Damaged
from retrieval.parse.cleaning import clean_text, collapse_spaces
from retrieval.parse.decode import decode
from retrieval.parse.html_flat import flatten
from retrieval.parse.numerals import bounded, numeral
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
_HIDDEN_ATTRIBUTE = re.compile(r"(?:^|\s)hidden(?![\w-])", re.I)
_ROWS = ("tr", "thead", "tbody", "tfoot", "form")
_DEPTH = 256
"""Elements in each other that are read as they are: each takes frames of Python's stack."""
_FLAT_DEPTHS = (128, 0)
_META = re.compile(rb"""<meta[^>]+charset\s*=\s*["']?\s*([A-Za-z0-9_:.-]+)""", re.I)
_XML = re.compile(rb"""^\s*<\?xml[^>]+encoding\s*=\s*["']([A-Za-z0-9_:.-]+)""", re.I)
_LIST_KINDS = {
    "1": "decimal",
    "a": "lower-alpha",
    "A": "upper-alpha",
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
    found: list[str] = []
    text = _read(source, found)
    for depth in _FLAT_DEPTHS:
        if text is None:
            flat = flatten(source, depth, breaks=_BLOCKS.__contains__, left_out=_left_out)
            found = []
            text = _read(flat, found)
    if text is None:
        raise RecursionError("its elements are nested too deep")
    if hidden is not None:
        hidden += found
    return text


def _read(source: str, hidden: list[str]) -> str | None:
    """The text of a page; None for one that is too deep to be read to its end."""
    # Bytes with a stated encoding: lxml refuses strings that declare one themselves. Without
    # huge_tree the parser ends at depth 256 or a text of 10 MB, and with it at 2,048, and what
    # follows is lost without an error.
    parser = html.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True
    )
    root = etree.fromstring(source.encode("utf-8"), parser)
    log = parser.error_log
    if len(log) and log[len(log) - 1].type == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
        return None
    if root is None:
        return ""
    writer = _Writer(hidden)
    try:
        writer.element(root)
    except (_TooDeep, RecursionError):
        return None
    return writer.text()


def _left_out(tag: str, attributes: str) -> bool:
    hidden = _HIDDEN.search(attributes) or _HIDDEN_ATTRIBUTE.search(attributes)
    return tag in _DROPPED or hidden is not None


class _TooDeep(Exception):
    """A page has elements deeper than _DEPTH."""


class _Writer:
    """Collects lines. `depth`: elements around the one that is written."""

    def __init__(self, hidden: list[str], depth: int = 0) -> None:
        self._hidden = hidden
        self._depth = depth
        self._lines: list[str] = []
        self._line: list[str] = []
        self._prefix = ""

    def text(self) -> str:
        self._break()
        return "\n".join(self._lines)

    def element(self, node: html.HtmlElement) -> None:
        """Writes an element with all that is in it. Raises _TooDeep."""
        if self._depth >= _DEPTH:
            raise _TooDeep
        self._depth += 1
        self._element(node)
        self._depth -= 1

    def _element(self, node: html.HtmlElement) -> None:
        tag = node.tag
        if not isinstance(tag, str) or tag in _DROPPED or self._hides(node):
            return
        if tag == "br":
            self._break()
        elif tag == "table":
            self._table(node)
        elif tag == "pre":
            self._break()
            for line in self._preformatted(node).split("\n"):
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
        number = bounded(node.get("start"), 1)
        self._line.append(_flow(node.text))
        for child in node:
            if child.tag == "li" and not _is_hidden(child):
                self._break()
                number = bounded(child.get("value"), number)
                self._prefix += f"{numeral(number, kind)}. "
                number += 1
            self.element(child)
            self._line.append(_flow(child.tail))
        self._break()

    def _table(self, node: html.HtmlElement) -> None:
        """Rows of a data table; a table that only lays out blocks reads as those blocks."""
        self._break()
        self._rows(node)
        self._break()
        for caption in node.findall("caption"):
            self.element(caption)

    def _rows(self, node: html.HtmlElement) -> None:
        """The rows under a part of a table, and what stands between them."""
        self._line.append(_flow(node.text))
        for child in node:
            if child.tag in _ROWS and not self._hides(child):
                self._break()
                if child.tag == "tr":
                    cells = [text for text in self._cells(child) if text.strip()]
                    if len(cells) > 1:
                        cells = [cell.replace("\n", " ") for cell in cells]
                    self._line.append(" | ".join(cells).replace("\n", "\v"))
                else:
                    self._rows(child)
                self._break()
            elif child.tag not in _ROWS and (child.tag != "caption" or node.tag != "table"):
                self.element(child)
            self._line.append(_flow(child.tail))

    def _cells(self, row: html.HtmlElement) -> Iterator[str]:
        """The cells of a row; what stands beside them counts as one."""
        yield _flow(row.text)
        for child in row:
            inner = _Writer(self._hidden, self._depth + 2)
            if child.tag in ("td", "th"):
                if not self._hides(child):
                    inner._children(child)
                    yield inner.text()
            elif child.tag == "form" and not self._hides(child):
                yield from self._cells(child)
            else:
                inner.element(child)
                yield inner.text()
            yield _flow(child.tail)

    def _preformatted(self, node: html.HtmlElement) -> str:
        """The text of an element as it stands, with what starts a line in it on one of its own."""
        pieces: list[str] = []
        skipped = None
        walker = etree.iterwalk(node, events=("start", "end"))
        for event, one in walker:
            line = "\n" if one is not node and (one.tag in _BLOCKS or one.tag == "br") else ""
            if event == "start":
                if one.tag in _DROPPED or (one is not node and self._hides(one)):
                    skipped = one
                    walker.skip_subtree()
                else:
                    pieces += [line, one.text or ""]
            elif one is not node:
                ends = "" if one is skipped or one.tag == "br" else line
                pieces += [ends, one.tail or ""]
        return "".join(pieces)

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
