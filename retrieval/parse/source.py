"""What a second, plain pass over a file finds, for the receipt to compare the index with.

It shares no code with the readers' layout, so that what the layout loses is still counted here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html.parser import HTMLParser

_UNSHOWN = re.compile(
    "script|style|template|noscript|head|iframe|object|svg|math|canvas|select|textarea|button"
    "|audio|video"
)
_INLINE = re.compile("b|i|u|em|strong|span|font|a|small|mark|ins|code|abbr|wbr|sup|sub")
_TARGET = re.compile(r"\]\([^)\s]{1,2000}(?:\s+\"[^\"\n]*\")?\)|^\[[^\]\n]+\]:\s.*$", re.MULTILINE)
_LIST_MARK = re.compile(r"^[ \t>]*\d{1,9}[.)](?=\s)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Source:
    """`plain` is all text of the file, in any order; `left_out` the part of it that was kept out of
    the document on purpose (running headers, hidden text, comments, deleted words); `added` what
    the document's text holds on top (numbers that Word computes for its lists, marks of notes).
    `tables` and `garbled` (share of characters that can't be decoded, or that OCR was unsure of)
    have one entry a page, or none when nothing is known."""

    plain: str
    left_out: str = ""
    added: str = ""
    tables: tuple[int, ...] = ()
    garbled: tuple[float, ...] = ()


def plain_html(raw: str) -> str:
    """The words of HTML markup without what browsers never show."""
    reader = _PlainReader()
    reader.feed(raw)
    reader.close()
    return "".join(reader.pieces)


def plain_markdown(raw: str) -> str:
    """Markdown without the targets of links and the numbers of lists, which may be shown anew."""
    body = raw
    if raw.startswith("---\n"):
        body = raw[4:].partition("\n---\n")[2] or raw
    return plain_html(_LIST_MARK.sub("", _TARGET.sub("]", body)))


class _PlainReader(HTMLParser):
    """Collects text outside elements that are never shown."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if _UNSHOWN.fullmatch(tag):
            self._inside.append(tag)
        elif not _INLINE.fullmatch(tag):
            self.pieces.append("\n")

    def handle_endtag(self, tag: str) -> None:
        if self._inside and self._inside[-1] == tag:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.pieces.append(data)
