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

from retrieval.parse.joining import (
    ends_sentence,
    hyphen_stays,
    is_cjk,
    separator,
    starts_clause,
)
from retrieval.parse.pdf_chars import Char
from retrieval.parse.pdf_layout import Line, Region

_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_LAST_WORD = re.compile(r"([^\W\d_]+)$")
_SAME_SIZE = 0.16
_LEADING_SLACK = 1.25
_NOTE_SIZE = 0.9
_NOTE_MARKS = "⁰¹²³⁴⁵⁶⁷⁸⁹*†‡"
_OPEN_WORDS = frozenset(
    [
        "a",
        "an",
        "and",
        "any",
        "as",
        "at",
        "be",
        "between",
        "by",
        "for",
        "from",
        "in",
        "into",
        "is",
        "its",
        "may",
        "must",
        "nor",
        "not",
        "of",
        "on",
        "or",
        "other",
        "our",
        "shall",
        "such",
        "that",
        "the",
        "their",
        "this",
        "to",
        "under",
        "upon",
        "which",
        "who",
        "will",
        "with",
        "within",
    ]
)

_REFERENCE_WORDS = frozenset(
    [
        "article",
        "articles",
        "section",
        "sections",
        "clause",
        "clauses",
        "paragraph",
        "paragraphs",
        "schedule",
        "schedules",
        "exhibit",
        "exhibits",
        "annex",
        "appendix",
        "part",
        "chapter",
        "cfr",
        "c",
        "u.s.c",
        "usc",
        "§",
        "no",
        "rule",
        "item",
    ]
)
# "DATES: The ..." starts a paragraph of its own.
_CAPTION = re.compile(r"[A-Z][A-Z ]{3,}:")


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
        ]
        leading = _leading(ordered)
        _find_right_edges(ordered, leading)
        border = True
        result.starts.append(len(result.text))
        for line in ordered:
            if previous is None or first is None:
                first = line
            else:
                joins = (
                    _runs_over_page(previous, line)
                    if border
                    else _same_paragraph(first, previous, line, leading)
                )
                before = len(result.text)
                if joins:
                    _meet(result, line, words)
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
            if line.chars and line.chars[-1].text == "\xad":
                result.put("\xad")
            previous = line
            border = False
    if result.text and result.text[-1] == "\xad":
        result.text.pop()
        result.chars.pop()
    return result


def _meet(result: Flow, line: Line, words: set[str]) -> None:
    """Ends the text so far so that `line` continues it: a hyphen dropped or a space put."""
    last = result.text[-1]
    start = line.chars[0].text
    if last == "\xad":
        _drop_last(result)
    elif last in "-‐" and len(result.text) > 1 and result.text[-2].isalnum():
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


def _leading(lines: Sequence[Line]) -> float:
    """The usual distance from one baseline to the next, 0 for fewer than two lines."""
    steps = [
        below.y1 - above.y1
        for above, below in zip(lines, lines[1:], strict=False)
        if 0 < below.y1 - above.y1 < 4 * above.size and below.x0 < above.x1
    ]
    return median(steps) if steps else 0.0


def _same_paragraph(first: Line, above: Line, line: Line, leading: float) -> bool:
    """Whether `line` goes on with the paragraph that began with `first` and holds `above`."""
    if line.turn or above.turn or above.cells > 1 or line.cells > 1:
        return False
    if not _alike(above, line):
        return False
    step = line.y1 - above.y1
    new_column = line.y0 < above.y0 and line.x0 >= above.x1 - above.size
    if new_column:
        return _runs_over_page(above, line)
    size = above.size
    if step <= 0.3 * size or line.x0 >= above.x1:
        return False
    if step > max(_LEADING_SLACK * leading if leading < 3 * size else 0.0, 1.35 * size):
        return False
    if above.text.endswith(("-", "\xad")) and (
        line.text[0].islower() or (line.text[0].isdigit() and above.text[-2:-1].isdigit())
    ):
        return True
    if line.text[0] in _NOTE_MARKS:
        return False
    ended = ends_sentence(above.text)
    if _is_cell(above, line, step):
        return True
    if not (_is_full(above, line) or _reads_on(above, line)) or (
        ended and _CAPTION.match(line.text)
    ):
        return False
    if starts_clause(line.text) and (ended or not _is_reference(first, above, line)):
        return False
    indented = line.x0 > above.x0 + 1.2 * size
    if indented and not (above is first and starts_clause(first.text)):
        return False
    begins_like_first = (
        above is first
        and abs(line.x0 - first.x0) < 0.5 * size
        and line.x0 > line.region.left + 1.2 * size
    )
    return not (ended and begins_like_first)


