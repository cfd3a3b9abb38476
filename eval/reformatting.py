"""Prints a text anew without changing what it says: other line breaks and quotation marks, page
numbers and running headers in the middle of sentences.

A comparison must find nothing in it. Returns where every place of the text went.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from dataclasses import dataclass

from retrieval.types import Language

_WIDTH = {"en": (70, 110), "zh": (30, 46)}
_PAGE = {"en": 2_800, "zh": 900}
_QUOTES = {'"': "”", "“": '"', "”": '"', "'": "’", "’": "'", "‘": "'"}


@dataclass(frozen=True, slots=True)
class Reprint:
    """The new text; `origins[i]` is the place in the old text that character i comes from."""

    text: str
    origins: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where `text[start:end]` of the old text stands now."""
        first = bisect_left(self.origins, start)
        return first, max(first, bisect_left(self.origins, end))


def reprint(text: str, language: Language, seed: int) -> Reprint:
    """Sets the text in lines of one width, on numbered pages with a header."""
    chance = random.Random(seed)
    width, page_size = chance.randint(*_WIDTH[language]), _PAGE[language]
    out: list[str] = []
    origins: list[int] = []
    column = on_page = 0
    page = 1

    def put(piece: str, origin: int) -> None:
        out.append(piece)
        origins.extend([origin] * len(piece))

    for at, character in enumerate(text):
        if character == "\n":
            put(character, at)
            column = 0
            continue
        breaks = column >= width and (
            character == " " if language == "en" else "\u4e00" <= character <= "\u9fff"
        )
        if breaks:
            if on_page >= page_size:
                put(f"\n\n- {page} -\n\nEXECUTION COPY\n\n", at)
                page, on_page = page + 1, 0
            else:
                put("\n", at)
            column = 0
            if character == " ":
                continue
        put(_QUOTES.get(character, character), at)
        column += 1
        on_page += 1
    return Reprint("".join(out), tuple(origins))
