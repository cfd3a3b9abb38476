"""Where words of a version stand: clause, page, line. Built once for a version."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace

from retrieval.clauses import label
from retrieval.compare.types import Place, Version
from retrieval.compare.words import Words
from retrieval.types import Clause


class Places:
    """The outline and the pages of one version, by word and by character."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.version: Version = words.version
        clauses = words.version.clauses
        self.firsts = [words.at(clause.start) for clause in clauses]
        self.lasts = [words.at(clause.end) for clause in clauses]
        """Words of a clause with everything below it, half-open."""
        self._starts = [clause.start for clause in clauses]
        self._pages = [page.start for page in words.version.pages]
        self._labels: dict[int, str | None] = {}

    def clause_at(self, offset: int) -> Clause | None:
        """The innermost clause around a character."""
        at = bisect_right(self._starts, offset) - 1
        clauses = self.version.clauses
        found: int | None = at if at >= 0 else None
        while found is not None and clauses[found].end <= offset:
            found = clauses[found].parent
        return None if found is None else clauses[found]

    def clause_of(self, word: int) -> Clause | None:
        """The innermost clause around a word; behind the last word, that of the last."""
        if not len(self.words):
            return None
        return self.clause_at(self.words.starts[min(word, len(self.words) - 1)])

    def label(self, clause: Clause | None) -> str | None:
        """How a clause is cited."""
        if clause is None:
            return None
        if clause.index not in self._labels:
            self._labels[clause.index] = label(self.version.clauses, clause.index) or None
        return self._labels[clause.index]

    def place(self, start: int, end: int, clause: Clause | None = None) -> Place:
        """A span of the text with its clause (found by its start unless given) and page."""
        text = self.version.text
        holder = clause or self.clause_at(start if start < end else max(start - 1, 0))
        label = self.label(holder)
        if not self.version.paged:
            return Place(start, end, text[start:end], label, None, None)
        page = self.version.pages[max(bisect_right(self._pages, start) - 1, 0)]
        return Place(start, end, text[start:end], label, page.number, page.label)

    def of_words(self, first: int, last: int) -> Place:
        """The place of the words `first` to `last`, half-open. The number of a clause belongs to
        the words that begin it."""
        start, end = self.words.span(first, last)
        return self.place(start, end)

    def of_block(self, first: int, last: int) -> Place:
        """The place of whole clauses or paragraphs, from the number of the first one on."""
        start, end = self.words.span(first, last)
        clause = self.clause_starting(first)
        marks = self.words.marks.get(first) if first < last else None
        if not marks:
            return self.place(start, end, clause)
        place = self.place(marks[0].start, end, clause)
        if clause is not None:
            return place
        number = self.version.text[marks[0].start : marks[0].end]
        return replace(place, clause=number.strip(" .,、"))

    def clause_starting(self, word: int) -> Clause | None:
        """The outermost clause whose first word this is, number aside."""
        at = bisect_right(self.firsts, word - 1)
        while at < len(self.firsts) and self.firsts[at] == word:
            if self.lasts[at] > word:
                return self.version.clauses[at]
            at += 1
        return None

    def own_words(self, clause: Clause) -> range:
        """The words of a clause before the first clause inside it."""
        first, last = self.firsts[clause.index], self.lasts[clause.index]
        if clause.index + 1 < len(self.firsts):
            last = min(last, self.firsts[clause.index + 1])
        return range(first, last)

    def blocks(self, first: int, last: int) -> list[tuple[int, int]]:
        """The words `first` to `last` cut into clauses with everything below them, as far as the
        range holds them whole, and the stretches between."""
        found: list[tuple[int, int]] = []
        at = first
        while at < last:
            clause = self.clause_starting(at)
            if clause is not None:
                stop = min(self.lasts[clause.index], last)
            else:
                nearest = bisect_right(self.firsts, at)
                stop = min(self.firsts[nearest], last) if nearest < len(self.firsts) else last
            found.append((at, stop))
            at = stop
        return found
