"""Order-preserving alignment of the words of two versions.

Sentences that occur once in each version are the first anchors (patience diff: heaviest increasing
chain, so that of two parts that swapped places the longer one stays), then sentences in order, then
words (rapidfuzz). Chance matches between unrelated passages are dissolved, and an insertion or
deletion is moved to the border of a clause or sentence where the words allow it. A clause that was
moved is an addition and a deletion here; see `moves`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rapidfuzz.distance import Indel

from retrieval.compare.words import Words

Block = tuple[int, int, int]
"""(first old word, first new word, length) of a run of equal words."""
Range = tuple[int, int]

_MATRIX_CELLS = 400_000_000
"""Cells of one alignment by rapidfuzz: 50 MB of bits."""
_GRAM = 6


@dataclass(frozen=True, slots=True)
class Hunk:
    """Words `[old_start, old_end)` of the old version stand where the new one has
    `[new_start, new_end)`."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def old_size(self) -> int:
        return self.old_end - self.old_start

    @property
    def new_size(self) -> int:
        return self.new_end - self.new_start


def align(old: Words, new: Words) -> list[Hunk]:
    """The differences in order; everything between them is equal."""
    ids: dict[str, int] = {}
    a = [ids.setdefault(word, len(ids)) for word in old.norms]
    b = [ids.setdefault(word, len(ids)) for word in new.norms]
    blocks = list(_by_sentences(a, b, _sentences(old), _sentences(new)))
    hunks = _gaps(blocks, len(a), len(b))
    refined: list[Hunk] = []
    for hunk in hunks:
        refined.extend(_refine(a, b, hunk, old, new))
    ends = [Hunk(0, 0, 0, 0), *refined, Hunk(len(a), len(a), len(b), len(b))]
    return [
        _slid(hunk, ends[place], ends[place + 2], a, b, old, new)
        for place, hunk in enumerate(refined)
    ]


def align_ranges(old: Words, new: Words, old_range: Range, new_range: Range) -> list[Hunk]:
    """The differences between two ranges of words, such as the two places of a moved clause."""
    ids: dict[str, int] = {}
    a = [ids.setdefault(word, len(ids)) for word in old.norms[slice(*old_range)]]
    b = [ids.setdefault(word, len(ids)) for word in new.norms[slice(*new_range)]]
    hunks = _gaps(list(_by_words(a, b, (0, len(a)), (0, len(b)))), len(a), len(b))
    return [
        Hunk(
            hunk.old_start + old_range[0],
            hunk.old_end + old_range[0],
            hunk.new_start + new_range[0],
            hunk.new_end + new_range[0],
        )
        for hunk in hunks
    ]


def similarity(a: Sequence[str], b: Sequence[str]) -> float:
    """Share of words in a common order, in [0, 1]."""
    return float(Indel.normalized_similarity(a, b))


def _sentences(words: Words) -> list[Range]:
    spans: list[Range] = []
    start = 0
    for index in range(len(words)):
        if words.ends_sentence(index):
            spans.append((start, index + 1))
            start = index + 1
    if start < len(words):
        spans.append((start, len(words)))
    return spans


def _by_sentences(
    a: Sequence[int], b: Sequence[int], a_spans: Sequence[Range], b_spans: Sequence[Range]
) -> Iterator[Block]:
    """Equal runs of whole sentences."""
    names: dict[tuple[int, ...], int] = {}
    left = [names.setdefault(tuple(a[x:y]), len(names)) for x, y in a_spans]
    right = [names.setdefault(tuple(b[x:y]), len(names)) for x, y in b_spans]
    weights = [y - x for x, y in a_spans]
    for x, y in _chain(left, right, (0, len(left)), (0, len(right)), weights):
        yield a_spans[x][0], b_spans[y][0], weights[x]


