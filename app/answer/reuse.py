"""Whether a sentence that reuses the words of a cited span turns them around.

A figure may stand in the span and still be in the wrong place, and a lost "not" is no figure at
all. So a sentence that shares half of its words with a span is aligned with it, and where the two
differ, the difference must not be a figure, a date, a clause number, a negation, a duty turned into
a permission (shall/may, 应/可), a bound turned around (at least/at most) or parties exchanged.

Knows the parts that words play (`roles`), no grammar and no synonyms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from app.answer.items import ItemKind
from app.answer.roles import POLES, Word, find_words

SHARED_WORDS = 0.5
"""Share of a sentence's words that must stand in a span, in order, for the two to be compared."""


NEAR_COPY = 0.85
"""Similarity (difflib's ratio) above which a sentence is a copy with a few words changed."""


RUN = 3
"""Words in a row (a Chinese character counts as half a word) that make a part of the span reused;
shorter runs at the ends of a sentence ("the contract", 期限为) meet by chance."""


NEAR = 4
"""Words between two runs that are still one part of the span."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A difference at `sentence[start:end]` that changes what the span says."""

    start: int
    end: int
    kind: ItemKind | str
    note: str


@dataclass(frozen=True, slots=True)
class _Block:
    """`source[a : a + size]` and `words[b : b + size]` are the same words."""

    a: int
    b: int
    size: int


_KIND_OF_ROLE = {"party": "name", "unit": "number"}
_CLAUSE_END = re.compile(r"[,，;；。:：]|\.\s")


def turned(sentence: str, spans: Sequence[str]) -> tuple[Turn, ...]:
    """Differences that change the meaning, against the span the sentence reuses most; none when
    it reuses no span."""
    words = find_words(sentence)
    best: tuple[int, str, list[Word], list[_Block]] | None = None
    for span in spans if words else ():
        source = find_words(span)
        blocks = _blocks(source, words)
        shared = sum(block.size for block in _reused(blocks, source, words))
        if shared and (best is None or shared > best[0]):
            best = (shared, span, source, blocks)
    if best is None or best[0] < SHARED_WORDS * len(words):
        return ()
    _, span, source, blocks = best
    turns = _differences(span, source, words, _reused(blocks, source, words))
    if 2 * sum(block.size for block in blocks) >= NEAR_COPY * (len(source) + len(words)):
        turns = [*_repeated(source, words), *turns]
    return tuple(turns)


def _blocks(source: list[Word], words: list[Word]) -> list[_Block]:
    """The runs of words that both have, in order."""
    matcher = SequenceMatcher(
        None, [word.key for word in source], [word.key for word in words], autojunk=False
    )
    return [_Block(*block) for block in matcher.get_matching_blocks() if block.size]


def _reused(found: list[_Block], source: list[Word], words: list[Word]) -> list[_Block]:
    """The runs without the short ones at both ends, which meet by chance in a long span; none when
    all are short, unless nearly every word of the sentence is in them."""
    if len(source) <= 2 * len(words) + 2:
        return found
    needed = min(RUN, _weight(words))
    strong = [i for i, block in enumerate(found) if _weight(_own(block, words)) >= needed]
    if not strong:
        together = all(_near(one, other) for one, other in zip(found, found[1:], strict=False))
        shared = sum(block.size for block in found)
        return found if together and shared > NEAR_COPY * len(words) else []
    first, last = strong[0], strong[-1]
    while first > 0 and _near(found[first - 1], found[first]):
        first -= 1
    while last + 1 < len(found) and _near(found[last], found[last + 1]):
        last += 1
    return found[first : last + 1]


def _own(block: _Block, words: list[Word]) -> list[Word]:
    return words[block.b : block.b + block.size]


def _weight(words: list[Word]) -> float:
    """Words, a Chinese character counting as half of one."""
    return sum(0.5 if word.end - word.start == 1 and word.key > "\u3400" else 1 for word in words)


def _near(one: _Block, other: _Block) -> bool:
    """Whether few enough words lie between two blocks for both to be one part of the span."""
    return other.a - one.a - one.size <= NEAR and other.b - one.b - one.size <= NEAR


