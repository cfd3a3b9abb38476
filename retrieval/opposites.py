"""Words that stand with the prefix of denial: "nonexclusive" for "exclusive", 非独家 for 独家.

A search takes the two for one word, and a reader must not. Knows prefixes only: "shared" for
"exclusive" is another word to it.
"""

from __future__ import annotations

import re

from retrieval.folding import fold_in_place
from retrieval.query import Query
from retrieval.stems import stem, words

_NON = re.compile(r"\bnon(?:[-\s]\s?)?(?!e\b|etheless\b|sense|plus\b|stop\b)(?P<root>[a-z]{4,})")
_FEI = re.compile(
    "(?<![并除莫若是无])非(?![法常因经但议凡得本]|[甲乙丙丁双各]方)(?P<root>[\u4e00-\u9fff]{2})"
)
_DENIED = re.compile(
    r"(?:\b(?:not|no|never|neither|nor|without)\b|n't)(?:\s+\w+){0,2}\s*$"
    r"|[不未无非没][\u4e00-\u9fff]{0,3}\s*$"
)
_DENIED_BEHIND = re.compile(
    r"\s+(?:\w+\s+){0,3}(?:not|never)\b|\s+\w+n't\b|[\u4e00-\u9fff]{0,4}[不未没]"
)
_BEFORE = 40
"""Characters before a word in which what denies it stands."""
_BEHIND = 40
"""And behind it: "if payment is not made"."""
_LEAST_EN, _LEAST_ZH = 5, 2
"""Letters, characters of a word of a question whose opposite is looked for."""


def denied(text: str) -> frozenset[str]:
    """Stems and Chinese words that stand in `text` behind the prefix of denial."""
    folded = fold_in_place(text)
    english = {stem(match["root"]) for match in _NON.finditer(folded)}
    return frozenset(english | {match["root"] for match in _FEI.finditer(folded)})


def stated(text: str, root: str) -> bool:
    """Whether `root`, one of `denied`, stands in `text` without a prefix and a denial before it."""
    folded = fold_in_place(text)
    prefixed = {
        at for match in _NON.finditer(folded) for at in (match.start(), match.start("root"))
    }
    return any(
        start not in prefixed
        and not _DENIED.search(folded[max(0, start - _BEFORE) : start])
        and not _DENIED_BEHIND.match(folded[end : end + _BEHIND])
        for start, end in places(text, root)
    )


def places(text: str, root: str) -> list[tuple[int, int]]:
    """Where `root` stands in `text`, with its prefix or without."""
    folded = fold_in_place(text)
    if root > "\u3400":
        return [match.span() for match in re.finditer(re.escape(root), folded)]
    found = [(word.start, word.end) for word in words(folded) if word.stem == root]
    prefixed = [m.span() for m in _NON.finditer(folded) if stem(m["root"]) == root]
    return sorted({*found, *prefixed})


def turned_roots(sentence: str, source: str) -> frozenset[str]:
    """What `sentence` states and `source` only denies, or the other way round."""
    ours, theirs = denied(sentence), denied(source)
    return frozenset(
        {root for root in theirs - ours if stated(sentence, root) and not stated(source, root)}
        | {root for root in ours - theirs if stated(source, root)}
    )


def asked_roots(query: Query) -> frozenset[str]:
    """The words of a question that a document could deny by a prefix."""
    return frozenset(
        unit.terms[0]
        for unit in query.units
        if len(unit.surface) >= (_LEAST_ZH if unit.surface > "\u3400" else _LEAST_EN)
    )
