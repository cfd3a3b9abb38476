"""Cleaning shared by every reader: controls out, newlines one way, words present. Knows no file
format."""

from __future__ import annotations

import re

from retrieval.errors import NoText

_NEWLINES = re.compile(r"\r\n?|[\x0b\x85\u2028\u2029]")
# C0 (but tab, newline, form feed), DEL, C1, soft hyphen, zero-width and bidirectional marks, BOM,
# lone surrogates, non-characters: none is visible, each breaks search or storage.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\xad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\ufeff\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)


def clean_text(text: str) -> str:
    """`text` with \\n newlines and without invisible characters; tabs and form feeds stay."""
    return _INVISIBLE.sub("", _NEWLINES.sub("\n", text))


def require_words(text: str, name: str) -> None:
    """Raises NoText unless `text` holds a letter, digit or ideograph."""
    if not any(char.isalnum() for char in text):
        raise NoText(
            f"“{name}” has no words in it, only spaces or punctuation. Upload the file that "
            "holds the contract's text."
        )


def collapse_spaces(text: str) -> str:
    """Runs of spaces and tabs as one space, none at the ends of a line."""
    return re.sub(r" ?\n ?", "\n", re.sub(r"[ \t\xa0]+", " ", text)).strip(" ")
