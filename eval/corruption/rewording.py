"""Says a sentence in other words that mean the same, as a model's phrasing would.

Knows a handful of exchanges that are right wherever they stand; leaves every value as it is.
"""

from __future__ import annotations

import random
import re

from eval.corruption.types import Kind
from retrieval.types import Language

_LEADS = {
    "en": ("According to the contract, ", "Under the agreement, ", "The contract states that ", ""),
    "zh": ("根据合同，", "合同约定，", "按照该条款，", ""),
}
_EXCHANGES = {
    "en": (
        (r"\bprior to\b", "before"), (r"\bpursuant to\b", "under"),
        (r"\bin accordance with\b", "under"), (r"\bin the event that\b", "if"),
        (r"\bshall not\b", "must not"), (r"\bshall(?! not)\b", "must"),
        (r"\bshall(?! not)\b", "will"), (r"\bcommences?\b", "begins"),
        (r"\bhereunder\b", "under this Agreement"),
        (r"\bat least\b", "not less than"), (r"\bno later than\b", "not later than"),
        (r"\bobtain\b", "get"), (r"\bevery\b", "each"), (r"\bnotify\b", "inform"),
        (r"\bupon\b", "on"), (r"\bin excess of\b", "more than"), (r"\bpurchase\b", "buy"),
    ),
    "zh": (
        ("应当", "应"), ("应当", "必须"), ("不得", "不可以"), ("之日起", "起"), ("支付", "给付"),
        ("但(?!是)", "但是"), ("如果?", "如"), ("依照", "按照"), ("至少", "不少于"),
        ("未经", "没有经过"), ("立即", "马上"), ("书面通知", "以书面形式通知"), ("以及", "和"),
        ("给予", "给"),
    ),
}  # fmt: skip
_SHORT: dict[Language, dict[Kind, tuple[str, ...]]] = {
    "en": {
        "duration": ("The period is {}.", "It is {}."), 
        "date": ("The date is {}.", "It is dated {}."),
        "currency": ("The amount is {}.", "It is {}."), "percentage": ("The rate is {}.",),
        "clause": ("This follows from {}.", "See {}."), "unit": ("It comes to {}.",),
        "figure": ("The number is {}.",),
    },
    "zh": {
        "duration": ("期限为{}。", "是{}。"), "date": ("日期为{}。",), "currency": ("金额为{}。",),
        "percentage": ("比例为{}。",), "clause": ("依据为{}。",), "unit": ("数量为{}。",),
        "figure": ("数字为{}。",),
    },
}  # fmt: skip
_QUOTED = re.compile('[“"「][^”"」]*[”"」]')
_NEGATION = re.compile(
    r"\b(?:not|no|non|nor|never|neither|without|unless|except|if|any)\b|[不未无非除免]",
    re.IGNORECASE,
)
_OPENING = re.compile(r"^(?:The|This|Each|Any|In|If|Either|All|Such|No|A|An|Upon|Within)\b")


def short(value: str, kind: Kind, language: Language, chance: random.Random) -> str:
    """A sentence that says only the value."""
    return chance.choice(_SHORT[language][kind]).format(value)


def reworded(sentence: str, language: Language, chance: random.Random, keep: str = "") -> str:
    """The sentence with a lead and up to two exchanges; the words `keep` stay as they are."""
    text = sentence.strip()
    exchanges = list(_EXCHANGES[language])
    chance.shuffle(exchanges)
    for old, new in exchanges[: chance.choice((0, 4, 8))]:
        text = _exchanged(text, old, new, keep)
    lead = chance.choice(_LEADS[language])
    if lead and language == "en" and _OPENING.match(text):
        text = text[0].lower() + text[1:]
    return lead + text


def quoted(text: str, position: int) -> bool:
    """Whether the position lies in quotation marks."""
    return any(match.start() < position < match.end() for match in _QUOTED.finditer(text))


def _exchanged(text: str, old: str, new: str, keep: str) -> str:
    """`old` once exchanged for `new`, outside of quotation marks and of the words `keep`."""
    fixed = [match.span() for match in _QUOTED.finditer(text)]
    if keep and (at := text.find(keep)) >= 0:
        fixed.append((at, at + len(keep)))
    for match in re.finditer(old, text):
        if not any(match.start() < end and start < match.end() for start, end in fixed):
            return text[: match.start()] + new + text[match.end() :]
    return text


def clause_around(sentence: str, start: int, end: int, language: Language) -> str:
    """The part of the sentence between the marks (;,，；) around [start, end), when it says enough
    to stand alone; else the whole sentence."""
    marks = re.compile(r"[;；，]|,(?=\s)|(?<=[a-z]{3})\.\s" if language == "en" else "[，；。]")
    before = [m.end() for m in marks.finditer(sentence, 0, start)]
    after = marks.search(sentence, end)
    first = before[-1] if before else 0
    last = after.start() if after else len(sentence)
    part = sentence[first:last].strip()
    long_enough = len(part) >= (60 if language == "en" else 14)
    # A negation before the part may govern it, an exception behind it belongs to it.
    governed = _NEGATION.search(sentence[:first]) or _NEGATION.search(sentence[last : last + 12])
    return part if long_enough and not governed else sentence
