"""One spelling for characters that mean the same: width, case, ligatures, traditional Chinese.

`fold` may change the length of a text and serves matching; `fold_in_place` keeps every offset and
serves everything that must point back into the document. Neither knows words: 裡/里 style choices
that depend on context fall to the most common simplified form.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from opencc import OpenCC

_HAN_START, _HAN_END = 0x3400, 0xA000
_QUOTES = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "\u00a0": " "})


@lru_cache(maxsize=1)
def _simplified() -> dict[int, str]:
    """Traditional to simplified, character by character (OpenCC's t2s), about 3,750 entries."""
    converter = OpenCC("t2s")
    table: dict[int, str] = {}
    for code in range(_HAN_START, _HAN_END):
        simplified = converter.convert(chr(code))
        if len(simplified) == 1 and simplified != chr(code):
            table[code] = simplified
    return table


@lru_cache(maxsize=65_536)
def _fold_character(character: str) -> str:
    folded = unicodedata.normalize("NFKC", character).lower()
    return folded if len(folded) == 1 else character


def fold(text: str) -> str:
    """NFKC, lower case, simplified Chinese, plain quotes and dashes."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", text).translate(_QUOTES).translate(_simplified()).lower()


def fold_width(text: str) -> str:
    """Full-width letters, digits and punctuation to half-width, every offset and the case kept."""
    if text.isascii():
        return text
    out = []
    for character in text:
        if character < "\u2000" or "\u4e00" <= character <= "\u9fff":
            out.append(character)
        else:
            wide = unicodedata.normalize("NFKC", character)
            out.append(wide if len(wide) == 1 else character)
    return "".join(out).translate(_QUOTES)


def fold_in_place(text: str) -> str:
    """`fold` without any change of length: what would become several characters stays as it is."""
    if text.isascii():
        return text.lower()
    return "".join(map(_fold_character, text.translate(_QUOTES).translate(_simplified())))
