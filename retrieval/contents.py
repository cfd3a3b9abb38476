"""Lines of a table of contents, told from the clauses that they list.

Knows the look of such lines: dot leaders or a page number behind a heading. Does not know where a
table of contents begins or ends.
"""

from __future__ import annotations

import re

_LEADERS = re.compile(r"(?:\.{3,}|…+|·{3,}|(?:\. ){3,})\s*\d{1,4}\s*$")
_ENTRY = re.compile(
    r"(?:^|\s)\d{1,2}(?:\.\d{1,2}){0,2}\.?\s+[A-Z][A-Za-z'’,/&() -]{2,80}?\s+\d{1,3}(?=\s|$)"
)
_HAN_ENTRY = re.compile(r"(?<=\u3000{4})\d{1,3}\s?第[一二三四五六七八九十百\d]{1,5}[条章节]")
"""A page number behind a wide gap, and the next heading: a table that lost its line breaks."""
_ENTRIES = 2
_TAIL = 60
"""Characters at the end of a line that tell."""


def is_contents_line(line: str) -> bool:
    """Whether a line has dot leaders and a page number."""
    # Leaders of any length end in some; a line of a million dots is not looked at a million times.
    return bool(_LEADERS.search(line[-_TAIL:]))


def is_contents(text: str) -> bool:
    """Whether a passage is a stretch of a table of contents: two entries with page numbers."""
    if any(map(is_contents_line, text.split("\n"))):
        return True
    return any(len(entry.findall(text)) >= _ENTRIES for entry in (_ENTRY, _HAN_ENTRY))
