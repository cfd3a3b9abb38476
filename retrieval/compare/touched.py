"""The figures, dates and references that a difference of words touches.

Facts are read in the sentence around the difference, with line breaks as blanks, in both versions;
the counterpart of a touched fact counts even where its own words are equal.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrieval.compare.alignment import Hunk, Range
from retrieval.compare.numbering import WordMap
from retrieval.compare.places import Places
from retrieval.compare.types import Fact, FactReader

_REACH = 60
"""Words of the sentence looked at on each side of a difference."""
_NOTICE = re.compile(r"\bnoti(?:ce|fy|fies|fied|fication)|通知|告知|函告", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Touched:
    """A difference (or several joined) with the facts it touches on both sides."""

    hunk: Hunk
    old: tuple[Fact, ...]
    new: tuple[Fact, ...]
    notice: bool

    @property
    def differing(self) -> list[Fact]:
        """Facts that stand on one side only."""
        old, new = values(self.old), values(self.new)
        only_old, only_new = old - new, new - old
        return [fact for fact in self.old if (fact.kind, fact.key) in only_old] + [
            fact for fact in self.new if (fact.kind, fact.key) in only_new
        ]


class FactFinder:
    """Finds the facts that differences touch."""

    def __init__(self, old: Places, new: Places, words: WordMap, read: FactReader) -> None:
        self._old, self._new, self._map = old, new, words
        self._read = read
        self._facts: dict[tuple[int, int, int], tuple[Fact, ...]] = {}

    def joined(self, hunks: Sequence[Hunk]) -> Iterator[Touched]:
        """The differences in order, those of one fact as one."""
        last: Touched | None = None
        for hunk in hunks:
            touched = self._touched(hunk)
            if last is not None and _share_fact(last, touched):
                start = last.hunk
                touched = self._touched(
                    Hunk(start.old_start, hunk.old_end, start.new_start, hunk.new_end)
                )
            elif last is not None:
                yield last
            last = touched
        if last is not None:
            yield last

    def _touched(self, hunk: Hunk) -> Touched:
        old_facts, notice = self._around(0, hunk.old_start, hunk.old_end)
        new_facts, notice_new = self._around(1, hunk.new_start, hunk.new_end)
        old_span = self._old.words.span(hunk.old_start, hunk.old_end)
        new_span = self._new.words.span(hunk.new_start, hunk.new_end)
        old_hit = {fact for fact in old_facts if _touches(fact, old_span)}
        new_hit = {fact for fact in new_facts if _touches(fact, new_span)}
        # The counterpart of a fact may lie beside the difference: "30 days", "thirty (30) days".
        old_more = {
            fact for fact in old_facts for one in new_hit if self._meets(fact, one, self._map)
        }
        new_more = {
            fact for fact in new_facts for one in old_hit if self._meets(one, fact, self._map)
        }
        return Touched(
            hunk,
            tuple(sorted(old_hit | old_more, key=lambda fact: fact.start)),
            tuple(sorted(new_hit | new_more, key=lambda fact: fact.start)),
            notice or notice_new,
        )

    def _meets(self, old_fact: Fact, new_fact: Fact, words: WordMap) -> bool:
        first = self._old.words.at(old_fact.start)
        last = self._old.words.at(old_fact.end)
        start = self._new.words.at(new_fact.start)
        end = self._new.words.at(new_fact.end)
        return any(start <= words.to_new[index] < end for index in range(first, last))

    def _around(self, side: int, first: int, last: int) -> tuple[tuple[Fact, ...], bool]:
        """The facts of the sentences around words, and whether they speak of notice."""
        places = (self._old, self._new)[side]
        words = places.words
        if not len(words):
            return (), False
        start = min(first, len(words) - 1)
        while start > 0 and first - start < _REACH and not words.ends_sentence(start - 1):
            start -= 1
        stop = max(last, min(first + 1, len(words)))
        while stop < len(words) and stop - last < _REACH and not words.ends_sentence(stop - 1):
            stop += 1
        a, b = words.span(start, stop)
        window = " ".join(places.version.text[a:b].split("\n"))
        if (side, a, b) not in self._facts:
            self._facts[side, a, b] = tuple(
                Fact(a + fact.start, a + fact.end, fact.kind, fact.key, fact.period)
                for fact in self._read(window)
            )
        return self._facts[side, a, b], bool(_NOTICE.search(window))

    def covers(self, touched: Touched) -> bool:
        """Whether all differing words are part of facts."""
        hunk = touched.hunk
        for places, first, last, facts in (
            (self._old, hunk.old_start, hunk.old_end, touched.old),
            (self._new, hunk.new_start, hunk.new_end, touched.new),
        ):
            for index in range(first, last):
                at = places.words.starts[index]
                inside = any(fact.start <= at < fact.end for fact in facts)
                if not inside and not places.words.is_punctuation(index):
                    return False
        return True


def _touches(fact: Fact, span: Range) -> bool:
    start, end = span
    if start == end:
        return fact.start < start < fact.end
    return fact.start < end and start < fact.end


def _share_fact(left: Touched, right: Touched) -> bool:
    return bool(set(left.old) & set(right.old) and set(left.new) & set(right.new))


def values(facts: Sequence[Fact]) -> Counter[tuple[str, str]]:
    """What facts say, without their places."""
    return Counter((fact.kind, fact.key) for fact in facts)
