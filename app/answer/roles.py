"""The words of a sentence with the parts they play: figures, negations, bounds, duties, parties.

Words that say the same get one key, so that "must" meets "shall" and "not less than" meets "at
least". Works on words (English) and characters (Chinese); knows no grammar.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from app.answer.items import find_items
from app.answer.names import PARTY
from retrieval.folding import fold_in_place
from retrieval.numerals import NUMERAL_CLASS


@dataclass(frozen=True, slots=True)
class Word:
    """A word at `text[start:end]`. `key` is equal for words that say the same; `role` is "" for
    ordinary words."""

    start: int
    end: int
    key: str
    role: str


POLES = ("bound", "duty", "order", "change")
"""Roles with two ends, written "bound+" and "bound-"."""

# A bound may hold a negation ("not less than"), so bounds are looked for first, longest first.
_BOUND_PLUS = (
    r"\b(?:not|no) (?:less|fewer|lower) than\b|\bat least\b|\bor more\b|\bminimum\b"
    r"|\bin excess of\b|\bexceed(?:s|ed|ing)?\b|\babove\b|\b(?:more|greater) than\b"
    r"|不(?:得|可以|能|应)?(?:少于|低于|小于)|至少|最少|最低|以上|超过|超出|高于|大于|多于"
)
_BOUND_MINUS = (
    r"\b(?:not|no) (?:more|greater) than\b|\bnot (?:to )?exceed(?:ing)?\b|\bat most\b|\bmaximum\b"
    r"|\bup to\b|\bor (?:less|fewer)\b|\bbelow\b|\b(?:less|fewer) than\b"
    r"|不(?:得|可以|能|应)?(?:超过|高于|大于|多于)|至多|最多|最高|以下|以内|低于|少于|小于"
)
_PATTERNS: tuple[tuple[str, str], ...] = (
    ("bound", f"(?P<minus>{_BOUND_MINUS})|(?P<plus>{_BOUND_PLUS})"),
    ("not", r"\b(?:not|no|never|nor|neither|none|nothing|without|cannot|except|excluding|unless)\b"
     r"|n't\b|\bnon-|\bnon(?=[a-z]{4})(?!etheless|sense|plus|stop)"
     r"|不(?!动产|可抗力|可撤销|可分割|当得利|良|法|足|限|服)|未(?!来|成年|婚)|无(?!形|论|效|息)"
     r"|没有|非(?!法|专|常|因)|禁止|勿|免除|除外"),
    ("unit", r"\b(?:day|week|month|quarter|year|hour)s?\b|percent\b|[%‰]|个月|工作日"),
    ("duty", r"(?P<plus>\b(?:shall|must|will|required|obliged|obligated)\b|应当|应该|应(?!付|收|用)"
     r"|必须|须(?!经))|(?P<minus>\b(?:may|can|might|could|entitled|permitted|allowed)\b|可以|有权"
     r"|可(?!能|靠|行|见|抗))"),
    ("order", r"(?P<plus>\b(?:before|prior to|earlier)\b|之前|以前|(?<=[日天月年])前)"
     r"|(?P<minus>\b(?:after|following|later)\b|之后|以后|(?<=[日天月年])后)"),
    ("change", r"(?P<plus>\b(?:increase[ds]?|includ\w+|terminate[sd]?)\b|增加|独家|包括|终止)"
     r"|(?P<minus>\b(?:decrease[ds]?|reduce[ds]?|exclud\w+|renew\w*)\b|减少|非独家|续展)"),
)  # fmt: skip
_COMPILED = [(name, re.compile(pattern)) for name, pattern in _PATTERNS]
_NUMERAL = re.compile(f"[0-9{NUMERAL_CLASS}]")
_WORD = re.compile(r"[a-z0-9]+(?:['’][a-z]+)?|[\u3400-\u9fff]|[%$€£¥]")
_MEETING = ("bound", "duty", "order")


def find_words(text: str) -> list[Word]:
    """Every word of `text`, in order; punctuation is left out."""
    folded = fold_in_place(text)
    found = [
        Word(start, end, f"{kind} {key}", kind)
        for start, end, kind, key in find_items(text).keyed()
    ]
    taken = [(word.start, word.end) for word in found]
    for role, pattern in (*_COMPILED, ("party", PARTY)):
        for match in pattern.finditer(folded):
            if any(match.start() < end and start < match.end() for start, end in taken):
                continue
            found.append(_played(role, match))
            taken.append(match.span())
    position = 0
    for start, end in [*sorted(taken), (len(folded), len(folded))]:
        for match in _WORD.finditer(folded, position, max(position, start)):
            found.append(_ordinary(match))
        position = max(position, end)
    return sorted(found, key=lambda word: word.start)


def _played(role: str, match: re.Match[str]) -> Word:
    groups = match.groupdict()
    if "plus" not in groups:
        return Word(*match.span(), _stem(match[0]), role)
    name = f"{role}{'+' if groups['plus'] else '-'}"
    return Word(*match.span(), name if role in _MEETING else match[0], name)


def _ordinary(match: re.Match[str]) -> Word:
    if match[0] == "one":
        return Word(*match.span(), "number 1", "number")
    role = "number" if _NUMERAL.search(match[0]) else ""
    return Word(*match.span(), _stem(match[0]), role)


def _stem(word: str) -> str:
    """Enough to match "pays" with "pay"; not a linguistic stem."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
