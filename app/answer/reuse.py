"""Whether a sentence that reuses the words of a cited span turns them around.

A figure may stand in the span and still be in the wrong place, and a lost "not" is no figure at
all. So a sentence that shares half of its words with a span is aligned with it, and where the two
differ, the difference must not be a figure, a date, a clause number, a negation, a duty turned into
a permission (shall/may, 应/可), a bound turned around (at least/at most) or parties exchanged.

Works on words (English) and characters (Chinese); knows no grammar and no synonyms.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from app.answer.items import ItemKind, find_items
from app.answer.names import PARTY
from retrieval.folding import fold_in_place
from retrieval.numerals import NUMERAL_CLASS

SHARED_WORDS = 0.5
"""Share of a sentence's words that must stand in a span, in order, for the two to be compared."""


NEAR_COPY = 0.85
"""Similarity (difflib's ratio) above which a sentence is a copy with a few words changed."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A difference at `sentence[start:end]` that changes what the span says."""

    start: int
    end: int
    kind: ItemKind | str
    note: str


@dataclass(frozen=True, slots=True)
class _Word:
    start: int
    end: int
    key: str
    role: str


_NEGATION = (
    r"\b(?:not|no|never|nor|neither|none|nothing|without|cannot|except|excluding|unless)\b|n't\b|\bnon-"
    r"|不(?!动产|可抗力|可撤销|可分割|当得利|良|法|足|限)|未|无(?!形|论|效|息)|没有|非(?!法|专|常)"
    r"|禁止|勿|免除|除外"
)
# Bounds come first and are looked for before negations, because "not less than" is no negation.
_POLES: tuple[tuple[str, str, str], ...] = (
    ("bound", r"\b(?:at least|not less than|no less than|minimum|no fewer than|or more|exceeds?"
     r"|above|more than|greater than)\b|不少于|不低于|至少|以上|超过|高于|大于",
     r"\b(?:at most|not more than|no more than|maximum|up to|or less|below|less than|fewer than"
     r"|not exceed(?:ing)?)\b|不超过|不高于|至多|最多|以下|以内|低于|少于|小于"),
    ("duty", r"\b(?:shall|must|will|required|obliged|obligated)\b|应当|应(?!付|收|用)|必须|须",
     r"\b(?:may|can|might|could|entitled|permitted|allowed)\b|可以|有权|可(?!能|靠|行|见)"),
    ("order", r"\b(?:before|prior to|earlier)\b|之前|以前|(?<=[日天月年])前",
     r"\b(?:after|following|later)\b|之后|以后|(?<=[日天月年])后"),
    ("change", r"\b(?:increase[ds]?|exclusive|includ\w+|terminate[sd]?)\b|增加|独家|包括|终止",
     r"\b(?:decrease[ds]?|reduce[ds]?|non-exclusive|exclud\w+|renew\w*)\b|减少|非独家|不包括|续展"),
)  # fmt: skip
_PLAIN_PATTERNS = [
    ("not", re.compile(_NEGATION)),
    ("unit", re.compile(r"\b(?:day|week|month|quarter|year|hour)s?\b|percent\b|[%‰]|个月|工作日")),
    ("party", PARTY),
]  # fmt: skip
_POLE_PATTERNS = [
    (f"{name}{sign}", re.compile(pattern))
    for name, plus, minus in _POLES
    for sign, pattern in (("-", minus), ("+", plus))
]
_KIND_OF_ROLE = {"party": "name", "unit": "number"}
_NUMERAL = re.compile(f"[0-9{NUMERAL_CLASS}]")
_WORD = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?|[\u3400-\u9fff]|[%$€£¥]")


def turned(sentence: str, spans: Sequence[str]) -> tuple[Turn, ...]:
    """Differences that change the meaning, against the span the sentence reuses most; none when
    it reuses no span."""
    words = _words(sentence)
    if not words:
        return ()
    best: tuple[float, list[_Word], SequenceMatcher[str]] | None = None
    for span in spans:
        source = _words(span)
        matcher = SequenceMatcher(
            None, [word.key for word in source], [word.key for word in words], autojunk=False
        )
        shared = sum(block.size for block in matcher.get_matching_blocks()) / len(words)
        if best is None or shared > best[0]:
            best = (shared, source, matcher)
    if best is None or best[0] < SHARED_WORDS:
        return ()
    return tuple(_differences(best[1], words, best[2]))


