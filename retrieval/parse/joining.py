"""Decides whether two lines belong to one paragraph, and how they meet. Knows characters only, no
positions on a page."""

from __future__ import annotations

import re

_NUMBERED = re.compile(
    r"""(?ix)^\s*(?:
      第\s*[\d〇零一二三四五六七八九十百千]+\s*[条章节款项编部分]
    | [（(]\s*(?:[一二三四五六七八九十百]+|\d{1,3}|[a-z]|[ivxl]{1,6})\s*[)）]
    | [一二三四五六七八九十百]+\s*[、．.]
    | \d{1,3}(?:\.\d{1,3})+\.?(?=[\s\u4e00-\u9fff]|$)
    | [a-z]\.\d{1,3}(?:\.\d{1,3})*\.?(?=\s)
    | \d{1,3}[.)、．](?!\d)
    | [a-z][.)](?=\s)
    | [ivxl]{1,6}[.)](?=\s)
    | (?:article|section|clause|schedule|exhibit|annex|appendix|part|chapter|recital)
      \s+(?:\d[\d.]*|[ivxlc]+|[a-z])\b
    | [•●○■□▪◆–—*-](?=\s)
    | [①②③④⑤⑥⑦⑧⑨⑩]
    )"""
)
_TERMINAL = re.compile(r"""[.!?;:。！？；：…]["'”’）)\]】」』]*\s*$""")
_CJK = re.compile(
    r"[\u2e80-\u2fdf\u3000-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef“”‘’…—]"
)
_IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\u3001-\u3011\uff00-\uff0f\uff1a-\uff20]")
# Compounds with these first parts keep their hyphen when nothing in the document says otherwise.
_KEEPS_HYPHEN = frozenset(
    [
        "non",
        "self",
        "third",
        "pre",
        "co",
        "sub",
        "cross",
        "post",
        "semi",
        "anti",
        "ex",
        "all",
        "well",
        "multi",
        "inter",
        "two",
        "three",
        "four",
        "one",
        "first",
        "second",
        "long",
        "short",
        "full",
        "part",
        "half",
        "high",
        "low",
        "pro",
        "quasi",
        "so",
        "vice",
        "day",
        "month",
        "year",
        "counter",
        "re",
        "on",
        "off",
        "non-",
    ]
)


def starts_clause(line: str) -> bool:
    """Whether a line begins with a clause number, a list mark or a bullet."""
    return _NUMBERED.match(line) is not None


def ends_sentence(line: str) -> bool:
    """Whether a line ends with punctuation that closes a sentence or opens a list."""
    return _TERMINAL.search(line) is not None


def is_cjk(char: str) -> bool:
    """Whether a character is set without spaces around it."""
    return _CJK.match(char) is not None


def separator(left: str, right: str) -> str:
    """What stands between two lines of a paragraph: nothing next to an ideograph, else a space."""
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return ""
    if is_cjk(left[-1]) and is_cjk(right[0]):
        return ""
    if _IDEOGRAPH.match(left[-1]) or _IDEOGRAPH.match(right[0]):
        return ""
    return " "


def hyphen_stays(first: str, second: str, words: frozenset[str] | set[str]) -> bool:
    """Whether the hyphen between `first` at a line's end and `second` belongs to the word.

    `words` are the lower-case words (hyphened ones too) of the whole document.
    """
    if not first or not second or not first.isalpha() or not second[0].islower():
        return True
    joined, hyphened = f"{first}{second}".lower(), f"{first}-{second}".lower()
    if joined in words:
        return False
    if hyphened in words:
        return True
    return first.lower() in _KEEPS_HYPHEN


def unwrap(lines: list[str]) -> str:
    """Joins source lines of one paragraph, but keeps a break before a clause number."""
    text = ""
    for line in lines:
        piece = line.strip()
        if not text:
            text = piece
        elif starts_clause(piece):
            text += "\n" + piece
        else:
            text += separator(text, piece) + piece
    return text
