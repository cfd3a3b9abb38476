"""The sentences of a document with their place, as the rules see them.

Knows the outline (which clause a sentence stands in) and the pages. A table row is a sentence of
its own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.clauses import label
from retrieval.compare.types import Place
from retrieval.folding import fold_in_place
from retrieval.sentences import split
from retrieval.types import Clause, DocumentPage

_SPACE = re.compile(r"\s+")
_HAN_SPACE = re.compile(r"(?<=[^\x00-\x7f]) (?=[^\x00-\x7f])")
_HEADING = re.compile(r"\.{6,}\s*\d+$|^[^a-z\u4e00-\u9fff]{0,8}$")


def plain(text: str) -> str:
    """One line in lower case, simplified Chinese, plain quotes, no space between Han characters."""
    return _HAN_SPACE.sub("", _SPACE.sub(" ", fold_in_place(text))).strip()


@dataclass(frozen=True, slots=True)
class Passage:
    """A sentence: `text[start:end]` and its plain form."""

    start: int
    end: int
    plain: str


class Places:
    """Clause and page of any span of one text; no page where `pages` is empty."""

    def __init__(self, text: str, clauses: Sequence[Clause], pages: Sequence[DocumentPage]) -> None:
        self._text = text
        self._clauses = clauses
        self._pages = pages
        self._starts = [clause.start for clause in clauses]
        self._page_starts = [page.start for page in pages]

    def place(self, start: int, end: int) -> Place:
        """The span with the clause and the page that hold its first character."""
        text, clause = self._text[start:end], self._clause(start)
        if not self._pages:
            return Place(start, end, text, clause, None, None)
        page = self._pages[max(bisect_right(self._page_starts, start) - 1, 0)]
        return Place(start, end, text, clause, page.number, page.label)

    def _clause(self, offset: int) -> str | None:
        at = bisect_right(self._starts, offset) - 1
        found: int | None = at if at >= 0 else None
        while found is not None and self._clauses[found].end <= offset:
            found = self._clauses[found].parent
        return None if found is None else label(self._clauses, found) or None


def passages(text: str, clauses: Sequence[Clause]) -> tuple[Passage, ...]:
    """Every sentence of the text that is more than a heading or a line of a table of contents."""
    found = []
    for start, end in split(text, starts=[clause.start for clause in clauses]):
        line = plain(text[start:end])
        if not _HEADING.search(line):
            found.append(Passage(start, end, line))
    return tuple(found)