def _differences(
    span: str, source: list[Word], words: list[Word], blocks: list[_Block]
) -> list[Turn]:
    first, last = blocks[0], blocks[-1]
    # What stands before the reused part is left out, except right before it.
    turns = _compare(_just_before(span, source, first.a), words[: first.b], words, 0)
    for one, other in zip(blocks, blocks[1:], strict=False):
        theirs = source[one.a + one.size : other.a]
        mine = words[one.b + one.size : other.b]
        turns += _compare(theirs, mine, words, one.b + one.size)
    end = last.b + last.size
    rest = source[last.a + last.size :]
    turns += _compare(rest[:3] if words[end:] else rest[:1], words[end:], words, end)
    return turns


def _just_before(span: str, source: list[Word], index: int) -> list[Word]:
    """The last words before `source[index]`, as far as the clause they stand in goes."""
    if index == 0:
        return []
    start = source[index].start
    chinese = span[start - 1 : start + 1] > "\u3400"
    near = source[max(0, index - (6 if chinese else 3)) : index]
    ends = [match.end() for match in _CLAUSE_END.finditer(span, near[0].start, start)]
    # A figure at the head counts across a comma or a full stop: "8. The Supplier shall".
    return [
        word
        for word in near
        if word.start >= (ends[-1] if ends else 0) or word.role in ("number", "date", "clause")
    ]


def _repeated(source: list[Word], words: list[Word]) -> list[Turn]:
    """Figures that a near copy says more often than its source: "3-3" for "1-3"."""
    theirs, mine = Counter(word.key for word in source), Counter[str]()
    turns: list[Turn] = []
    for word in words:
        mine[word.key] += 1
        if word.role in ("number", "date", "clause") and mine[word.key] > theirs[word.key] > 0:
            note = "the cited text says this less often"
            turns.append(Turn(word.start, word.end, word.role, note))
    return turns


def _compare(theirs: list[Word], mine: list[Word], words: list[Word], index: int) -> list[Turn]:
    """What changes the meaning between two different parts; `index` is where `mine` begins."""
    turns: list[Turn] = []
    place = (mine[0].start, mine[-1].end) if mine else _gap(words, index)
    if _count(theirs, "not") != _count(mine, "not"):
        turns.append(Turn(*place, "negation", "a negation differs from the cited text"))
    for name in POLES:
        plus, minus = f"{name}+", f"{name}-"
        if (_count(theirs, plus) and _count(mine, minus) and not _count(mine, plus)) or (
            _count(theirs, minus) and _count(mine, plus) and not _count(mine, minus)
        ):
            turns.append(Turn(*place, "negation", f"a {name} is turned around"))
    for role in ("number", "date", "clause", "unit", "party"):
        left = [word.key for word in theirs if word.role == role]
        for word in mine:
            if word.role == role and left and not any(_agrees(word.key, key) for key in left):
                kind = _KIND_OF_ROLE.get(role, role)
                note = "the cited text has another one here"
                turns.append(Turn(word.start, word.end, kind, note))
    return turns


def _agrees(mine: str, theirs: str) -> bool:
    """The same item, or one said with less detail: 1 February of 1 February 2019, 30 of 30 days,
    Section 12 of Section 12.3."""
    if mine == theirs:
        return True
    kind, _, value = mine.partition(" ")
    their_kind, _, their_value = theirs.partition(" ")
    if kind != their_kind:
        return False
    if kind == "date" and "?" not in mine + theirs:
        pairs = zip(value.split("-"), their_value.split("-"), strict=False)
        return all(one in ("*", other) for one, other in pairs)
    if kind == "number":
        return their_value.startswith(value + " ") and not their_value.endswith("%")
    return kind == "clause" and their_value.startswith((value + ".", value + "("))


def _count(words: list[Word], role: str) -> int:
    return sum(word.role == role for word in words)


def _gap(words: list[Word], index: int) -> tuple[int, int]:
    """The words on both sides of a gap, as a place to point to."""
    before = words[max(0, index - 1)]
    after = words[min(index, len(words) - 1)]
    return before.start, max(before.end, after.end)
