"""The passage to quote around a sentence: a short clause whole, a list item with its lead-in, a row
of a table as it stands.

A reader of a contract wants the provision, and its parts often stand in neighbouring sentences.
Every passage is one span of the document. It knows the outline and the look of lines, not meaning.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from retrieval.sentences import Span
from retrieval.types import Clause

_HAN = re.compile("[\u4e00-\u9fff]")
_ITEM = re.compile(r"\s*(?:[(（][^)）]{1,4}[)）]|[①-⑳]|\d{1,2}[、.)）．](?!\d)|[a-z]\)|[-–•])")
_LEAD_IN = re.compile(r"[:：]\s*$")
_OPENS_LIST = re.compile(r"[:：]\s*(?:\n|$)")
_CELL = re.compile(r"[\s|]+")
_FIGURE_CELL = re.compile(r"[-+±≥≤<>~$€£¥￥]?\d[\d,]*(?:\.\d+)?[%％‰]?$")
_OUTLINE_LINE = re.compile(
    r"\s*(?:第.{1,4}[条章节部编]|附[件录表]|article\b|section\b|schedule\b|annex\b|exhibit\b|part\b)",
    re.IGNORECASE,
)
_MAX_CELLS_TEXT = 120

SHORT_CLAUSE = {"en": 320, "zh": 150}
"""Characters up to which a clause is quoted whole."""
_LONG_QUOTE = {"en": 420, "zh": 220}


def _limit(text: str, span: Span, limits: dict[str, int]) -> int:
    return limits["zh" if _HAN.search(text, *span) else "en"]


def is_row(line: str) -> bool:
    """Whether a line looks like a row of a table: cells of words, the last of them a figure."""
    body = line.strip()
    cells = [cell for cell in _CELL.split(body) if cell]
    if len(cells) < 2 or len(body) > _MAX_CELLS_TEXT or _OUTLINE_LINE.match(body):
        return False
    worded = [cell for cell in cells if re.search(r"[^\W\d]", cell)]
    figures = [cell for cell in cells[1:] if _FIGURE_CELL.match(cell)]
    if not worded or not figures or re.search(r"[。；;.:：]$", body):
        return False
    if _HAN.search(body):
        return len(cells) >= 3 and bool(_FIGURE_CELL.match(cells[-1]))
    # Of English words a line has many: a price or a measure tells a row from "Definitions 3".
    return len(figures) > 1 or bool(re.search(r"[.,]\d\d|[%$€£]", figures[0]))


def _trim(text: str, start: int, end: int) -> Span:
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end


def _body(text: str, clause: Clause) -> int:
    """Where a clause begins after a heading that has a line of its own."""
    line_end = text.find("\n", clause.start, clause.end)
    if line_end < 0 or not clause.title:
        return clause.start
    line = text[clause.start : line_end].rstrip()
    if not line.endswith(clause.title):
        return clause.start
    while line_end < clause.end and text[line_end].isspace():
        line_end += 1
    return line_end if line_end < clause.end else clause.start


def whole_clause(text: str, chain: Sequence[Clause], span: Span, bounds: Span) -> Span | None:
    """The outermost clause of `chain` (innermost first) around `span` that is short enough to quote
    whole and stays inside `bounds`. None when even the innermost clause is too long, and for a
    row of a table or a clause that holds one: rows are quoted alone."""
    best: Span | None = None
    if is_row(text[slice(*span)]):
        return None
    for clause in chain:
        place = _trim(text, _body(text, clause), clause.end)
        inside = bounds[0] <= place[0] and place[1] <= bounds[1]
        holds = place[0] <= span[0] and span[1] <= place[1]
        if not (inside and holds) or place[1] - place[0] > _limit(text, place, SHORT_CLAUSE):
            break
        if any(map(is_row, text[slice(*place)].split("\n"))):
            break
        # A heading above numbered clauses is no provision: only lists are taken with their parent.
        if best is not None and not (
            _ITEM.match(text[best[0] : best[1]]) and _OPENS_LIST.search(text[place[0] : best[0]])
        ):
            break
        best = place
    return best


def with_lead_in(text: str, spans: Sequence[Span], place: int) -> Span:
    """The span of a sentence, begun at the lead-in of its list when the whole stays short."""
    start, end = spans[place]
    if not _ITEM.match(text[start:end]):
        return start, end
    for back in range(place - 1, max(-1, place - 8), -1):
        left, right = spans[back]
        if end - left > _limit(text, (left, end), _LONG_QUOTE):
            break
        if _LEAD_IN.search(text[left:right]):
            return left, end
        if not _ITEM.match(text[left:right]):
            break
    return start, end


def lead_in(text: str, spans: Sequence[Span], place: int) -> Span | None:
    """The sentence that opens the list of an item, or the header of a table above a row."""
    start, end = spans[place]
    row = is_row(text[start:end])
    if not row and not _ITEM.match(text[start:end]):
        return None
    for back in range(place - 1, max(-1, place - 24), -1):
        left, right = spans[back]
        body = text[left:right]
        if row:
            if not is_row(body):
                return (left, right) if right - left <= _MAX_CELLS_TEXT else None
        elif _LEAD_IN.search(body):
            return left, right
        elif not _ITEM.match(body):
            return None
    return None
