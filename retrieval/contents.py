"""Tables of contents, told from the clauses that they list.

A line of one has dot leaders, a page number behind a heading, or nothing but a heading. Where a
heading says that a table of contents begins, it goes on as long as such lines do, and ends where
its entries come again as headings: without that, or leaders, it is none. Does not know page
numbers' meaning, and of a table without a heading only the look of its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from retrieval.headings import Candidate, Style, candidates
from retrieval.kept import kept_by_identity

_LEADERS = re.compile(r"(?:\.{3,}|…+|·{3,}|(?:\. ){3,})\s*\d{1,4}\s*$")
_ENTRY = re.compile(
    r"(?:^|\s)\d{1,2}(?:\.\d{1,2}){0,2}\.?\s+[A-Z][A-Za-z'’,/&() -]{2,80}?\s+\d{1,3}(?=\s|$)"
)
_HAN_ENTRY = re.compile(r"(?<=\u3000{4})\d{1,3}\s?第[一二三四五六七八九十百\d]{1,5}[条章节]")
"""A page number behind a wide gap, and the next heading: a table that lost its line breaks."""
_ENTRIES = 2
_TAIL = 60
"""Characters at the end of a line that tell."""

_HEADING = re.compile(
    r"^[^\S\n]*+(?:(?:table\s{1,3}of\s{1,3})?contents|目\s{0,6}录)"
    r"[^\S\n]*+(?:[:：][^\S\n]*+)?(?:page[^\S\n]*+)?$"
    r"|(?-i:\bTABLE\s{1,3}OF\s{1,3}CONTENTS[^\S\n]*+$)"
    r"|\btable\s{1,3}of\s{1,3}contents[^\S\n]++(?:page[^\S\n]++)?(?=(?:article|section|part)\b|\d)",
    re.IGNORECASE | re.MULTILINE,
)
"""A line of its own, or before the first entry: clauses speak of the table of contents too."""
_MOST_HEADINGS = 4
_WINDOW = 40_000
"""Characters behind the heading that are looked at: the longest table seen has 12,400."""
_LONG_LINE, _OTHER_LINES = 200, 8
"""A longer line that is no entry ends the table, and so do as many other lines in a row."""
_LEAST = 3
"""Lines of entries that a table has at least."""
_NUMBERED = frozenset[Style](("part", "chapter", "article", "dotted"))
_REST_OF_CONTENTS = 8000
"""Characters behind a table of contents in which its list of annexes may stand."""
_SENTENCE = re.compile(r"[。；;，,．]|[a-z)]\.\s*$|[a-z]{3}\.\s+[A-Z]")
_PAGE = re.compile(r"\s\d{1,3}\s*$")
_LETTERS = re.compile(r"[^\W\d_]+")


def is_contents_line(line: str) -> bool:
    """Whether a line has dot leaders and a page number."""
    # Leaders of any length end in some; a line of a million dots is not looked at a million times.
    return bool(_LEADERS.search(line[-_TAIL:]))


def is_contents(text: str) -> bool:
    """Whether a passage is a stretch of a table of contents: two entries with page numbers."""
    if any(map(is_contents_line, text.split("\n"))):
        return True
    return any(len(entry.findall(text)) >= _ENTRIES for entry in (_ENTRY, _HAN_ENTRY))


@kept_by_identity(8)
def find_contents(text: str) -> tuple[tuple[int, int], ...]:
    """Half-open spans of the tables of contents that a heading announces, in order."""
    found: list[tuple[int, int]] = []
    for number, heading in enumerate(_HEADING.finditer(text)):
        if number == _MOST_HEADINGS:
            break
        if found and heading.start() < found[-1][1]:
            continue
        end = _end(text, heading.end())
        if end is not None:
            found.append((heading.start(), end))
    return tuple(found)


def _end(text: str, start: int) -> int | None:
    """Where the table of contents whose heading ends at `start` ends; None when there is none."""
    window = text[start : start + _WINDOW]
    starts = {one.start: one for one in candidates(window)}
    end = entries = others = 0
    first: Candidate | None = None
    # Wordings of the entries, and whether a page stood behind each.
    listed: dict[str, bool] = {}
    sure = False
    for at, line in _lines(window):
        body = line.strip()
        if not body:
            continue
        entry = starts.get(at + len(line) - len(line.lstrip()))
        wording, page = _wording(body), bool(_PAGE.search(body))
        if _comes_again(wording, page, listed) or (
            first is not None and entry is not None and entry.readings[0] == first.readings[0]
        ):
            break
        many = is_contents(body)
        if many or _is_entry(body, entry):
            end, others = at + _last_entry(line), 0
            # Leaders, or a whole table in one line.
            sure = sure or (many and (len(body) > _LONG_LINE or has_leaders(body)))
            entries += _LEAST if many and len(body) > _LONG_LINE else 1
            first = first or entry
            listed.setdefault(wording, page)
            continue
        others += 1
        if len(body) > _LONG_LINE or others > _OTHER_LINES:
            break
    if entries < _LEAST or not (sure or _headings_follow(listed, text[start + end :][:_WINDOW])):
        return None
    return start + end


def has_leaders(line: str) -> bool:
    """Whether a line's entries can be nothing else: dot leaders, or wide gaps before pages."""
    return is_contents_line(line) or len(_HAN_ENTRY.findall(line)) >= _ENTRIES


