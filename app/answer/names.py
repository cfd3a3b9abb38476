"""Names in an answer: capitalised words, acronyms, identifiers, 《titles》, parties, organisations.

Names are recognised by their form alone, so an ordinary word at the start of a sentence is not
taken for one. Chinese personal names are not recognised.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from retrieval.folding import fold


@dataclass(frozen=True, slots=True)
class Name:
    """A name at `text[start:end]`."""

    start: int
    end: int
    text: str


_IDENTIFIER = re.compile(
    r"(?<![\w.])(?:(?=[A-Za-z0-9/-]*\d)[A-Za-z][A-Za-z0-9/-]*[A-Za-z0-9]"
    r"|\d+(?!(?:K|MM?|BN)\b)-?[A-Z][A-Z0-9/-]*)(?![A-Za-z0-9])"
)
_CAPITAL = re.compile(r"(?<![\w’'])[A-Z][\w&’'-]*\w|(?<![\w’'])[A-Z]{2,}")
_TITLE = re.compile(r"《[^《》…]{1,60}》")
PARTY = re.compile(
    "甲方|乙方|丙方|丁方|买方|卖方|供方|需方|许可方|被许可方|转让方|受让方|用人单位|劳动者|"
    # 借款人民币12万元 names no borrower.
    "(?:发包|承包|出租|承租|委托|受托|被保险|保险|投保|受益|出卖|买受|贷款|借款|保证|债权|债务)人(?!民)"
)
_ORGANISATION = re.compile(
    "[\u4e00-\u9fff]{2,14}?(?:有限公司|公司|银行|集团|法院|仲裁委员会|委员会|大学|研究院|事务所|管理局)"
)
_SENTENCE_START = re.compile(r"(?:^|[.!?:;\n]\s*[\"“‘'(（]?|[\"“‘(（]\s*)$")
_ORDINARY = re.compile(
    "i|a|an|the|this|that|these|those|it|its|he|she|they|we|you|if|when|where|while|in|on|at|by|for|"
    "from|to|of|with|within|without|under|upon|after|before|as|any|all|each|every|no|not|and|or|but|"
    "however|yes|article|section|clause|paragraph|schedule|exhibit|annex|appendix|page|january|"
    "february|march|april|may|june|july|august|september|october|november|december|monday|tuesday|"
    "wednesday|thursday|friday|saturday|sunday|agreement|contract|party|parties|sections|articles|"
    "clauses|paragraphs|sec|art|see"
)


def find_names(text: str) -> tuple[Name, ...]:
    """Every name of `text`, in order, without overlaps."""
    found: list[Name] = []
    for pattern in (_TITLE, _IDENTIFIER, _CAPITAL, PARTY, _ORGANISATION):
        for match in pattern.finditer(text):
            start, end = match.span()
            if pattern is _CAPITAL and _is_ordinary(text, start, match[0]):
                continue
            if not any(start < name.end and name.start < end for name in found):
                found.append(Name(start, end, match[0]))
    return tuple(sorted(found, key=lambda name: name.start))


def stands_in(name: str, sources: list[str]) -> bool:
    """Whether the name occurs in one of the texts (folded, with single quotation marks only), as a
    whole word where it is Latin."""
    folded = fold(name).strip("《》").replace('"', "'")
    if folded.endswith(("'s", "’s")):
        folded = folded[:-2]
    if folded.isascii():
        # A plural or a possessive of the same name is the same name.
        stem = folded[:-1] if len(folded) > 3 and folded.endswith("s") else folded
        pattern = re.compile(rf"(?<![a-z0-9]){re.escape(stem)}s?(?![a-z0-9])")
        return any(pattern.search(source) for source in sources)
    if any(folded in source for source in sources):
        return True
    # The start of a Chinese organisation's name can't be told from the words before it.
    tail = folded[-6:]
    return len(folded) > 6 and any(tail in source for source in sources)


def _is_ordinary(text: str, start: int, word: str) -> bool:
    if _ORDINARY.fullmatch(word.lower()):
        return True
    if word.isupper() and len(word) > 1:
        return False
    before = _SENTENCE_START.search(text[max(0, start - 4) : start])
    if not before:
        return False
    following = re.match(r"\s+([A-Z]\w*)", text[start + len(word) :])
    return following is None or bool(_ORDINARY.fullmatch(following[1].lower()))
