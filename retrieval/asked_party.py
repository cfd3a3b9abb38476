"""Whose liability is asked for: what one party owes is no answer about the other.

"What is the cap on the Buyer's liability?" shares every word but one with "the liability of the
Supplier is limited to GBP 40,000". Knows the usual roles (see `party_roles`) and how a sentence
says of whom it speaks; a party that has only a name is not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from retrieval.folding import fold
from retrieval.index import SearchIndex
from retrieval.party_roles import ROLES, names_of
from retrieval.query import Query
from retrieval.types import Sentence

_ENGLISH_ROLES = tuple(sorted((name for name in ROLES if name.isascii()), key=len, reverse=True))
_ROLE = "|".join(map(re.escape, _ENGLISH_ROLES))
_ASKED = re.compile(
    rf"\b(?:the|our|my)\s+(?P<role>{_ROLE})'s\s+(?:[a-z]+\s+){{0,2}}?(?P<thing>liability)\b"
    rf"|\b(?P<thing_of>liability)\s+of\s+(?:the\s+)?(?P<role_of>{_ROLE})\b"
)
_EVERYBODY = re.compile(r"\b(?:part(?:y|ies)|either|neither|nobody|no\s+one|each\s+other|both)\b")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question asks of whom: all names of the role, the one in the question first."""

    names: tuple[str, ...]
    thing: str

    def speaks_of(self, sentence: str) -> bool | None:
        """Whether a sentence speaks of the thing as this role's or everybody's (True), or as
        another role's alone (False); None when it does not say whose it is."""
        body = fold(sentence)
        owners = {m["role"] or m["role_of"] for m in _of_a_role(self.thing).finditer(body)}
        if owners & set(self.names):
            return True
        if re.search(rf"\b{self.thing}\b", body) and _EVERYBODY.search(body):
            return True
        if not owners or any(re.search(rf"\b{re.escape(name)}\b", body) for name in self.names):
            return None
        return False


@lru_cache(maxsize=64)
def _of_a_role(thing: str) -> re.Pattern[str]:
    return re.compile(
        rf"\b(?P<role>{_ROLE})'s?\s+(?:[a-z-]+\s+){{0,3}}?{thing}\b"
        rf"|\b{thing}\s+of\s+(?:the\s+)?(?P<role_of>{_ROLE})\b"
    )


def _asked_of(query: Query) -> _Asked | None:
    match = _ASKED.search(fold(query.text))
    if match is None:
        return None
    return _Asked(names_of(match["role"] or match["role_of"]), match["thing"] or match["thing_of"])


def own_first(text: str, query: Query, ranked: Sequence[Sentence]) -> tuple[Sentence, ...]:
    """The ranked sentences, those that speak of another party's liability behind all others, where
    one of the others speaks of the asked party's."""
    asked = _asked_of(query)
    if asked is None:
        return tuple(ranked)
    said = [asked.speaks_of(text[one.start : one.end]) for one in ranked]
    if True not in said or False not in said:
        return tuple(ranked)
    own = [one for one, whose in zip(ranked, said, strict=True) if whose is not False]
    others = [one for one, whose in zip(ranked, said, strict=True) if whose is False]
    top, least = ranked[0].score, ranked[-1].score
    kept = [replace(own[0], score=max(top, own[0].score)), *own[1:]]
    return (*kept, *(replace(one, score=least) for one in others))


def of_another(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> str:
    """The role whose liability is asked for, where the first of the sentences speaks of another
    role's alone; else empty."""
    asked = _asked_of(query)
    if asked is None or not sentences:
        return ""
    first = index.text[sentences[0].start : sentences[0].end]
    return asked.names[0] if asked.speaks_of(first) is False else ""