def _comes_again(wording: str, page: bool, listed: dict[str, bool]) -> bool:
    """Whether a line is the heading of what was listed: the first entry, or one that had a page
    where this line has none. Entries may come twice in a table."""
    if len(wording) < 2 or wording not in listed:
        return False
    return wording == next(iter(listed)) or (listed[wording] and not page)


def _headings_follow(listed: Iterable[str], behind: str) -> bool:
    """Whether what was listed begins lines of the text behind: else the list is of other things."""
    begins = {wording for wording in listed if len(wording) > 1}
    lines = [_wording(line[:_LONG_LINE]) for _, line in _lines(behind)]
    found = {
        one for one in begins if any(line == one or line.startswith(f"{one} ") for line in lines)
    }
    return len(found) >= min(2, len(begins)) and bool(found)


def _last_entry(line: str) -> int:
    """Where the last entry of a line ends: the contract may go on behind it in the same line."""
    if len(line) <= _LONG_LINE or is_contents_line(line):
        return len(line)
    entries = list(_ENTRY.finditer(line))
    if len(entries) < _ENTRIES:
        return len(line)
    end = entries[0].end()
    for entry in entries[1:]:
        if entry.start() - end > _LONG_LINE:
            break
        end = entry.end()
    return end


def in_contents(text: str, position: int) -> bool:
    """Whether a place lies in a table of contents of `text` that a heading announces."""
    return any(start <= position < end for start, end in find_contents(text))


def _is_entry(body: str, entry: Candidate | None) -> bool:
    """Whether a line by itself is an entry: a short heading, or anything short before a page."""
    if len(body) > _LONG_LINE or _SENTENCE.search(body):
        return False
    return entry is not None or bool(_PAGE.search(body))


def _wording(body: str) -> str:
    """The words of an entry without its number and its page."""
    words = _LETTERS.findall(re.sub(r"^\s*第\S{1,4}[条章节编]", "", body))
    return " ".join(words).casefold()


def _lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.split("\n"):
        yield at, line
        at += len(line) + 1


def without_contents(
    offered: Iterable[Candidate], listed: Sequence[tuple[int, int]]
) -> list[Candidate]:
    """The candidates outside of the tables of contents. Annexes behind one, before the text's
    numbers begin, are listed there too and do not begin; a page break may leave one more number of
    the table before them."""
    kept: list[Candidate] = []
    behind, numbers = -1, 0
    for candidate in offered:
        inside = [end for start, end in listed if start <= candidate.start < end]
        if inside:
            behind, numbers = inside[0] + _REST_OF_CONTENTS, 0
            continue
        style, path = candidate.readings[0]
        if style in _NUMBERED:
            numbers += 1
            if numbers > 1 or set(path) == {1}:
                behind = -1
        if candidate.start > behind or style != "attachment":
            kept.append(candidate)
    return kept
