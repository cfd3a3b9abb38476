"""Decides where the paragraphs of a page end, from the places of its lines.

Knows lines, edges of columns and the look of clause numbers; nothing of other pages but the line
that a page begins with.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from statistics import median

from retrieval.parse.joining import ends_sentence, is_cjk, starts_clause
from retrieval.parse.pdf_lines import Line, Region

_SAME_SIZE = 0.16
_LEADING_SLACK = 1.25
NOTE_MARKS = "⁰¹²³⁴⁵⁶⁷⁸⁹*†‡"
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
_CLOSERS = "，。、；：！？）》」』】”’,;)"
# "DATES: The ..." starts a paragraph of its own.
_CAPTION = re.compile(r"[A-Z][A-Z ]{3,}:")


def usual_leading(lines: Sequence[Line]) -> float:
    """The distance from one baseline to the next inside a paragraph, 0 when nothing tells.

    Steps after a full line that ends no sentence are surely inside one; without two of those the
    lower quarter of all steps has to do, since the gaps between paragraphs are wider.
    """
    steps: list[float] = []
    inside: list[float] = []
    for above, line in zip(lines, lines[1:], strict=False):
        step = line.y1 - above.y1
        if 0.3 * above.size < step < 4 * above.size and line.x0 < above.x1 and above.cells == 1:
            steps.append(step)
            reaches = above.x1 > above.region.right - 2 * above.size
            if reaches and not ends_sentence(above.text) and _alike(above, line):
                inside.append(step)
    if len(inside) >= 2:
        return median(inside)
    return sorted(steps)[len(steps) // 4] if steps else 0.0


def same_paragraph(first: Line, above: Line, line: Line, leading: float) -> bool:
    """Whether `line` goes on with the paragraph that began with `first` and holds `above`."""
    if line.turn or above.turn or above.cells > 1 or line.cells > 1 or line.opens:
        return False
    if not _alike(above, line):
        return False
    step = line.y1 - above.y1
    new_column = line.y0 < above.y0 and line.x0 >= above.x1 - above.size
    if new_column:
        return runs_over_page(above, line)
    size = above.size
    if step <= 0.3 * size or line.x0 >= above.x1:
        return False
    if step > max(_LEADING_SLACK * leading, 1.35 * size):
        return False
    if line.text[0] in _CLOSERS:
        return True
    if above.text.endswith(("-", "\xad")) and (
        line.text[0].islower() or (line.text[0].isdigit() and above.text[-2:-1].isdigit())
    ):
        return True
    if line.text[0] in NOTE_MARKS:
        return False
    ended = ends_sentence(above.text)
    if _is_cell(above, line, step, leading):
        return True
    if not (_is_full(above, line) or _reads_on(above, line)) or (
        ended and _CAPTION.match(line.text)
    ):
        return False
    if starts_clause(line.text) and (ended or not _is_reference(first, above, line)):
        return False
    indented = line.x0 > above.x0 + 1.2 * size
    hangs = starts_clause(first.text) or (line.text[0].islower() and not ended)
    if indented and not (above is first and hangs):
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


def _is_cell(above: Line, line: Line, step: float, leading: float) -> bool:
    """Whether two lines of ideographs are one wrapped table cell: tight, aligned, another cell
    beside them."""
    if not (above.beside or line.beside) or step > max(1.6 * above.size, 1.05 * leading):
        return False
    if not is_cjk(above.text[-1]) or ends_sentence(above.text) or starts_clause(line.text):
        return False
    if not any(is_cjk(char) for char in line.text):
        return False
    aligned = (
        abs(above.x0 - line.x0) <= 1.5
        or abs(above.x0 + above.x1 - line.x0 - line.x1) <= 3
        # The first line of a cell may be indented by two characters.
        or 0 < above.x0 - line.x0 <= 2.2 * above.size
    )
    width, below = above.x1 - above.x0, line.x1 - line.x0
    indent = max(0.0, above.x0 - line.x0)
    return aligned and below <= width + indent + 0.3 * above.size and width >= 3 * above.size


def find_right_edges(lines: Sequence[Line], leading: float) -> None:
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


def runs_over_page(above: Line, line: Line) -> bool:
    """Whether a sentence goes on at the top of the next page or column."""
    if line.turn or above.turn or above.cells > 1 or line.cells > 1 or line.opens:
        return False
    if not _alike(above, line):
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
    # Chinese lines end up to a character early, so that no closing mark begins the next one.
    chinese = is_cjk(above.text[-1]) or is_cjk(line.text[0])
    slack = 1.2 if chinese and not ends_sentence(above.text) else 0.35
    return room < (word_end - line.x0) + slack * above.size
