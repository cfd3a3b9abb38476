"""What a difference of words means: another value, the same value written another way, a reference
that follows a renumbering, a party, a negation, other wording, or nothing.

Reads facts in the sentence around the difference, with line breaks as blanks. It does not judge
which change matters more; `comparison` puts figures first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from retrieval.compare.alignment import Hunk, Range
from retrieval.compare.numbering import WordMap
from retrieval.compare.parties import names_in, organisations, party_words
from retrieval.compare.places import Places
from retrieval.compare.renumbering import Labels, NewNumbers
from retrieval.compare.touched import FactFinder, Touched, values
from retrieval.compare.types import Category, Consequence, Edit, FactReader, Place
from retrieval.compare.words import holds, line_of, whole_words
from retrieval.folding import fold

_NEGATIONS = frozenset(
    re.findall(
        r"\w+",
        """
        not no never neither nor without unless except cannot none nothing excluding
        不 无 未 非 勿 毋 否 免 除
        """,
    )
)
_MARKS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Formatting:
    """A difference that means nothing, at a word of the old version."""

    hunk: Hunk


@dataclass(frozen=True, slots=True)
class Restated:
    """The same value, written another way."""

    edit: Edit


@dataclass(frozen=True, slots=True)
class Followed:
    """A reference that a renumbering explains; `holder` is the change with the renumbering."""

    holder: int
    consequence: Consequence


@dataclass(frozen=True, slots=True)
class Changed:
    """Words that say something else. `hunk` may join several differences of one fact."""

    hunk: Hunk
    edit: Edit


Outcome = Formatting | Restated | Followed | Changed


class EditReader:
    """Classifies differences between two versions."""

    def __init__(
        self,
        old: Places,
        new: Places,
        words: WordMap,
        read: FactReader,
        numbers: NewNumbers,
        labels: Labels,
    ) -> None:
        self._old, self._new = old, new
        self._labels = labels
        self._numbers = numbers
        self._finder = FactFinder(old, new, words, read)
        self._parties = party_words(old.version.text) | party_words(new.version.text)
        self._named = organisations(old.version.text) | organisations(new.version.text)

    def read(self, hunks: Sequence[Hunk]) -> Iterator[Outcome]:
        """The meaning of each difference, in order."""
        for touched in self._finder.joined(hunks):
            yield self._outcome(touched)

    def _outcome(self, touched: Touched) -> Outcome:
        hunk = touched.hunk
        if _squeezed(self._old, hunk.old_start, hunk.old_end) == _squeezed(
            self._new, hunk.new_start, hunk.new_end
        ):
            return Formatting(hunk)
        if self._is_furniture(hunk):
            return Formatting(hunk)
        old_values, new_values = values(touched.old), values(touched.new)
        covered = self._finder.covers(touched)
        if covered and old_values and old_values == new_values:
            edit = self._edit(touched, "figure")
            same = _plain(edit.old.text) == _plain(edit.new.text)
            return Formatting(hunk) if same else Restated(edit)
        holder = self._explained(touched) if covered else None
        if holder is not None:
            return Followed(
                holder,
                Consequence("reference", *self._places(touched)),
            )
        if (holder := self._contents(hunk)) is not None:
            return Followed(holder, Consequence("contents", *self._places(touched)))
        return Changed(hunk, self._edit(touched, self._category(touched)))

    def _is_furniture(self, hunk: Hunk) -> bool:
        """Whether words of one version stand as a page number or header in the other."""
        if hunk.old_size and hunk.new_size:
            return False
        mine, other = (self._old, self._new) if hunk.old_size else (self._new, self._old)
        first, last = (
            (hunk.old_start, hunk.old_end) if hunk.old_size else (hunk.new_start, hunk.new_end)
        )
        printed = other.words.furniture_before(hunk.new_start if hunk.old_size else hunk.old_start)
        said = _plain(" ".join(mine.words.norms[first:last]))
        return bool(said) and said in _plain(printed)

    def _explained(self, touched: Touched) -> int | None:
        """The change whose renumbering explains every reference that differs."""
        if any(fact.kind != "reference" for fact in (*touched.old, *touched.new)):
            return None
        if len(touched.old) != len(touched.new) or not touched.old:
            return None
        holders = [
            self._numbers.holder(before.key, after.key)
            for before, after in zip(touched.old, touched.new, strict=True)
            if before.key != after.key
        ]
        if not holders or None in holders:
            return None
        return holders[0]

    def _contents(self, hunk: Hunk) -> int | None:
        """The change that explains another number in the table of contents."""
        if not hunk.old_size or not hunk.new_size:
            return None
        for places, first in ((self._old, hunk.old_start), (self._new, hunk.new_start)):
            if not holds(places.words.furniture.contents, places.words.starts[first]):
                return None
        before = self._old.of_words(hunk.old_start, hunk.old_end).text
        after = self._new.of_words(hunk.new_start, hunk.new_end).text
        left, right = self._numbers.key(before), self._numbers.key(after)
        return self._numbers.holder(left, right) if left and right else None

    def _category(self, touched: Touched) -> Category:
        hunk = touched.hunk
        differing = touched.differing
        figures = [fact for fact in differing if fact.kind == "figure"]
        if touched.notice and any(fact.period for fact in figures):
            return "notice_period"
        if figures:
            return "figure"
        if any(fact.kind == "date" for fact in differing):
            return "date"
        if self._names_party(hunk):
            return "party"
        a = self._old.words.norms[hunk.old_start : hunk.old_end]
        b = self._new.words.norms[hunk.new_start : hunk.new_end]
        if _negations(a) != _negations(b):
            return "negation"
        if any(fact.kind == "reference" for fact in differing):
            return "reference"
        if all(map(self._old.words.is_punctuation, range(hunk.old_start, hunk.old_end))) and all(
            map(self._new.words.is_punctuation, range(hunk.new_start, hunk.new_end))
        ):
            return "punctuation"
        return "wording"

    def _names_party(self, hunk: Hunk) -> bool:
        if hunk.old_size > 12 or hunk.new_size > 12:
            return False
        for places, first, last in (
            (self._old, hunk.old_start, hunk.old_end),
            (self._new, hunk.new_start, hunk.new_end),
        ):
            for index in range(first, last):
                word = places.words.norms[index].removesuffix("'s")
                if word in self._parties and not places.words.raw(index)[0].islower():
                    return True
            if first < last:
                start, end = places.words.span(first, last)
                line = max(line_of(places.version.text, start)[0], start - 24)
                stop = min(line_of(places.version.text, end)[1], end + 24)
                spans = names_in(places.version.text[line:stop], self._named)
                if any(a + line < end and start < b + line for a, b in spans):
                    return True
        return False

    def _edit(self, touched: Touched, category: Category) -> Edit:
        before, after = self._places(touched)
        kinds = {"figure": ("figure", "date"), "notice_period": ("figure",), "date": ("date",)}
        wanted = kinds.get(category, ("reference",) if category == "reference" else ())
        old = tuple(fact.key for fact in touched.old if fact.kind in wanted)
        new = tuple(fact.key for fact in touched.new if fact.kind in wanted)
        return Edit(category, before, after, *_told_once(old, new))

    def _places(self, touched: Touched) -> tuple[Place, Place]:
        """Where the difference stands, widened to the facts that differ."""
        hunk = touched.hunk
        differing = set(touched.differing) or {*touched.old, *touched.new}
        spans: list[Range] = []
        for places, first, last, facts in (
            (self._old, hunk.old_start, hunk.old_end, touched.old),
            (self._new, hunk.new_start, hunk.new_end, touched.new),
        ):
            start, end = places.words.span(first, last)
            mine = [fact for fact in facts if fact in differing]
            if mine and first == last:
                start, end = mine[0].start, mine[-1].end
            for fact in mine:
                start, end = min(start, fact.start), max(end, fact.end)
            spans.append(whole_words(places.version.text, start, end))
        return self._labels.agreed(self._old.place(*spans[0]), self._new.place(*spans[1]))


def _told_once(
    old: tuple[str, ...], new: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Values without what says the same change again: "three times (3x)" gives "3 times" and 3."""
    if len(old) != len(new):
        return old, new
    pairs = list(dict.fromkeys(zip(old, new, strict=True)))
    kept = [
        (before, after)
        for before, after in pairs
        if not any(a.startswith(f"{before} ") and b.startswith(f"{after} ") for a, b in pairs)
    ]
    return tuple(before for before, _ in kept), tuple(after for _, after in kept)


def _negations(words: Sequence[str]) -> Counter[str]:
    return Counter(word for word in words if word in _NEGATIONS or word.endswith("n't"))


def _squeezed(places: Places, first: int, last: int) -> str:
    """Letters without what hyphenation adds; figures and marks as they are."""
    parts: list[str] = []
    for index in range(first, last):
        word = places.words.norms[index]
        parts.append(
            word
            if _MARKS.fullmatch(word)
            else _MARKS.sub("", word)
            if word.isalpha()
            else f" {word} "
        )
    return "".join(parts)


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", fold(text))
