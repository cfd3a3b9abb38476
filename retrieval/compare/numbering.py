"""Which clauses have another number than before, in runs: one deleted clause moves up the others.

Clauses are paired by their words, never by their number. A number that only one of the two outlines
took for a clause number is found among the differing words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from retrieval.compare.alignment import Hunk
from retrieval.compare.moves import Move
from retrieval.compare.places import Places
from retrieval.compare.types import Place
from retrieval.compare.words import Mark
from retrieval.folding import fold
from retrieval.numerals import chinese_number
from retrieval.types import Clause

_NUMBER_WORDS = re.compile(
    r"article|section|clause|part|chapter|[第条章节编款项]|部分|[\s.:、()\-,]"
)
_ZH_KIND = re.compile(r"第.+?(部分|[条章节编])")
_NUMBER_LIKE = re.compile(
    r"(?:\d+\.)*\d+[a-z]?|[a-z]{1,2}|[ivxl]{1,5}"
    r"|(?:schedule|annex|appendix|exhibit|attachment)[a-z\d]{1,4}"
)
_MAX_NUMBER_WORDS = 6
_UNRANKED = 50
"""The level of a number that is in no outline: below all clauses."""


@dataclass(frozen=True, slots=True)
class Renumbered:
    """One clause with another number. A clause is None in the outline that does not know it."""

    old: Clause | None
    new: Clause | None
    old_place: Place
    new_place: Place
    old_key: str
    new_key: str
    level: int


@dataclass(slots=True)
class Run:
    """Clauses one after the other whose numbers are shifted alike."""

    members: list[Renumbered]
    shift: tuple[object, ...]
    style: str

    @property
    def step(self) -> int:
        """By how much the numbers grew; 0 when they have nothing in common."""
        return self.shift[1] if isinstance(self.shift[1], int) else 0


@dataclass(frozen=True, slots=True)
class Numbering:
    """`runs` in document order; `moved` holds for each move (by index) the members inside it;
    `taken` are differences that are numbers of clauses."""

    runs: tuple[Run, ...]
    moved: tuple[tuple[Renumbered, ...], ...]
    taken: frozenset[Hunk]


class WordMap:
    """Which word of the other version each word is, outside of differences."""

    def __init__(
        self, old_size: int, new_size: int, hunks: Sequence[Hunk], moves: Sequence[Move]
    ) -> None:
        self.to_new = [-1] * old_size
        self.to_old = [-1] * new_size
        self._equal(hunks, (0, old_size), (0, new_size))
        for move in moves:
            self._equal(move.hunks, move.old, move.new)

    def _equal(self, hunks: Sequence[Hunk], old: tuple[int, int], new: tuple[int, int]) -> None:
        x, y = old[0], new[0]
        for hunk in [*hunks, Hunk(old[1], old[1], new[1], new[1])]:
            for step in range(hunk.old_start - x):
                self.to_new[x + step] = y + step
                self.to_old[y + step] = x + step
            x, y = hunk.old_end, hunk.new_end


def number_key(number: str) -> str:
    """A clause number in one spelling: "Section 7.2." and "7.2" are equal, 第七条 and 第7条 too."""
    bare = _NUMBER_WORDS.sub(lambda m: "." if m[0] == "." else "", fold(number)).strip(".")
    chinese = chinese_number(bare) if bare else None
    return bare if chinese is None else f"{int(chinese)}"


def find_numbering(
    old: Places, new: Places, words: WordMap, edits: Sequence[Hunk], moves: Sequence[Move]
) -> Numbering:
    """Pairs the numbers and collects those that differ."""
    found: list[Renumbered] = []
    taken: set[Hunk] = set()
    unread_new = {hunk.old_start: hunk for hunk in edits if not hunk.old_size}
    unread_old = {hunk.new_start: hunk for hunk in edits if not hunk.new_size}
    paired: set[int] = set()
    for at in sorted(old.words.marks):
        chain = old.words.marks[at]
        other = _counterpart(at, old, new, words)
        if other is not None:
            paired.add(other)
            found += _chains(chain, new.words.marks[other], (at, other), old, new)
        elif hunk := _unread(unread_new.get(at), 1, new):
            taken.add(hunk)
            place = _by_itself(new.of_words(hunk.new_start, hunk.new_end))
            found.append(_item(chain[-1], None, _of_mark(old, chain[-1]), place))
    for at in sorted(set(new.words.marks) - paired):
        if hunk := _unread(unread_old.get(at), 0, old):
            taken.add(hunk)
            mark = new.words.marks[at][-1]
            place = _by_itself(old.of_words(hunk.old_start, hunk.old_end))
            found.append(_item(None, mark, place, _of_mark(new, mark)))
    found.sort(key=lambda item: item.new_place.start)
    return _grouped(found, old, moves, taken)


def _counterpart(at: int, old: Places, new: Places, words: WordMap) -> int | None:
    """The word of the new version whose numbers answer those before the old word `at`: the first
    equal words behind both numbers are the same."""
    anchor = next((i for i in old.words.item(at) if words.to_new[i] >= 0), None)
    if anchor is None:
        return None
    other = new.words.marked_before(words.to_new[anchor])
    if other is None:
        return None
    back = next((j for j in new.words.item(other) if words.to_old[j] >= 0), None)
    if back is None or old.words.marked_before(words.to_old[back]) != at:
        return None
    return other


def _chains(
    before: Sequence[Mark], after: Sequence[Mark], at: tuple[int, int], old: Places, new: Places
) -> Iterator[Renumbered]:
    """The numbers of one place, such as "5." and "(a)", against each other, innermost first; one
    that has no counterpart is gone or new."""
    for left, right in zip_longest(reversed(before), reversed(after)):
        old_place = old.of_words(at[0], at[0]) if left is None else _of_mark(old, left)
        new_place = new.of_words(at[1], at[1]) if right is None else _of_mark(new, right)
        yield _item(left, right, old_place, new_place)


def _item(left: Mark | None, right: Mark | None, old_place: Place, new_place: Place) -> Renumbered:
    before = None if left is None else left.clause
    after = None if right is None else right.clause
    known = before or after
    return Renumbered(
        before,
        after,
        old_place,
        new_place,
        number_key(old_place.text),
        number_key(new_place.text),
        _UNRANKED if known is None else known.level,
    )


def _of_mark(places: Places, mark: Mark) -> Place:
    place = places.place(mark.start, mark.end, mark.clause)
    return place if mark.clause is not None else _by_itself(place)


def _by_itself(place: Place) -> Place:
    """A number that is in no outline is its own label."""
    return replace(place, clause=place.text.strip(" .,、") or place.clause)


def _unread(hunk: Hunk | None, side: int, places: Places) -> Hunk | None:
    """The difference when its words are the number of a clause that one version shows as such."""
    if hunk is None:
        return None
    first, last = (hunk.new_start, hunk.new_end) if side else (hunk.old_start, hunk.old_end)
    norms = places.words.norms[first:last]
    marked = len(norms) > 1 or not norms[0].isalpha() or norms[0] > "\u3000"
    if len(norms) > _MAX_NUMBER_WORDS or not marked:
        return None
    return hunk if _NUMBER_LIKE.fullmatch(number_key("".join(norms))) else None


def _shift(old_key: str, new_key: str) -> tuple[object, ...]:
    """(place of the differing part, by how much, what stands before it); the keys themselves when
    the numbers have nothing in common."""
    a, b = old_key.split("."), new_key.split(".")
    differing = [at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) == len(b) and len(differing) == 1:
        at = differing[0]
        x, y = _ordinal(a[at]), _ordinal(b[at])
        if x is not None and y is not None:
            return at, y - x, *a[:at]
    return old_key, new_key, "unlike"


def style_of(number: str) -> str:
    """The kind of a number: numbers of one kind count on through the contract or one clause."""
    folded = fold(number).strip()
    if match := _ZH_KIND.match(folded):
        return match[1]
    if folded.startswith("(") or folded.endswith(")"):
        return "()"
    return re.sub(r"[\d.]+", "", number_key(number)) if folded[:1].isalpha() else "#"


def _ordinal(part: str) -> int | None:
    if part.isdigit():
        return int(part)
    return ord(part) if len(part) == 1 else None


def _grouped(
    found: Sequence[Renumbered], old: Places, moves: Sequence[Move], taken: set[Hunk]
) -> Numbering:
    inside: list[list[Renumbered]] = [[] for _ in moves]
    runs: list[Run] = []
    opened: dict[tuple[object, ...], Run] = {}
    for item in found:
        at = _move_of(item, old, moves)
        same = item.old_key == item.new_key
        if at is not None:
            if not same:
                inside[at].append(item)
            continue
        style = style_of(item.old_place.text or item.new_place.text)
        clause = item.old or item.new
        # Articles count through the contract, list items through one clause.
        around = clause.parent if clause is not None and style not in ("条", "#", "") else None
        if same:
            for key, run in list(opened.items()):
                if key[:2] == (style, around) and item.level <= run.members[0].level:
                    del opened[key]
            continue
        shift = _shift(item.old_key, item.new_key)
        run = opened.setdefault((style, around, shift), Run([], shift, style))
        if not run.members:
            runs.append(run)
        run.members.append(item)
    return Numbering(tuple(runs), tuple(map(tuple, inside)), frozenset(taken))


def _move_of(item: Renumbered, old: Places, moves: Sequence[Move]) -> int | None:
    word = old.words.at(item.old_place.start)
    for index, move in enumerate(moves):
        if move.old[0] <= word < move.old[1]:
            return index
    return None