def _chain(
    left: Sequence[int], right: Sequence[int], a: Range, b: Range, weights: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Pairs of equal sentences in order: those at the ends, those that are unique, and between
    them the longest common subsequence."""
    (x, x_end), (y, y_end) = a, b
    while x < x_end and y < y_end and left[x] == right[y]:
        yield x, y
        x, y = x + 1, y + 1
    tail: list[tuple[int, int]] = []
    while x < x_end and y < y_end and left[x_end - 1] == right[y_end - 1]:
        x_end, y_end = x_end - 1, y_end - 1
        tail.append((x_end, y_end))
    if x < x_end and y < y_end:
        anchors = _unique_pairs(left, right, (x, x_end), (y, y_end), weights)
        if anchors:
            for p, q in [*anchors, (x_end, y_end)]:
                yield from _chain(left, right, (x, p), (y, q), weights)
                if p < x_end:
                    yield p, q
                x, y = p + 1, q + 1
        else:
            for op in Indel.opcodes(left[x:x_end], right[y:y_end]):
                if op.tag == "equal":
                    for step in range(op.src_end - op.src_start):
                        yield x + op.src_start + step, y + op.dest_start + step
    yield from reversed(tail)


def _unique_pairs(
    left: Sequence[int], right: Sequence[int], a: Range, b: Range, weights: Sequence[int]
) -> list[tuple[int, int]]:
    """Sentences that occur once on both sides, in the heaviest chain that keeps their order."""
    often_left, often_right = Counter(left[slice(*a)]), Counter(right[slice(*b)])
    places = {right[y]: y for y in range(*b) if often_right[right[y]] == 1}
    pairs = [
        (x, places[left[x]], weights[x])
        for x in range(*a)
        if often_left[left[x]] == 1 and left[x] in places
    ]
    return _heaviest(pairs)


def _heaviest(pairs: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """The heaviest subsequence with increasing second place."""
    ends: list[int] = []
    best: list[tuple[int, int]] = []
    before: list[int] = []
    for index, (_, y, weight) in enumerate(pairs):
        at = bisect_left(ends, y)
        total = weight + (best[at - 1][0] if at else 0)
        before.append(best[at - 1][1] if at else -1)
        stop = at
        while stop < len(ends) and best[stop][0] <= total:
            stop += 1
        ends[at:stop] = [y]
        best[at:stop] = [(total, index)]
    chain: list[tuple[int, int]] = []
    place = best[-1][1] if best else -1
    while place >= 0:
        chain.append(pairs[place][:2])
        place = before[place]
    return chain[::-1]


def _gaps(blocks: Sequence[Block], a_size: int, b_size: int) -> list[Hunk]:
    hunks: list[Hunk] = []
    x = y = 0
    for start, other, length in [*blocks, (a_size, b_size, 0)]:
        if start > x or other > y:
            hunks.append(Hunk(x, start, y, other))
        x, y = start + length, other + length
    return hunks


def _refine(a: Sequence[int], b: Sequence[int], hunk: Hunk, old: Words, new: Words) -> list[Hunk]:
    """A difference between sentences as differences between words."""
    if not hunk.old_size or not hunk.new_size:
        return [hunk]
    blocks = list(_by_words(a, b, (hunk.old_start, hunk.old_end), (hunk.new_start, hunk.new_end)))
    ends = [*blocks, (hunk.old_end, hunk.new_end, 0)]
    hunks: list[Hunk] = []
    x, y = hunk.old_start, hunk.new_start
    for start, other, length in ends:
        if start > x or other > y:
            hunks.append(Hunk(x, start, y, other))
        x, y = start + length, other + length
    return _dissolved(hunks, old, new)


def _by_words(a: Sequence[int], b: Sequence[int], x: Range, y: Range) -> Iterator[Block]:
    """Equal runs of words of two ranges."""
    if (x[1] - x[0]) * (y[1] - y[0]) <= _MATRIX_CELLS:
        for op in Indel.opcodes(a[slice(*x)], b[slice(*y)]):
            if op.tag == "equal":
                yield x[0] + op.src_start, y[0] + op.dest_start, op.src_end - op.src_start
        return
    grams = [
        {place: tuple(c[place : place + _GRAM]) for place in range(r[0], r[1] - _GRAM + 1)}
        for c, r in ((a, x), (b, y))
    ]
    counts = [Counter(found.values()) for found in grams]
    places = {gram: place for place, gram in grams[1].items() if counts[1][gram] == 1}
    pairs = [
        (place, places[gram], 1)
        for place, gram in grams[0].items()
        if counts[0][gram] == 1 and gram in places
    ]
    last_x, last_y = x[0], y[0]
    for start, other in _heaviest(pairs):
        if start < last_x or other < last_y:
            continue
        between = ((last_x, start), (last_y, other))
        if 0 < (start - last_x) * (other - last_y) <= _MATRIX_CELLS:
            yield from _by_words(a, b, *between)
        yield start, other, 1
        last_x, last_y = start + 1, other + 1
    if 0 < (x[1] - last_x) * (y[1] - last_y) <= _MATRIX_CELLS:
        yield from _by_words(a, b, (last_x, x[1]), (last_y, y[1]))


def _dissolved(hunks: list[Hunk], old: Words, new: Words) -> list[Hunk]:
    """Joins differences over equal words that are too few to mean anything: fewer than each of the
    differences beside them has (after Fraser's semantic cleanup)."""
    while True:
        kept: list[Hunk] = []
        for hunk in hunks:
            if kept and _is_chance(kept[-1], hunk, old):
                last = kept.pop()
                hunk = Hunk(last.old_start, hunk.old_end, last.new_start, hunk.new_end)
            kept.append(hunk)
        if len(kept) == len(hunks):
            return kept
        hunks = kept


def _is_chance(left: Hunk, right: Hunk, old: Words) -> bool:
    size = sum(_weight(old, index) for index in range(left.old_end, right.old_start))
    return size <= max(left.old_size, left.new_size) and size <= max(right.old_size, right.new_size)


def _weight(words: Words, index: int) -> float:
    """A Chinese character says about half of what a word says."""
    if words.is_punctuation(index):
        return 0.0
    return 0.5 if words.norms[index] > "\u3000" else 1.0


def _slid(
    hunk: Hunk, left: Hunk, right: Hunk, a: Sequence[int], b: Sequence[int], old: Words, new: Words
) -> Hunk:
    """A pure insertion or deletion at the best of the places where it may stand, between the
    differences `left` and `right` of it."""
    if hunk.old_size and hunk.new_size:
        return hunk
    words, ids = (new, b) if hunk.new_size else (old, a)
    start, end = (hunk.new_start, hunk.new_end) if hunk.new_size else (hunk.old_start, hunk.old_end)
    best, best_score = 0, _border(words, start, end)
    for step, room in (
        (-1, hunk.old_start - left.old_end),
        (1, right.old_start - hunk.old_end),
    ):
        for shift in range(step, step * (room + 1), step):
            # The word that leaves the difference at one end equals the one that enters.
            out, into = (
                (start + shift, end + shift) if step < 0 else (start + shift - 1, end + shift - 1)
            )
            if ids[out] != ids[into]:
                break
            score = _border(words, start + shift, end + shift)
            if score > best_score:
                best, best_score = shift, score
    return Hunk(
        hunk.old_start + best, hunk.old_end + best, hunk.new_start + best, hunk.new_end + best
    )


def _border(words: Words, start: int, end: int) -> int:
    score = 0
    for place in (start, end):
        if place >= len(words) or words.heads[place]:
            score += 3
        elif place and words.ends_sentence(place - 1):
            score += 1
    return score
