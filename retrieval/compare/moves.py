"""Which deleted and added passages are whole clauses or paragraphs, and which of them are one
clause that was moved.

Works on the differences of `alignment`. A moved clause may have changed on the way; it needs most
of its words to be known again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.compare.alignment import Hunk, Range, align_ranges, similarity
from retrieval.compare.places import Places

_UNRELATED = 0.4
"""Below this share of common words, two passages in one place are a deletion and an addition."""
_SAME_CLAUSE = 0.7
_MIN_PASSAGE = 6
"""Fewer words are no passage of their own, unless they are a whole numbered clause."""
_MIN_CLAUSE = 3
_SAME_SENTENCE = 0.9
_MIN_SENTENCE = 8
_COMPARISONS = 40_000


@dataclass(frozen=True, slots=True)
class Move:
    """The same clause in two places, with what differs between them."""

    old: Range
    new: Range
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True)
class Sorted:
    """Differences inside clauses, and whole clauses or paragraphs that are gone, new or elsewhere.
    `deleted` and `added` hold with each range its place in the other version, a word index."""

    edits: tuple[Hunk, ...]
    deleted: tuple[tuple[Range, int], ...]
    added: tuple[tuple[Range, int], ...]
    moves: tuple[Move, ...]


@dataclass(frozen=True, slots=True)
class _Passage:
    """Words missing on the other side, where they would stand before word `at`. `whole` clauses and
    paragraphs are changes of their own; other sentences only when they were moved."""

    span: Range
    at: int
    whole: bool


def sort_hunks(hunks: Sequence[Hunk], old: Places, new: Places) -> Sorted:
    """Sorts the differences."""
    edits: list[Hunk] = []
    gone: list[_Passage] = []
    fresh: list[_Passage] = []
    for hunk in hunks:
        if hunk.old_size and hunk.new_size and not _unrelated(hunk, old, new):
            rest, beside_old, beside_new = _split(hunk, old, new)
            edits.append(rest)
            gone += beside_old
            fresh += beside_new
            continue
        before = _passages(old, hunk.old_start, hunk.old_end, hunk.new_start)
        after = _passages(new, hunk.new_start, hunk.new_end, hunk.old_end)
        if before and after and not any(one.whole for one in (*before, *after)):
            edits.append(hunk)
            continue
        gone += before
        fresh += after
    moves = _moves(gone, fresh, old, new)
    moved_old, moved_new = {move.old for move in moves}, {move.new for move in moves}
    gone = [one for one in gone if one.span not in moved_old]
    fresh = [one for one in fresh if one.span not in moved_new]
    edits += [Hunk(*one.span, one.at, one.at) for one in gone if not one.whole]
    edits += [Hunk(one.at, one.at, *one.span) for one in fresh if not one.whole]
    edits.sort(key=lambda hunk: (hunk.old_start, hunk.new_start))
    return Sorted(
        tuple(edits),
        tuple((one.span, one.at) for one in gone if one.whole),
        tuple((one.span, one.at) for one in fresh if one.whole),
        tuple(moves),
    )


def _unrelated(hunk: Hunk, old: Places, new: Places) -> bool:
    a = old.words.norms[hunk.old_start : hunk.old_end]
    b = new.words.norms[hunk.new_start : hunk.new_end]
    whole = any(
        passage.whole
        for places, first, last in (
            (old, hunk.old_start, hunk.old_end),
            (new, hunk.new_start, hunk.new_end),
        )
        for passage in _passages(places, first, last, 0)
    )
    return whole and similarity(a, b) < _UNRELATED


def _split(hunk: Hunk, old: Places, new: Places) -> tuple[Hunk, list[_Passage], list[_Passage]]:
    """A replacement without the whole clauses that stand behind it on one side only: the end of a
    clause was rewritten and others were put after it."""
    before = _passages(old, hunk.old_start, hunk.old_end, hunk.new_end)
    after = _passages(new, hunk.new_start, hunk.new_end, hunk.old_end)
    if before[0].whole or after[0].whole:
        return hunk, [], []
    behind = before[1:] or after[1:]
    if (before[1:] and after[1:]) or not behind or not all(one.whole for one in behind):
        return hunk, [], []
    if _alike(before[1:] or before, after[1:] or after, old, new):
        return hunk, [], []
    rest = Hunk(hunk.old_start, before[0].span[1], hunk.new_start, after[0].span[1])
    return rest, before[1:], after[1:]


def _alike(before: Sequence[_Passage], after: Sequence[_Passage], old: Places, new: Places) -> bool:
    a = old.words.norms[before[0].span[0] : before[-1].span[1]]
    b = new.words.norms[after[0].span[0] : after[-1].span[1]]
    return similarity(a, b) >= _UNRELATED


def _passages(places: Places, first: int, last: int, at: int) -> list[_Passage]:
    """A range cut into whole clauses or paragraphs and what is between them."""
    found: list[_Passage] = []
    heads = places.words.heads
    for start, end in places.blocks(first, last):
        closed = end >= len(heads) or heads[end]
        numbered = start in places.words.marks
        least = _MIN_CLAUSE if numbered else _MIN_PASSAGE
        whole = heads[start] and closed and end - start >= least
        found.append(_Passage((start, end), at, whole))
    return found


def _moves(
    gone: Sequence[_Passage], fresh: Sequence[_Passage], old: Places, new: Places
) -> list[Move]:
    if len(gone) * len(fresh) > _COMPARISONS:
        # Two texts with so little in common are no versions of each other.
        return []
    scored: list[tuple[float, int, int, int]] = []
    for i, before in enumerate(gone):
        if not _may_move(before, old):
            continue
        a = old.words.norms[slice(*before.span)]
        for j, after in enumerate(fresh):
            b = new.words.norms[slice(*after.span)]
            if 2 * min(len(a), len(b)) < max(len(a), len(b)) or not _may_move(after, new):
                continue
            score = similarity(a, b)
            least = _SAME_CLAUSE if before.whole and after.whole else _SAME_SENTENCE
            if score >= least:
                scored.append((score, len(a), -i, -j))
    moves: list[Move] = []
    taken: set[tuple[str, int]] = set()
    for _, _, i, j in sorted(scored, reverse=True):
        if ("old", i) in taken or ("new", j) in taken:
            continue
        taken |= {("old", i), ("new", j)}
        spans = gone[-i].span, fresh[-j].span
        moves.append(Move(*spans, tuple(align_ranges(old.words, new.words, *spans))))
    return sorted(moves, key=lambda move: move.new)


def _may_move(passage: _Passage, places: Places) -> bool:
    """Whole clauses and paragraphs, and whole sentences of some length."""
    if passage.whole:
        return True
    start, end = passage.span
    words = places.words
    opens = start == 0 or words.heads[start] or words.ends_sentence(start - 1)
    closes = end == len(words) or words.heads[end] or words.ends_sentence(end - 1)
    return end - start >= _MIN_SENTENCE and opens and closes
