"""Wordings that look like a legal idea and are another: who "assigns for the benefit of creditors"
is insolvent and transfers no contract.

Knows a few such wordings, found in contracts of many kinds; does not know meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from retrieval.folding import fold
from retrieval.query import Query
from retrieval.stems import words
from retrieval.vocabulary import vocabulary

_OTHERWISE: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "assignment": (
        "bankruptcy",
        re.compile(
            r"\bassign(?:s|ed|ing|ments?)?\b[^.;]{0,120}?\bbenefit\s+of\s+"
            r"(?:(?:its|his|their|the|any|all|such\s+party's)\s+){0,3}creditors"
        ),
    ),
}
"""By the name of the concept that a wording is mistaken for: what it means, and the wording."""


def otherwise(query: Query, body: str) -> bool:
    """Whether `body` speaks of an asked idea in words that mean another one, and nowhere else of
    any idea asked for."""
    asked = {concept.name for concept in query.concepts}
    mistaken = [name for name in _OTHERWISE if name in asked and _OTHERWISE[name][0] not in asked]
    if not mistaken:
        return False
    folded = fold(body)
    left = folded
    for name in mistaken:
        left = _OTHERWISE[name][1].sub(" ", left)
    if left == folded:
        return False
    found = {m.concept.name for m in vocabulary().in_documents.mentions(left, words(left))}
    return not asked & found
