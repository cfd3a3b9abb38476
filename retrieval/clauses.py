"""The clause outline of a contract or statute, English or Chinese.

Candidates of `headings` are accepted when they fit the sequence: the next number at an open
level, the first number of a new level, or (for articles) a small gap. So a reference at the start
of a line, a price list or a year is not taken for a clause. It does not know layout: font sizes
and indents are not looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.contents import find_contents, without_contents
from retrieval.decimals import Path, backbone
from retrieval.headings import Candidate, Style, candidates, capital_headings
from retrieval.numerals import NUMERAL_CLASS
from retrieval.types import Clause

# Absolute styles close everything of their own rank or below; the others nest where they appear.
_RANK: dict[Style, int] = {
    "attachment": 0, "part": 1, "chapter": 2, "division": 3, "article": 4, "caps": 4,
}  # fmt: skip
_RELATIVE = 10
_CHINESE: tuple[Style, ...] = ("han", "han-paren")
"""Styles of headings above decimal numbers: 一、 with 1.1 and 1.2 below it, then 二、."""
_MAX_TITLE = 80
_RUNS_ON = re.compile(rf"[{NUMERAL_CLASS}\d]"), re.compile("[A-Za-z]")
_ATTACHMENT = re.compile(r"(?:schedule|annex|appendix|exhibit|attachment)\b", re.IGNORECASE)
_ARTICLE = re.compile(rf"第[{NUMERAL_CLASS}\d]+条(?:之[{NUMERAL_CLASS}])?")
_FEW_NUMBERS = 4
_YEARS = 1000
"""Numbers from here on may be years."""


@dataclass(slots=True)
class _Open:
    """A clause that has started and not ended: `index` in the outline."""

    index: int
    style: Style
    path: tuple[int, ...]


class _Builder:
    """Accepts candidates one by one and keeps the stack of open clauses."""

    def __init__(self, text: str, decimals: Mapping[int, Path]) -> None:
        """`decimals`: see `Backbone.numbers`."""
        self._text = text
        self._decimals = decimals
        self._places = sorted(decimals)
        self._stack: list[_Open] = []
        self._last: dict[Style, int] = {}
        self._last_single = -1
        self.found: list[tuple[Candidate, int | None, int]] = []

    def offer(self, candidate: Candidate) -> bool:
        """Takes the candidate into the outline when one of its readings fits."""
        for style, path in sorted(candidate.readings, key=self._preference):
            keep = self._fit(candidate, style, path)
            if keep is not None:
                del self._stack[keep:]
                parent = self._stack[-1].index if self._stack else None
                self.found.append((candidate, parent, len(self._stack) + 1))
                self._stack.append(_Open(len(self.found) - 1, style, path))
                self._last[style] = path[-1]
                if style == "dotted" and len(path) == 1:
                    self._last_single = path[-1]
                return True
        return False

    def _preference(self, reading: tuple[Style, tuple[int, ...]]) -> int:
        """Readings that continue the deepest open level come first."""
        style, path = reading
        for depth, entry in enumerate(reversed(self._stack)):
            if entry.style == style and path[-1] == entry.path[-1] + 1:
                return depth
        return 100 if path[-1] == 1 else 200

    def _fit(self, candidate: Candidate, style: Style, path: tuple[int, ...]) -> int | None:
        """How many open clauses stay open if the candidate is taken; None when it does not fit."""
        confirmed = self._decimals.get(candidate.start)
        if confirmed is not None:
            if path != confirmed:
                return None
            return self._enclosing(style) if style in _RANK else self._above(path)
        if style == "dotted" and len(path) > 1 and not self._between(candidate.start, path):
            return None
        if style in _RANK:
            return self._fit_absolute(candidate, style, path[-1])
        if style == "dotted":
            return self._fit_dotted(candidate, path)
        for place in range(len(self._stack) - 1, -1, -1):
            entry = self._stack[place]
            if entry.style == style and path[-1] == entry.path[-1] + 1:
                return place
        if path[-1] != 1:
            return None
        same = [place for place, entry in enumerate(self._stack) if entry.style == style]
        return same[-1] if same else len(self._stack)

    def _above(self, path: Path) -> int:
        """How many open clauses may enclose a clause with this number."""
        keep, headed = 0, False
        for entry in self._stack:
            if entry.style == "dotted":
                inside = headed = path[: len(entry.path)] == entry.path != path
            elif entry.style == "article":
                inside = headed = entry.path[-1] == path[0]
            elif entry.style in _CHINESE:
                # A heading above the numbers stays open; below one it is a list in its text.
                inside = not headed
            else:
                inside = entry.style in _RANK
            if not inside:
                break
            keep += 1
        return keep

    def _between(self, start: int, path: Path) -> bool:
        """Whether a number that nothing confirms fits between the confirmed ones around it."""
        behind = bisect_right(self._places, start)
        if behind and path <= self._decimals[self._places[behind - 1]]:
            return False
        if behind == len(self._places):
            return True
        following = self._decimals[self._places[behind]]
        return path < following or following[0] == 1

    def _fit_absolute(self, candidate: Candidate, style: Style, number: int) -> int | None:
        last = self._last.get(style)
        if style not in ("attachment", "caps") and last is not None:
            step = number - last
            fits = step in (0, 1) or number == 1 or (1 < step <= 5 and candidate.titled)
            if step == 0 and "之" not in candidate.label:
                fits = candidate.titled
            if not fits:
                return None
        return self._enclosing(style)

    def _enclosing(self, style: Style) -> int:
        """How many open clauses are of a higher rank than this absolute style."""
        keep = 0
        for entry in self._stack:
            if _RANK.get(entry.style, _RELATIVE) >= _RANK[style]:
                break
            keep += 1
        return keep

    def _fit_dotted(self, candidate: Candidate, path: tuple[int, ...]) -> int | None:
        for place in range(len(self._stack) - 1, -1, -1):
            entry = self._stack[place]
            if entry.style == "dotted":
                if len(entry.path) == len(path) and entry.path[:-1] == path[:-1]:
                    step = path[-1] - entry.path[-1]
                    if step == 1 or (1 < step <= 3 and len(path) > 1 and not candidate.inline):
                        return place
                if entry.path == path[:-1] and path[-1] == 1:
                    return place + 1
                if len(path) == 2 and path[-1] == 1 and entry.path[0] + 1 == path[0]:
                    return place if len(entry.path) == 2 else None
            if entry.style == "article" and len(path) > 1 and entry.path == path[:-1]:
                return place + 1 if path[-1] <= 2 else None
        # A number like a year only continues a sequence.
        if candidate.inline or path[0] >= _YEARS:
            return None
        if all(part == 1 for part in path):
            same = [i for i, entry in enumerate(self._stack) if entry.style == "dotted"]
            return same[0] if same else len(self._stack)
        # A document may open in the middle (an excerpt, a lost heading): trust a titled line, and
        # the first number of a lower level.
        if any(entry.style == "dotted" for entry in self._stack):
            return None
        fits = candidate.titled and (len(path) > 1 or "dotted" not in self._last)
        if fits or (len(path) > 1 and path[-1] == 1):
            return len(self._stack)
        if len(path) == 1 and path[-1] == self._last_single + 1:
            return len(self._stack)
        return None


def _title(text: str, start: int) -> str:
    """The heading after a number: the rest of a short line, or its first few words up to a stop."""
    line = text[start : start + 200].split("\n", 1)[0].strip(" \t\u3000.:：、—-–")
    if not line:
        following = text[start : start + 200].lstrip().split("\n", 1)[0].strip()
        # "ARTICLE I" alone on its line: the next short line is its title.
        short = len(following) <= 60 and not re.search(r"[.。;；,，:：]$", following)
        return following if short and not re.match(r"[\d(（第]", following) else ""
    if re.search("[\u4e00-\u9fff]", line):
        head = re.split(r"[。；;：:]|(?<!\d)．|[ \u3000]{2,}", line, maxsplit=1)[0].strip()
        return head if len(head) <= 30 and not re.search(r"[，,]", head) else ""
    head = re.split(r"(?<=[a-zA-Z)\"”])[.:;]\s|\s{3,}|\s[-–—]\s", line, maxsplit=1)[0].strip(" .:;")
    return head if len(head) <= _MAX_TITLE else ""


def outline(text: str) -> tuple[Clause, ...]:
    """The clauses of `text` in order, nested by `parent`; empty when it has none.

    Capitalised headings are used only in texts with fewer than four numbered clauses.
    """
    offered = without_contents(candidates(text), find_contents(text))
    found = _build(text, offered)
    if len(found) < _FEW_NUMBERS:
        merged = sorted([*offered, *capital_headings(text)], key=lambda c: c.start)
        found = _build(text, merged)
    clauses: list[Clause] = []
    ends = _ends(found, len(text))
    for index, (candidate, parent, level) in enumerate(found):
        title = _title(text, candidate.end)
        clauses.append(
            Clause(index, candidate.label, title, level, candidate.start, ends[index], parent)
        )
    return tuple(clauses)


def _build(text: str, offered: Sequence[Candidate]) -> list[tuple[Candidate, int | None, int]]:
    spine = backbone(offered)
    builder = _Builder(text, spine.numbers)
    first, last = spine.contents or (0, 0)
    for candidate in offered:
        if not first <= candidate.start < last:
            builder.offer(candidate)
    return builder.found


def _ends(found: Sequence[tuple[Candidate, int | None, int]], length: int) -> list[int]:
    ends = [length] * len(found)
    open_: list[int] = []
    for index, (candidate, _, level) in enumerate(found):
        while open_ and found[open_[-1]][2] >= level:
            ends[open_.pop()] = candidate.start
        open_.append(index)
    return ends


def path(clauses: Sequence[Clause], index: int) -> tuple[Clause, ...]:
    """The clause and everything that encloses it, outermost first."""
    chain: list[Clause] = []
    at: int | None = index
    while at is not None:
        chain.append(clauses[at])
        at = clauses[at].parent
    return tuple(reversed(chain))


def label(clauses: Sequence[Clause], index: int) -> str:
    """How a clause is cited: "12.3(b)", "第七条（1）", "六、6", "Article 4".

    Chapters and attachments above an article are left out; a clause without a number is cited by
    its title.
    """
    parts: list[str] = []
    for clause in path(clauses, index):
        number = clause.number.rstrip(".、． ")
        if not number:
            continue
        if clause.index != index and _ATTACHMENT.match(number):
            continue
        if re.match(r"[(（①-⑳]|[\da-z]+[)）]$", number) and parts:
            parts.append(number)
        elif (
            re.match(r"第.+条|[A-Za-z]+\s*[-–]?\s*[\dIVXL]|\d+(?:[.．]\d+)+", number)
            or not parts
            or re.match(r"第.+[章节编分]", parts[-1])
        ):
            parts = [number]
        else:
            parts.append(number)
    return _joined(parts) or clauses[index].title


def _joined(parts: Sequence[str]) -> str:
    """Numbers in each other as one: "12.3(b)", and "六、6", where together they would read as
    another number."""
    said = ""
    for part in parts:
        if said and any(kind.match(said[-1]) and kind.match(part) for kind in _RUNS_ON):
            said += "." if said[-1].isascii() else "、"
        said += part
    return said


def around(clauses: Sequence[Clause], offset: int) -> Clause | None:
    """The innermost clause around a place, None outside of all."""
    at: int | None = bisect_right(clauses, offset, key=lambda clause: clause.start) - 1
    if at is not None and at < 0:
        return None
    while at is not None and offset >= clauses[at].end:
        at = clauses[at].parent
    return None if at is None else clauses[at]


def label_at(clauses: Sequence[Clause], offset: int) -> str | None:
    """How the innermost clause around a place is cited; None outside of all clauses.

    A chunk may join several small clauses, so a quote is cited by its own place.
    """
    inside = around(clauses, offset)
    return None if inside is None else label(clauses, inside.index) or None


def label_over(clauses: Sequence[Clause], start: int, end: int) -> str | None:
    """How a stretch is cited: as the clause at its start, and where further articles of a statute
    begin in it, from the first to the last: "第四十六条至第四十七条"."""
    first = label_at(clauses, start)
    at = bisect_left(clauses, end, key=lambda clause: clause.start) - 1
    while at >= 0 and clauses[at].start > start:
        if first and _ARTICLE.match(first) and _ARTICLE.fullmatch(clauses[at].number):
            return f"{first}至{clauses[at].number}"
        at -= 1
    return first