def _is_reference(first: Line, above: Line, line: Line) -> bool:
    """Whether a line that begins like a clause goes on with a reference ("under Section" above)."""
    final = re.search(r"[\w§]+\W*$", above.text)
    word = final.group().strip(" .").lower() if final else ""
    if word in ("and", "or", "及", "和", "或"):
        return line.text[0].isdigit()
    if word in _OPEN_WORDS or word in _REFERENCE_WORDS:
        return True
    return abs(line.x0 - first.x0) > above.size


def _is_cell(above: Line, line: Line, step: float) -> bool:
    """Whether two lines of ideographs are one wrapped table cell: tight, aligned, another cell
    beside them."""
    if not (above.beside or line.beside) or step > 1.4 * above.size:
        return False
    if not is_cjk(above.text[-1]) or ends_sentence(above.text) or starts_clause(line.text):
        return False
    if not any(is_cjk(char) for char in line.text):
        return False
    aligned = abs(above.x0 - line.x0) <= 1.5 or abs(above.x0 + above.x1 - line.x0 - line.x1) <= 3
    width, below = above.x1 - above.x0, line.x1 - line.x0
    return aligned and below <= width + 0.3 * above.size and width >= 3 * above.size


def _find_right_edges(lines: Sequence[Line], leading: float) -> None:
    """Gives lines of an indented block of prose the block's own edges instead of the column's."""
    block: list[Line] = []
    for line in [*lines, None]:
        if line is not None and block and _in_block(block[-1], line, leading):
            block.append(line)
            continue
        right = max((item.x1 for item in block), default=0.0)
        reaching = sum(item.x1 > right - 1.5 * item.size for item in block)
        if len(block) >= 3 and reaching * 2 >= len(block):
            region = Region(min(item.x0 for item in block), right)
            for item in block:
                item.region = region
        block = [] if line is None else [line]


def _in_block(above: Line, line: Line, leading: float) -> bool:
    step = line.y1 - above.y1
    limit = max(_LEADING_SLACK * leading, 1.35 * above.size)
    overlaps = line.x0 < above.x1 and above.x0 < line.x1
    return (
        overlaps
        and 0 < step <= limit
        and _alike(above, line)
        and abs(line.x0 - above.x0) < 4 * above.size
        and above.cells == line.cells == 1
    )


def _runs_over_page(above: Line, line: Line) -> bool:
    """Whether a sentence goes on at the top of the next page or column."""
    if line.turn or above.turn or above.cells > 1 or line.cells > 1 or not _alike(above, line):
        return False
    last, start = above.text.rstrip(), line.text
    if ends_sentence(last) or starts_clause(start):
        return False
    if start[0].islower():
        return not last.isupper()
    final = re.search(r"[A-Za-z]+$", last)
    if last.endswith((",", "，", "、")) or (final and final.group() in _OPEN_WORDS):
        return True
    if is_cjk(last[-1]) or is_cjk(start[0]):
        return _is_full(above, line) and line.x0 <= line.region.left + 1.2 * line.size
    # A heading stands alone; a full line that ends in a small letter doesn't.
    return _is_full(above, line) and last[-1].islower() and above.region.right > above.region.left


def _alike(above: Line, line: Line) -> bool:
    return abs(above.size - line.size) <= _SAME_SIZE * max(above.size, line.size)


def _reads_on(above: Line, line: Line) -> bool:
    """Whether a ragged line is not the end: open, most of the width, a small letter next."""
    return (
        line.text[0].islower()
        and not ends_sentence(above.text)
        and not starts_clause(line.text)
        and above.x1 - above.region.left > 0.6 * (above.region.right - above.region.left)
    )


def _is_full(above: Line, line: Line) -> bool:
    """Whether the first word of `line` would not have fitted behind `above`."""
    word_end = line.x0
    for char in line.chars:
        if char.text == " ":
            break
        if char.x1 >= char.x0:
            word_end = char.x1
        if is_cjk(char.text):
            break
    room = above.region.right - above.x1
    return room < (word_end - line.x0) + 0.35 * above.size


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
        or not (notes[0].text[0].isdigit() or notes[0].text[0] in _NOTE_MARKS)
    ):
        return list(lines)
    main = upright[: len(upright) - count]
    if ends_sentence(main[-1].text) or any(line.y0 < main[-1].y0 for line in notes):
        return list(lines)
    leading = _leading(main)
    cut = len(main) - 1
    while cut > 0 and _same_paragraph(main[cut - 1], main[cut - 1], main[cut], leading):
        cut -= 1
    if cut == 0:
        return list(lines)
    return main[:cut] + notes + main[cut:] + [line for line in lines if line.turn != 0]
