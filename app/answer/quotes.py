"""Words in quotation marks, and whether they stand in a text.

White space, width and the shape of quotation marks and dashes are ignored, nothing else: a quote
does not begin or end inside a word or a number. An ellipsis stands for words left out, but not for
a negation, an exception or a figure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.answer.items import find_items
from retrieval.folding import fold
from retrieval.numerals import NUMERAL_CLASS


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted words at `text[start:end]`, marks included; `words` is what stands between them."""

    start: int
    end: int
    words: str


_PAIRS = {"“": "”", "「": "」", "『": "』"}
_STRAIGHT = re.compile(r"(?<!\w)\"([^\"]{1,4000})\"(?!\w)")
_ELLIPSIS = re.compile(r"\s*(?:\[?\(?(?:\.\s?){3,}\)?\]?|\[?…+\]?|⋯+)\s*")
_TURNS = re.compile(
    r"\b(?:not|no|never|nor|neither|none|nothing|without|except|excluding|unless|only|save|cannot"
    r"|other than|provided|subject to|but|if|until)\b|n't\b|\bnon-"
    r"|不|未|无|非|没|勿|除|但|仅|禁止|免"
)
_NUMERAL = f"{NUMERAL_CLASS}廿卅"
# A number goes on over its point and its commas: "1" is no part of "1,500".
_LATIN = re.compile(r"[a-z0-9]")


def find_quotes(text: str) -> tuple[Quote, ...]:
    """Everything between quotation marks, in order; of quotes within a quote the outer one."""
    spans = [*_paired(text), *(match.span() for match in _STRAIGHT.finditer(text))]
    return tuple(
        Quote(start, end, text[start + 1 : end - 1])
        for start, end in sorted(spans)
        if re.search(r"\w", text[start:end]) and not any(a < start and end < b for a, b in spans)
    )


def _paired(text: str) -> list[tuple[int, int]]:
    """Spans from an opening to its closing mark; a mark without its partner opens nothing."""
    found: list[tuple[int, int]] = []
    for opening, closing in _PAIRS.items():
        opened: list[int] = []
        for match in re.finditer(f"[{opening}{closing}]", text):
            if match[0] == opening:
                opened.append(match.start())
            elif opened:
                found.append((opened.pop(), match.end()))
    return found


def stands_in(words: str, source: str) -> bool:
    """Whether the quoted words stand in the source, up to white space, width and ellipses."""
    parts = [_squeezed(part).strip(".,;，。；") for part in _ELLIPSIS.split(words)]
    parts = [part for part in parts if part]
    if not parts:
        return False
    text = _squeezed(source)
    return any(_follow(parts[1:], text, end) for end in _ends(parts[0], text, 0))


def _follow(parts: list[str], text: str, position: int) -> bool:
    """Whether the parts follow one another from `position`, each time leaving out little."""
    if not parts:
        return True
    for end in _ends(parts[0], text, position):
        left_out = text[position : end - len(parts[0])]
        if _TURNS.search(left_out) or find_items(left_out).keyed():
            return False
        if _follow(parts[1:], text, end):
            return True
    return False


def _ends(part: str, text: str, position: int) -> list[int]:
    """Where the part ends in the text, each time it stands there as whole words."""
    return [
        match.end()
        for match in re.compile(re.escape(part)).finditer(text, position)
        if not _cut(text, match.start()) and not _cut(text, match.end())
    ]


def _cut(text: str, place: int) -> bool:
    """Whether a word or a number goes on over `place`."""
    before, after = text[max(0, place - 2) : place], text[place : place + 2]
    if not before or not after:
        return False
    if _LATIN.match(before[-1]) and _LATIN.match(after[0]):
        return True
    if before[-1] in _NUMERAL and after[0] in _NUMERAL:
        return True
    inside = before[-1] in ".," and before[:-1].isdigit() and after[0].isdigit()
    return inside or (before[-1].isdigit() and after[0] in ".," and after[1:].isdigit())


def _squeezed(text: str) -> str:
    """Folded, without white space except between two Latin words or numbers."""
    folded = re.sub(r"\s+", " ", fold(text)).strip().replace('"', "'")
    return re.sub(r"(?<![a-z0-9]) | (?![a-z0-9])", "", folded)
