"""Joins the lines of all pages into one text of paragraphs, and keeps each character's box.

Lines of one paragraph meet in a space (nothing between ideographs), words cut at a line's end are
put together, and a sentence that runs over a page border is not broken. Knows nothing of PDFium.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import median

from retrieval.parse.joining import ends_sentence, hyphen_stays, separator
from retrieval.parse.pdf_chars import Char
from retrieval.parse.pdf_lines import Line
from retrieval.parse.pdf_paragraphs import (
    NOTE_MARKS,
    find_right_edges,
    runs_over_page,
    same_paragraph,
    usual_leading,
)

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_WORD = re.compile(r"([^\W\d_]+)$")
_NOTE_SIZE = 0.9


@dataclass(slots=True)
class Flow:
    """The text so far: `text` per character, `chars` its box or None, `starts` of the pages."""

    text: list[str] = field(default_factory=list)
    chars: list[Char | None] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def put(self, text: str, char: Char | None = None) -> None:
        """Appends one character."""
        self.text.append(text)
        self.chars.append(char)


def flow(pages: Sequence[Sequence[Line]]) -> Flow:
    """The text of all pages; page n ends where page n + 1 starts."""
    words = _words(pages)
    result = Flow()
    previous: Line | None = None
    first: Line | None = None
    for lines in pages:
        ordered = [
            line
            for _, column in groupby(lines, key=lambda item: id(item.region))
            for line in _notes_before_open_sentence(list(column))
            if line.text.strip(" \xad")
        ]
        leading = usual_leading(ordered)
        find_right_edges(ordered, leading)
        border = True
        result.starts.append(len(result.text))
        for line in ordered:
            if previous is None or first is None:
                first = line
            else:
                joins = (
                    runs_over_page(previous, line)
                    if border
                    else same_paragraph(first, previous, line, leading)
                )
                before = len(result.text)
                if joins:
                    _meet(result, previous, line, words)
                else:
                    result.put("\n")
                    first = line
                if border:
                    # The separator belongs to the pages before, which may be empty.
                    added = len(result.text) - before
                    result.starts = [
                        start + added if start == before else min(start, len(result.text))
                        for start in result.starts
                    ]
            for char in line.chars:
                if char.text != "\xad":
                    result.put(char.text, char if char.x1 >= char.x0 else None)
            previous = line
            border = False
    return result


def _meet(result: Flow, above: Line, line: Line, words: set[str]) -> None:
    """Ends the text so far so that `line` continues it: a hyphen dropped or a space put."""
    last = result.text[-1]
    start = line.chars[0].text
    if above.chars[-1].text == "\xad":
        return
    if last in "-‐" and len(result.text) > 1 and result.text[-2].isalnum():
        tail = "".join(result.text[-40:-1])
        found = _LAST_WORD.search(tail)
        following = _WORD.match(line.text)
        second = following.group().partition("-")[0] if following else ""
        if found and second and not hyphen_stays(found.group(), second, words):
            _drop_last(result)
    elif last in "–—/" and len(result.text) > 1 and result.text[-2] != " " and start.isalnum():
        # A range, a dash or an address cut after its sign.
        return
    elif separator(last, start):
        result.put(" ")


def _drop_last(result: Flow) -> None:
    result.text.pop()
    result.chars.pop()


def _words(pages: Sequence[Sequence[Line]]) -> set[str]:
    """Lower-case words of the document, without the halves that stand at a line's end."""
    found: set[str] = set()
    for lines in pages:
        for line in lines:
            text = line.text.lower()
            matches = list(_WORD.finditer(text))
            if matches and text.endswith(("-", "‐", "\xad")):
                matches.pop()
            found.update(match.group() for match in matches)
    return found


def _notes_before_open_sentence(lines: Sequence[Line]) -> list[Line]:
    """Moves footnotes in smaller type before the paragraph that they would cut from its rest.

    Only when the last line of larger type is left open; otherwise nothing moves.
    """
    upright = [line for line in lines if line.turn == 0]
    if len(upright) < 4:
        return list(lines)
    body = median(line.size for line in upright)
    count = 0
    for line in reversed(upright):
        if line.size >= _NOTE_SIZE * body:
            break
        count += 1
    notes = upright[len(upright) - count :]
    if (
        not count
        or count > len(upright) // 2
        or not (notes[0].text[0].isdigit() or notes[0].text[0] in NOTE_MARKS)
    ):
        return list(lines)
    main = upright[: len(upright) - count]
    if ends_sentence(main[-1].text) or any(line.y0 < main[-1].y0 for line in notes):
        return list(lines)
    leading = usual_leading(main)
    cut = len(main) - 1
    while cut > 0 and same_paragraph(main[cut - 1], main[cut - 1], main[cut], leading):
        cut -= 1
    if cut == 0:
        return list(lines)
    return main[:cut] + notes + main[cut:] + [line for line in lines if line.turn != 0]
