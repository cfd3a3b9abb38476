"""A text as words that can be compared: case, width, quotes, hyphens, line breaks and blanks told
apart from what is said.

Every Chinese character is a word; a figure is one word with its commas and stops; punctuation that
carries meaning is a word, quotation marks, bullets, leader dots and blank lines are none. Numbers
of clauses (`labels`) are left out: they are compared clause by clause.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from retrieval.compare.furniture import Furniture, Span, find_furniture
from retrieval.compare.types import Version
from retrieval.folding import fold_in_place
from retrieval.headings import candidates
from retrieval.types import Clause

_WORD = re.compile(
    r"""
    [\u3400-\u9fff]
  | \d+(?:[.,]\d+)*
  | [^\W\d_\u3400-\u9fff](?:[^\W\d_\u3400-\u9fff]|\u00ad|[\u200b\u2060])*
        (?:-\n\s*[a-z]+)?(?:'[a-z]+)?
  | (?<![^\W_])-(?=\d) | (?<=\d)-(?=\d)
  | \.{3,} | _+ | \*+
  | [%‰$€£¥₩§&@#+<>=≥≤±×÷/°²³*()\[\]{}.,;:!?、。…①-⑳]
    """,
    re.VERBOSE,
)
# The end of a sentence, or an empty line, and nothing but blanks up to the number.
_BEGINS = re.compile(r"(?:[.;:!?。；：！？]\s*|\n\s*)\n[^\S\n]*$")
_RUN = re.compile(r"[0-9A-Za-z\u00c0-\u024f]")
_DROPPED = re.compile(r"\.{3,}|_+|…")
_JOINTS = re.compile("[\u00ad\u200b\u2060]|-\n\\s*")
_SENTENCE_END = frozenset(".;:!?。")
_PUNCTUATION = frozenset(".,;:!?、。()[]{}")


@dataclass(frozen=True, slots=True)
class Mark:
    """A number at the head of a clause or list item. `clause` is None when the outline does not
    take it for one."""

    start: int
    end: int
    clause: Clause | None


@dataclass(slots=True)
class Words:
    """The words of one version. `starts[i]:ends[i]` is where word i stands; `norms[i]` is what it
    says. `marks[i]` are the numbers right before word i, outermost first. `heads[i]` is true where
    a clause, or a line after a finished sentence, begins."""

    version: Version
    norms: list[str]
    starts: list[int]
    ends: list[int]
    furniture: Furniture
    marks: dict[int, tuple[Mark, ...]] = field(default_factory=dict)
    marked: list[int] = field(default_factory=list)
    heads: list[bool] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.norms)

    def at(self, offset: int) -> int:
        """Index of the first word that starts at or after `offset`."""
        return bisect_left(self.starts, offset)

    def marked_before(self, word: int) -> int | None:
        """The last word at or before `word` that has a number before it."""
        at = bisect_right(self.marked, word) - 1
        return self.marked[at] if at >= 0 else None

    def item(self, word: int) -> range:
        """The words from one with a number before it up to the next such word."""
        at = bisect_right(self.marked, word)
        return range(word, self.marked[at] if at < len(self.marked) else len(self))

    def raw(self, index: int) -> str:
        """The word as it is written."""
        return self.version.text[self.starts[index] : self.ends[index]]

    def span(self, first: int, last: int) -> Span:
        """Characters of the words `first` to `last` (half-open); where there are none, the place
        after the word before."""
        if first < last:
            return self.starts[first], self.ends[last - 1]
        offset = self.ends[first - 1] if first else (self.starts[0] if self.starts else 0)
        return offset, offset

    def furniture_before(self, index: int) -> str:
        """Page numbers and headers between a word and the one before it."""
        start = self.ends[index - 1] if index else 0
        end = self.starts[index] if index < len(self) else len(self.version.text)
        spans = self.furniture.spans
        inside = spans[bisect_left(spans, (start, 0)) : bisect_left(spans, (end, 0))]
        return " ".join(self.version.text[slice(*span)] for span in inside)

    def is_punctuation(self, index: int) -> bool:
        return self.norms[index] in _PUNCTUATION

    def ends_sentence(self, index: int) -> bool:
        return self.norms[index] in _SENTENCE_END


def numbers_of(version: Version) -> frozenset[str]:
    """The numbers of a version's clauses, as they are written."""
    return frozenset(clause.number for clause in version.clauses if clause.number)


def read_words(version: Version, numbers: frozenset[str]) -> Words:
    """Cuts a version into words. `numbers` are those of the clauses of both versions."""
    text = version.text
    folded = fold_in_place(text)
    furniture = find_furniture(text, version.pages)
    marks = _marks(version, numbers)
    skipped = _merged([*furniture.spans, *((mark.start, mark.end) for mark in marks)])
    words = Words(version, [], [], [], furniture)
    at = 0
    for match in _WORD.finditer(folded):
        start, end = match.span()
        while at < len(skipped) and skipped[at][1] <= start:
            at += 1
        if at < len(skipped) and skipped[at][0] <= start:
            continue
        word = match.group()
        if _DROPPED.fullmatch(word):
            continue
        words.norms.append(_normal(word))
        words.starts.append(start)
        words.ends.append(end)
    for mark in marks:
        at = words.at(mark.end)
        words.marks[at] = (*words.marks.get(at, ()), mark)
    words.marked = sorted(words.marks)
    words.heads = _heads(words)
    return words


def _marks(version: Version, numbers: frozenset[str]) -> list[Mark]:
    """Numbers at the heads of clauses. Two outlines may differ in what they take for a clause, so
    numbers that one of them knows, and those of lines after a finished sentence, count too."""
    text = version.text
    known = {clause.start: clause for clause in version.clauses if clause.number}
    return [
        Mark(found.start, found.end, known.get(found.start))
        for found in candidates(text)
        if found.start in known
        # "Exhibit A" begins a line by chance far more often than "12.3".
        or (found.label in numbers and found.readings[0][0] != "attachment")
        or _BEGINS.search(text, max(0, found.start - 80), found.start)
    ]


def _normal(word: str) -> str:
    if word.isascii() and word.isalnum():
        return word
    if word[0] == "*":
        return "*"
    return unicodedata.normalize("NFKC", _JOINTS.sub("", word))


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def _heads(words: Words) -> list[bool]:
    text = words.version.text
    clauses = {words.at(clause.start) for clause in words.version.clauses} | set(words.marks)
    lengths = sorted(len(line) for line in text.split("\n") if line.strip())
    full = 0.6 * lengths[int(0.9 * (len(lengths) - 1))] if lengths else 0.0
    heads: list[bool] = []
    for index, start in enumerate(words.starts):
        if index == 0 or index in clauses:
            heads.append(True)
            continue
        before = words.ends[index - 1]
        gap = text[before:start]
        if "\n" not in gap:
            heads.append(False)
            continue
        # A line that ends early was not broken for lack of room.
        short = before - (text.rfind("\n", 0, before) + 1) < full
        heads.append("\n\n" in gap or words.ends_sentence(index - 1) or short)
    return heads


def whole_words(text: str, start: int, end: int) -> Span:
    """A span that cuts no Latin word or figure, nor a bracket that opens in it and closes right
    behind: of "three times (3x)" not just "three times (3"."""
    if start == end:
        return start, end
    while _RUN.match(text[start]) and start and _RUN.match(text[start - 1]):
        start -= 1
    while _RUN.match(text[end - 1]) and end < len(text) and _RUN.match(text[end]):
        end += 1
    said = text[start:end]
    for opening, closing in ("()", "（）", "[]"):
        if text[end : end + 1] == closing and said.count(opening) > said.count(closing):
            end += 1
    return start, end


def line_of(text: str, offset: int) -> Span:
    """The line around an offset."""
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    return start, len(text) if end < 0 else end


def holds(spans: Sequence[Span], offset: int) -> bool:
    """Whether one of the ordered spans holds the offset."""
    at = bisect_right(spans, (offset, 1 << 60)) - 1
    return at >= 0 and spans[at][0] <= offset < spans[at][1]
