"""Lines that belong to the page and not to the contract: page numbers, repeated headers and footers
beside them, leader dots and page numbers of a table of contents.

A line is only left out when its form or its place shows what it is: a bare number must be one of a
run of page numbers, a repeated line must stand beside a page border. It does not look at layout.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.types import DocumentPage

Span = tuple[int, int]

_LINE = re.compile(r"[^\n\f]+")
_NAMED = re.compile(
    r"\s*[-–—]\s*\d{1,4}\s*[-–—]\s*$|[\s\-–—|]*(?:page\s+\d{1,4}(?:\s*(?:of|/)\s*\d{1,4})?"
    r"|第\s*\d{1,4}\s*页(?:[\s,，/]*共\s*\d{1,4}\s*页)?|共\s*\d{1,4}\s*页[\s,，]*第\s*\d{1,4}\s*页)"
    r"[\s\-–—|]*$",
    re.IGNORECASE,
)
_BARE = re.compile(r"[\s\-–—|]*(\d{1,4})[\s\-–—|]*$")
_TAIL = re.compile(r"(?<=\s)[-–]\s?(\d{1,4})\s?[-–]\s*$")
_CONTENTS = re.compile(
    r"(?P<leader>\s*(?:\.{3,}|(?:\.\s){3,}|…+|·{3,}|\t+)\s*)(?P<page>\d{1,4}|[ivxl]{1,6})\s*$"
)
# What Word prints around its pages, as our DOCX reader marks it; a PDF of the contract lacks it.
_MARGIN = re.compile(r"\[(?:header|footer)\] ")
_MIN_RUN = 3
_PAGE_CHARS = 600
_BESIDE = 3
_MAX_REPEATED = 120


@dataclass(frozen=True, slots=True)
class Furniture:
    """Spans to leave out, in order, and the lines of a table of contents."""

    spans: tuple[Span, ...]
    contents: tuple[Span, ...]


def find_furniture(text: str, pages: Sequence[DocumentPage]) -> Furniture:
    """The furniture of a text."""
    lines = [match.span() for match in _LINE.finditer(text) if match.group().strip()]
    numbered = _page_numbers(text, lines)
    contents = [
        (match, start) for start, end in lines if (match := _CONTENTS.search(text[start:end]))
    ]
    spans = list(numbered.values())
    spans += _repeated(text, lines, numbered, pages)
    spans += [(start, end) for start, end in lines if _MARGIN.match(text, start, end)]
    for match, start in contents:
        spans.append((start + match.start(), start + match.end()))
    return Furniture(
        tuple(sorted(spans)), tuple((start, start + match.end()) for match, start in contents)
    )


def _page_numbers(text: str, lines: Sequence[Span]) -> dict[int, Span]:
    """Index of a line: the page number in it."""
    found: dict[int, Span] = {}
    bare: list[tuple[int, int, Span]] = []
    for index, (start, end) in enumerate(lines):
        line = text[start:end]
        if _NAMED.match(line):
            found[index] = (start, end)
        elif match := _BARE.match(line):
            bare.append((index, int(match[1]), (start, end)))
        elif match := _TAIL.search(line):
            bare.append((index, int(match[1]), (start + match.start(), end)))
    for index, span in _run(bare):
        found[index] = span
    return found


def _run(bare: Sequence[tuple[int, int, Span]]) -> list[tuple[int, Span]]:
    """Numbers that count pages: the longest chain in which each is one or two more than one at
    least a page's text before it."""
    lengths: list[int] = []
    before: list[int] = []
    places: dict[int, list[int]] = {}
    for place, (_, number, (start, _)) in enumerate(bare):
        earlier = [
            other
            for step in (1, 2)
            for other in places.get(number - step, ())
            if start - bare[other][2][0] >= _PAGE_CHARS
        ]
        best = max(earlier, key=lambda other: (lengths[other], other), default=-1)
        before.append(best)
        lengths.append(1 + (lengths[best] if best >= 0 else 0))
        places.setdefault(number, []).append(place)
    place = max(range(len(bare)), key=lambda one: lengths[one], default=-1)
    if place < 0 or lengths[place] < _MIN_RUN:
        return []
    run: list[tuple[int, Span]] = []
    while place >= 0:
        run.append((bare[place][0], bare[place][2]))
        place = before[place]
    return run


def _repeated(
    text: str, lines: Sequence[Span], numbered: dict[int, Span], pages: Sequence[DocumentPage]
) -> list[Span]:
    """Lines that come back beside page borders."""
    words = [" ".join(text[start:end].split()) for start, end in lines]
    counts = Counter(words)
    beside: Counter[str] = Counter()
    borders = {page.start for page in pages[1:]}
    for index, (start, end) in enumerate(lines):
        if counts[words[index]] < _MIN_RUN or len(words[index]) > _MAX_REPEATED:
            continue
        near = any(index + step in numbered for step in range(-_BESIDE, _BESIDE + 1) if step)
        last = lines[index - 1][1] if index else 0
        following = lines[index + 1][0] if index + 1 < len(lines) else len(text)
        broken = "\f" in text[last:start] or "\f" in text[end:following]
        broken = broken or any(last < border <= following for border in borders)
        beside[words[index]] += near or broken
    return [
        span
        for span, line in zip(lines, words, strict=True)
        if beside[line] >= _MIN_RUN and 3 * beside[line] >= 2 * counts[line]
    ]