def _differences(
    source: list[_Word], words: list[_Word], matcher: SequenceMatcher[str]
) -> list[Turn]:
    turns = _repeated(source, words, matcher)
    for tag, a0, a1, b0, b1 in matcher.get_opcodes():
        if tag == "equal":
            continue
        theirs, mine = source[a0:a1], words[b0:b1]
        if a0 == 0:
            # What stands before the reused part is left out, except right before it.
            theirs = theirs[-3:]
        elif a1 == len(source):
            theirs = theirs[:3] if mine else theirs[:1]
        place = (mine[0].start, mine[-1].end) if mine else _gap(words, b0)
        turns.extend(_compare(theirs, mine, place))
    return turns


def _repeated(source: list[_Word], words: list[_Word], matcher: SequenceMatcher[str]) -> list[Turn]:
    """Figures that a near copy says more often than its source: "3-3" for "1-3"."""
    if matcher.ratio() < NEAR_COPY:
        return []
    theirs = Counter(word.key for word in source)
    mine: Counter[str] = Counter()
    turns: list[Turn] = []
    for word in words:
        mine[word.key] += 1
        if word.role in ("number", "date", "clause") and mine[word.key] > theirs[word.key] > 0:
            note = "the cited text says this less often"
            turns.append(Turn(word.start, word.end, word.role, note))
    return turns


def _compare(theirs: list[_Word], mine: list[_Word], place: tuple[int, int]) -> list[Turn]:
    turns: list[Turn] = []
    if _count(theirs, "not") != _count(mine, "not"):
        turns.append(Turn(*place, "negation", "a negation differs from the cited text"))
    for name, _, _ in _POLES:
        plus, minus = f"{name}+", f"{name}-"
        if (_count(theirs, plus) and _count(mine, minus) and not _count(mine, plus)) or (
            _count(theirs, minus) and _count(mine, plus) and not _count(mine, minus)
        ):
            turns.append(Turn(*place, "negation", f"a {name} is turned around"))
    for role in ("number", "date", "clause", "unit", "party"):
        left = [word.key for word in theirs if word.role == role]
        for word in mine:
            if word.role == role and left and word.key not in left:
                kind = _KIND_OF_ROLE.get(role, role)
                turns.append(
                    Turn(word.start, word.end, kind, "the cited text has another one here")
                )
    return turns


def _count(words: list[_Word], role: str) -> int:
    return sum(word.role == role for word in words)


def _gap(words: list[_Word], index: int) -> tuple[int, int]:
    """The words on both sides of a gap, as a place to point to."""
    before = words[max(0, index - 1)]
    after = words[min(index, len(words) - 1)]
    return before.start, max(before.end, after.end)


def _words(text: str) -> list[_Word]:
    folded = fold_in_place(text)
    found: list[_Word] = []
    for start, end, kind, key in find_items(text).keyed():
        found.append(_Word(start, end, f"{kind} {key}", kind))
    for role, pattern in (*_POLE_PATTERNS[:2], *_PLAIN_PATTERNS, *_POLE_PATTERNS[2:]):
        for match in pattern.finditer(folded):
            if not _taken(found, *match.span()):
                found.append(_Word(*match.span(), match[0], role))
    taken = sorted((word.start, word.end) for word in found)
    position = 0
    for start, end in [*taken, (len(folded), len(folded))]:
        for match in _WORD.finditer(folded, position, start):
            role = "number" if _NUMERAL.search(match[0]) else ""
            found.append(_Word(*match.span(), _stem(match[0]), role))
        position = max(position, end)
    return sorted(found, key=lambda word: word.start)


def _taken(found: list[_Word], start: int, end: int) -> bool:
    return any(word.start < end and start < word.end for word in found)


def _stem(word: str) -> str:
    """Enough to match "pays" with "pay"; not a linguistic stem."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
