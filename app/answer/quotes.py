"""Words in quotation marks, and whether they stand in a text.

White space, width and the shape of quotation marks and dashes are ignored, nothing else. An
ellipsis stands for words left out, but not for a negation or an exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.folding import fold


@dataclass(frozen=True, slots=True)
class Quote:
    """Quoted words at `text[start:end]`, marks included; `words` is what stands between them."""

    start: int
    end: int
    words: str


_QUOTED = re.compile(
    r"“([^“”]{1,4000})”|「([^「」]{1,4000})」|『([^『』]{1,4000})』|(?<!\w)\"([^\"]{1,4000})\"(?!\w)"
)
_ELLIPSIS = re.compile(r"\s*(?:\[?\(?(?:\.\s?){3,}\)?\]?|…+|⋯+)\s*")
_TURNS = re.compile(
    r"\b(?:not|no|never|nor|neither|without|except|excluding|unless|only|save|cannot|other than|"
    r"provided|subject to)\b|n't\b|不|未|无|非|没|勿|除|但|仅|禁止"
)


def find_quotes(text: str) -> tuple[Quote, ...]:
    """Everything between quotation marks, in order."""
    return tuple(
        Quote(match.start(), match.end(), next(part for part in match.groups() if part is not None))
        for match in _QUOTED.finditer(text)
        if re.search(r"\w", match[0])
    )


def stands_in(words: str, source: str) -> bool:
    """Whether the quoted words stand in the source, up to white space, width and ellipses."""
    parts = [_squeezed(part) for part in _ELLIPSIS.split(words)]
    parts = [part for part in parts if part]
    if not parts:
        return False
    folded = _spaced(source)
    squeezed, places = _without_space(folded)
    return any(
        _follow(parts[1:], squeezed, places, folded, start + len(parts[0]))
        for start in _all(parts[0], squeezed)
    )


def _follow(parts: list[str], squeezed: str, places: list[int], folded: str, position: int) -> bool:
    for part in parts:
        found = squeezed.find(part, position)
        if found < 0:
            return False
        left_out = folded[places[position - 1] + 1 : places[found]]
        if _TURNS.search(left_out):
            return False
        position = found + len(part)
    return True


def _all(part: str, text: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(part), text)]


def _spaced(text: str) -> str:
    return re.sub(r"\s+", " ", fold(text))


def _squeezed(text: str) -> str:
    return re.sub(r"\s", "", fold(text)).strip(".,;，。；")


def _without_space(text: str) -> tuple[str, list[int]]:
    """The text without white space, and the place of each character in `text`."""
    places = [index for index, character in enumerate(text) if not character.isspace()]
    return "".join(text[index] for index in places), places
