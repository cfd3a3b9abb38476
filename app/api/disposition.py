"""`Content-Disposition` for names that people gave their files (RFC 6266, RFC 5987)."""

from __future__ import annotations

import unicodedata
from urllib.parse import quote

_BIDI = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the reading direction, which makes "exe.pdf" of "fdp.exe"."""


def attachment(name: str) -> str:
    """Header value that saves a download under `name`: an ASCII fallback for old clients, the full
    name in UTF-8 beside it. Control characters and path separators don't survive."""
    shown = "".join(
        "_" if char in "/\\" else char
        for char in name
        if unicodedata.category(char) not in ("Cc", "Cs") and char not in _BIDI
    ).strip()
    shown = shown or "document"
    fallback = "".join(char if char.isascii() and char not in '"%;' else "_" for char in shown)
    return f"attachment; filename=\"{fallback}\"; filename*=UTF-8''{quote(shown, safe='')}"
