"""The second, plain pass over a DOCX for the receipt: all words of the XML, paragraph by paragraph.

It knows neither tables nor lists nor order; only which words Word shows once all changes are
accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from lxml import etree

from retrieval.parse.docx_margins import margin_source
from retrieval.parse.docx_styles import Styles, W, is_on, value
from retrieval.parse.source import Source

_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_M = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_TEXT = (W + "t", _M + "t", W + "delText")
_SPACE = (W + "tab", W + "br", W + "cr", W + "ptab")
_GONE = (W + "del", W + "moveFrom")
# A second rendering of the same words for programs that know less; ruby is set small above them.
_TWICE = (_MC + "Fallback", W + "rt")


def docx_source(
    parts: Sequence[etree._Element],
    comments: etree._Element | None,
    margins: list[tuple[str, etree._Element]],
    added: Sequence[str],
    styles: Styles,
    page_count: int,
) -> Source:
    """The second count of a document: its main part and notes (`parts`, the main one first), its
    comments, and its headers and footers. Tables count on page 1: a DOCX does not say reliably
    where its pages end."""
    shown, left_out = plain_docx(parts, styles)
    if comments is not None:
        left_out += "\n".join(plain_docx([comments], styles))
    around, dropped = margin_source(margins, lambda part: plain_docx([part], styles)[0])
    tables = sum(1 for _ in parts[0].iter(W + "tbl"))
    return Source(
        plain=f"{shown}\n{around}\n{left_out}",
        left_out=f"{left_out}\n{dropped}",
        added="\n".join(added),
        tables=(tables, *(0 for _ in range(page_count - 1))),
    )


def plain_docx(parts: Iterable[etree._Element], styles: Styles) -> tuple[str, str]:
    """(words shown, words that changes deleted or a style hides) of the parts of a document."""
    shown: list[str] = []
    left_out: list[str] = []
    for part in parts:
        _collect(part, styles, shown, left_out, False)
    return "".join(shown), "".join(left_out)


def _collect(
    node: etree._Element, styles: Styles, shown: list[str], left_out: list[str], gone: bool
) -> None:
    for child in node:
        tag = child.tag
        if tag in _TEXT:
            (left_out if gone or tag == W + "delText" else shown).append(child.text or "")
        elif tag in _SPACE:
            shown.append(" ")
            left_out.append(" ")
        elif tag == W + "noBreakHyphen":
            shown.append("-")
        elif tag not in _TWICE and isinstance(tag, str):
            away = gone or tag in _GONE or _is_hidden(child, styles) or _is_deleted_row(child)
            _collect(child, styles, shown, left_out, away)
            if tag == W + "p" and not _mark_is_deleted(child):
                shown.append("\n")
                left_out.append("\n")


def _is_hidden(node: etree._Element, styles: Styles) -> bool:
    if node.tag != W + "r":
        return False
    stated = is_on(node, "rPr/vanish")
    if stated is None:
        paragraph = next(node.iterancestors(W + "p"), None)
        style = value(paragraph, "pPr/pStyle") or styles.default
        return styles.is_hidden(value(node, "rPr/rStyle")) or styles.is_hidden(style)
    return stated


def _is_deleted_row(node: etree._Element) -> bool:
    return node.tag == W + "tr" and node.find(f"{W}trPr/{W}del") is not None


def _mark_is_deleted(node: etree._Element) -> bool:
    return node.find(f"{W}pPr/{W}rPr/{W}del") is not None
