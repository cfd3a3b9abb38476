"""Names of uploaded files. A name is shown and tells the format by its ending; it never becomes a
path, a header or a key."""

from __future__ import annotations

import re
import unicodedata

from app.errors import BadName

SEPARATORS = re.compile(r"[/\\]")
CLIMBING = re.compile(r"(^|[/\\])\.\.[/\\]")
HIDDEN_CATEGORIES = ("Cc", "Cs")
BIDI_CONTROLS = frozenset(
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""They turn the shown order round: `exe.fdp` for `pdf.exe`."""


def display_name(raw: str, *, max_chars: int = 255) -> str:
    """The last part of a client's file name, without control characters.

    A full-width slash is a character like others (甲／乙合同.docx) unless the name would climb out
    of a folder once normalised. Raises BadName when nothing is left to show or the name is over
    `max_chars` code points.
    """
    folded = unicodedata.normalize("NFKC", raw)
    raw = SEPARATORS.split(folded if CLIMBING.search(folded) else raw)[-1]
    shown = "".join(
        char
        for char in raw
        if unicodedata.category(char) not in HIDDEN_CATEGORIES and char not in BIDI_CONTROLS
    )
    shown = unicodedata.normalize("NFC", shown).strip()
    if not shown.strip(". \u3000\uff0e"):
        raise BadName("The file has no usable name. Rename it, for example to contract.pdf.")
    if len(shown) > max_chars:
        raise BadName(
            f"The file name has {len(shown)} characters; {max_chars} are allowed. Rename the file."
        )
    return shown
