"""What a code point from a PDF font shows: ligatures written out, presentation forms folded.

Knows code points only, no fonts and no neighbours.
"""

from __future__ import annotations

import unicodedata

_BULLETS = {0xF0B7, 0xF0A7, 0xF0D8, 0xF06E, 0xF076, 0xF0A8, 0xF0FC, 0xF0E0, 0xF02D}
# Ligatures at the code points that TeX fonts and old Mac fonts give them.
_LIGATURES = {
    0x0B: "ff", 0x0C: "fi", 0x0D: "fl", 0x0E: "ffi", 0x0F: "ffl",
    0x1B: "ff", 0x1C: "fi", 0x1D: "fl", 0x1E: "ffi", 0x1F: "ffl",
    0xF001: "fi", 0xF002: "fl", 0x21B5: "ff",
}  # fmt: skip
_DROPPED_CATEGORIES = ("Cc", "Cf", "Cs")


def shown(code: int) -> str:
    """The text for a code point: presentation forms folded, invisible ones gone."""
    if code in (2, 0xFFFE):
        # PDFium's mark for a hyphen at a line's end.
        return "-"
    if code in _BULLETS:
        return "•"
    if code == 0xAD:
        return "\xad"
    if code in (9, 0xA0) or 0x2000 <= code <= 0x200A:
        return " "
    if code in _LIGATURES:
        return _LIGATURES[code]
    char = chr(code)
    if code < 128:
        return char if code >= 32 and code != 127 else ""
    # Latin and Arabic ligatures; Kangxi and CJK radicals and compatibility ideographs.
    if 0xFB00 <= code <= 0xFB06 or 0x2E80 <= code <= 0x2FDF or 0xF900 <= code <= 0xFAFF:
        return unicodedata.normalize("NFKC", char)
    if unicodedata.category(char) in _DROPPED_CATEGORIES or code & 0xFFFE == 0xFFFE:
        return ""
    return char
