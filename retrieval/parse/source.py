"""What a second, plain pass over a file finds, for the receipt to compare the index with.

It shares no code with the readers' layout, so that what the layout loses is still counted here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape

_UNSHOWN = re.compile(
    "script|style|template|noscript|head|iframe|object|svg|math|canvas|select|textarea|button"
    "|audio|video"
)
_INLINE = re.compile("b|i|u|em|strong|span|font|a|small|mark|ins|code|abbr|wbr|sup|sub")
# Each branch goes on to the end where its close is missing, as browsers do: so no part of a page is
# looked at twice, whatever it holds. (Python's own parser took a minute for 240 KB of "<!--".)
_MARKUP = re.compile(
    r"<(?P<raw>script|style)\b[^>]*(?:>|\Z).*?(?:</(?P=raw)[^>]*(?:>|\Z)|\Z)"
    r"|<!--.*?(?:-->|\Z)"
    r"|<[!?][^>]*(?:>|\Z)"
    r"|<(?P<close>/?)(?P<tag>[a-z][^\s/>]*)"
    r"(?P<rest>(?:=\s*\"[^\"]*(?:\"|\Z)|=\s*'[^']*(?:'|\Z)|[^>])*+)(?:>|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_TARGET = re.compile(
    r"\]\((?:(?!\]\()[^)\s]){1,2000}+(?:\s+\"[^\"\n]*\")?\)|^\[[^\]\n]+\]:\s.*$", re.MULTILINE
)
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
    pieces: list[str] = []
    inside: list[str] = []
    at = 0
    for found in _MARKUP.finditer(raw):
        if not inside:
            pieces.append(unescape(raw[at : found.start()]))
        at = found.end()
        tag = (found["tag"] or "").lower()
        if not _UNSHOWN.fullmatch(tag):
            if tag and not _INLINE.fullmatch(tag):
                pieces.append("\n")
        elif not found["close"]:
            if not found["rest"].endswith("/"):
                inside.append(tag)
        elif inside and inside[-1] == tag:
            inside.pop()
    if not inside:
        pieces.append(unescape(raw[at:]))
    return "".join(pieces)


def plain_markdown(raw: str) -> str:
    """Markdown without the targets of links and the numbers of lists, which may be shown anew."""
    body = raw
    if raw.startswith("---\n"):
        body = raw[4:].partition("\n---\n")[2] or raw
    return plain_html(_LIST_MARK.sub("", _TARGET.sub("]", body)))
