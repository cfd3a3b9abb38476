"""Wordings that look like a legal idea and are another: who "assigns for the benefit of creditors"
is insolvent and transfers no contract.

Knows a few such wordings, found in contracts of many kinds; does not know meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from retrieval.folding import fold
from retrieval.query import Query
from retrieval.stems import words
from retrieval.vocabulary import vocabulary

_OTHERWISE: Mapping[str, tuple[str, re.Pattern[str]]] = {
    "assignment": (
        "bankruptcy",
        re.compile(
            r"\bassign(?:s|ed|ing|ments?)?\b(?:(?!\bassign)[^.;]){0,120}?\bbenefit\s+of\s+"
            r"(?:(?:its|his|their|the|any|all|such\s+party's)\s+){0,3}creditors"
        ),
    ),
}
"""By the name of the concept that a wording is mistaken for: what it means, and the wording."""


def otherwise(query: Query, body: str) -> bool:
    """Whether `body` speaks of an asked idea in words that mean another one, and nowhere else of
    any idea asked for."""
    mistaken = _mistaken(query)
    if not mistaken:
        return False
    folded = fold(body)
    left = _without(mistaken, folded)
    asked = {concept.name for concept in query.concepts}
    return left != folded and not asked & _named(left)


def itself(query: Query, body: str) -> bool:
    """Whether `body` speaks of an asked idea that other wordings are mistaken for, in its own
    sense."""
    mistaken = _mistaken(query)
    return not _named(_without(mistaken, fold(body))).isdisjoint(mistaken)


def _without(mistaken: Iterable[str], folded: str) -> str:
    for name in mistaken:
        folded = _OTHERWISE[name][1].sub(" ", folded)
    return folded


def _mistaken(query: Query) -> tuple[str, ...]:
    """The asked ideas that other wordings are mistaken for, unless those are asked for too."""
    asked = {concept.name for concept in query.concepts}
    return tuple(
        name for name, (meant, _) in _OTHERWISE.items() if name in asked and meant not in asked
    )


def _named(folded: str) -> set[str]:
    found = vocabulary().in_documents.mentions(folded, words(folded))
    return {mention.concept.name for mention in found}
