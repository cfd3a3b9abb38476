"""Every clause of a document that mentions something: an exhaustive look, not a ranked one.

English words are compared by stem, Chinese by characters, in the folded text; a legal idea can be
looked for by all its wordings in the vocabulary. Facts (dates, amounts…) are found by their form.
It does not know meaning: a clause that treats a matter without naming it is not found.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrieval.clauses import around
from retrieval.contents import has_leaders, in_contents, is_contents
from retrieval.facts import FactKind, find_facts
from retrieval.folding import fold, fold_in_place
from retrieval.language import detect
from retrieval.sentences import Span, split
from retrieval.stems import Word, words
from retrieval.types import Clause
from retrieval.vocabulary import Concept, vocabulary
from retrieval.wordlists import word_list

_HAN = re.compile("[\u3400-\u9fff]")
_OR = re.compile(r"\s+or\s+|\s*/\s*|或者?|、")
_MAX_QUOTE = 420
_AROUND = 150
"""Characters behind a place that tell whether a long line is a table of contents there."""
_GAP_WORDS = 2
"""Stop words that may stand between two words of a phrase ("limit of the liability")."""


@dataclass(frozen=True, slots=True)
class Place:
    """One clause (or, outside of all clauses and for facts, one sentence) that holds what is looked
    for: `text[start:end]` is to be quoted; `count` mentions."""

    start: int
    end: int
    clause: int | None
    count: int


Alternative = tuple[str, ...] | str
"""English stems in a row, or a string that is looked for as it is written."""


@dataclass(frozen=True, slots=True)
class Wording:
    """What is looked for."""

    alternatives: tuple[Alternative, ...]
    whole: bool = True
    """Whether the words must stand together; else all of them in one sentence."""


def wordings(wanted: str, language: str, *, broad: bool) -> tuple[Wording, ...]:
    """How to look for `wanted` in a document of `language`, the strictest way first.

    The vocabulary's other wordings of the same idea count when `broad`, or when the document is in
    the other language.
    """
    concepts = _named_concepts(wanted)
    parts = [part for part in _OR.split(wanted) if part.strip()]
    own = _alternatives(parts)
    foreign = (detect(wanted) == "zh") != (language == "zh")
    others = [phrase for concept in concepts for phrase in concept.phrases]
    if broad or foreign:
        return (Wording((*own, *_alternatives(others))),)
    loose = [Wording(own, whole=False)] if any(len(one) > 1 for one in own) else []
    return (Wording(own), *loose) if own else ()


def can_look_for(wanted: str, language: str) -> bool:
    """Whether the words of `wanted` are known in a document of `language`: they are of that
    language, or the vocabulary has them in it."""
    return (detect(wanted) == "zh") == (language == "zh") or bool(_named_concepts(wanted))


def _alternatives(parts: Sequence[str]) -> tuple[Alternative, ...]:
    return tuple(one for part in parts if (one := _alternative(part)) is not None)


def _alternative(part: str) -> Alternative | None:
    folded = fold(part).strip()
    if _HAN.search(folded):
        return re.sub(r"\s", "", folded)
    if re.search(r"\d", folded):
        # "Schedule 2", "SF6" and figures are looked for as they are written.
        return re.sub(r"^(?:the|an?) ", "", folded)
    stop = word_list("english_stop")
    found = words(folded)
    return tuple(w.stem for w in found if folded[w.start : w.end] not in stop) or None


def _named_concepts(wanted: str) -> tuple[Concept, ...]:
    """Concepts of which `wanted` is one wording, whole."""
    folded = re.sub(r"^(?:the|an?) ", "", fold(wanted).strip())
    found = vocabulary().in_questions.mentions(folded, words(folded))
    whole = [m.concept for m in found if m.start == 0 and m.end >= len(folded) - 1]
    return tuple({concept.name: concept for concept in whole}.values())


def _spelled(one: str) -> re.Pattern[str]:
    """The words as written, whole figures only; a line break may stand inside a Chinese word."""
    if _HAN.search(one):
        return re.compile(r"\s?".join(map(re.escape, one)))
    spaced = r"\s+".join(map(re.escape, one.split()))
    return re.compile(rf"(?<![a-z0-9.]){spaced}(?![a-z0-9]|[.,]\d)")


class Scanner:
    """Looks through one document; folds its text and cuts it into sentences once."""

    def __init__(self, text: str, clauses: Sequence[Clause]) -> None:
        self._text = text
        self._clauses = clauses
        self._folded = fold_in_place(text)
        self._starts = [clause.start for clause in clauses]
        self._words: list[Word] | None = None
        self._lines: list[int] | None = None
        self._in_lists: dict[int, bool] = {}
        self._cut: dict[Span, tuple[list[int], tuple[Span, ...]]] = {}

    def mentions(self, wording: Wording) -> tuple[Place, ...]:
        """Every clause that holds one of the alternatives, in the order of the document."""
        found = sorted({at for one in wording.alternatives for at in self._find(one, wording)})
        kept: list[Span] = []
        for span in found:
            if not kept or span[0] >= kept[-1][1]:
                kept.append(span)
        return self._places(kept)

    def facts(self, kind: FactKind) -> tuple[Place, ...]:
        """Every sentence that holds a fact of the kind, in the order of the document."""
        found: dict[Span, int] = defaultdict(int)
        for at in find_facts(self._folded, kind):
            found[self._sentence(at)] += 1
        return tuple(
            Place(start, end, self._clause_at(start), count)
            for (start, end), count in sorted(found.items())
            if not self._in_contents(start)
        )

    def _find(self, one: Alternative, wording: Wording) -> Iterator[Span]:
        if isinstance(one, str):
            yield from (match.span() for match in _spelled(one).finditer(self._folded))
            return
        listed = self._listed()
        if not wording.whole:
            yield from self._together(one, listed)
            return
        for at, word in enumerate(listed):
            if word.stem == one[0]:
                end = self._phrase_end(one, listed, at)
                if end is not None:
                    yield word.start, end

    def _phrase_end(self, one: tuple[str, ...], listed: Sequence[Word], at: int) -> int | None:
        place = at
        stop = word_list("english_stop")
        for stem in one[1:]:
            for step in range(1, _GAP_WORDS + 2):
                if place + step >= len(listed):
                    return None
                following = listed[place + step]
                if following.stem == stem:
                    place += step
                    break
                if self._folded[following.start : following.end] not in stop:
                    return None
            else:
                return None
        return listed[place].end

    def _together(self, one: tuple[str, ...], listed: Sequence[Word]) -> Iterator[Span]:
        """Sentences that hold every word, as the span of the rarest one in them."""
        where: dict[str, list[Word]] = {stem: [] for stem in one}
        for word in listed:
            if word.stem in where:
                where[word.stem].append(word)
        starts = {stem: [word.start for word in found] for stem, found in where.items()}
        rarest = min(one, key=lambda stem: len(where[stem]))
        for word in where[rarest]:
            start, end = self._sentence((word.start, word.end))
            if all(bisect_left(at, start) < bisect_left(at, end) for at in starts.values()):
                yield word.start, word.end

    def _listed(self) -> list[Word]:
        if self._words is None:
            self._words = words(self._folded)
        return self._words

    def _places(self, spans: Sequence[Span]) -> tuple[Place, ...]:
        units: dict[tuple[int | None, Span | None], list[Span]] = defaultdict(list)
        for span in spans:
            if self._in_contents(span[0]):
                continue
            clause = self._clause_at(span[0])
            outside = self._sentence(span) if clause is None else None
            units[(clause, outside)].append(span)
        return tuple(
            Place(*self._quote(inside), clause, len(inside))
            for (clause, _), inside in units.items()
        )

    def _quote(self, inside: Sequence[Span]) -> Span:
        """The first sentence with a mention; a mention in a heading takes the sentence behind it
        along, unless the clause says it again."""
        sentences = [self._sentence(span) for span in inside]
        body = next((s for s in sentences if not self._is_heading(s)), None)
        if body is not None:
            return body
        start, end = sentences[0]
        following = self._sentence((min(end + 1, len(self._text) - 1),) * 2)
        joined = following[0] >= end and following[1] - start <= _MAX_QUOTE
        same = self._clause_at(following[0]) == self._clause_at(start)
        return (start, following[1]) if joined and same else (start, end)

    def _is_heading(self, span: Span) -> bool:
        line = self._text[slice(*span)]
        return len(line) < 80 and not re.search(r"[.;:。；：]\s*$", line.rstrip())

    def _in_contents(self, position: int) -> bool:
        """Whether a place lies in a table of contents, or its line looks like a part of one."""
        if in_contents(self._text, position):
            return True
        if self._lines is None:
            breaks = (match.end() for match in re.finditer("\n", self._text))
            self._lines = [0, *breaks, len(self._text) + 1]
        at = bisect_right(self._lines, position) - 1
        start, end = self._lines[at], self._lines[at + 1] - 1
        if end - start > 2 * _AROUND:
            # A whole contract may stand in one line, behind its table of contents.
            return is_contents(self._text[position : min(end, position + _AROUND)])
        if at not in self._in_lists:
            self._in_lists[at] = has_leaders(self._text[start:end])
        return self._in_lists[at]

    def _region(self, position: int) -> Span:
        """The stretch between the clause starts around a place."""
        at = bisect_right(self._starts, position) - 1
        start = self._starts[at] if at >= 0 else 0
        end = self._starts[at + 1] if at + 1 < len(self._starts) else len(self._text)
        return start, end

    def _sentence(self, span: Span) -> Span:
        region = self._region(span[0])
        # Once a region: many mentions in one of a million characters would cut it again and again.
        if region not in self._cut:
            sentences = split(self._text, *region)
            self._cut[region] = [start for start, _ in sentences], sentences
        starts, sentences = self._cut[region]
        at = bisect_right(starts, span[0]) - 1
        if at >= 0 and span[0] < sentences[at][1]:
            return sentences[at]
        line_end = self._text.find("\n", span[1])
        return span[0], line_end if 0 <= line_end < region[1] else region[1]

    def _clause_at(self, position: int) -> int | None:
        clause = around(self._clauses, position)
        return None if clause is None else clause.index
