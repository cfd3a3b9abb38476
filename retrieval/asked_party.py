"""Whose liability is asked for: what one party owes is no answer about the other.

"What is the cap on the Buyer's liability?" shares every word but one with "the liability of the
Supplier is limited to GBP 40,000". Knows the usual roles (see `party_roles`) and how a sentence
says of whom it speaks; a party that has only a name is not told apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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


_SENTENCE_END = re.compile(r"[.;]\s")


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a question asks of whom: all names of the role, the one in the question first."""

    names: tuple[str, ...]
    thing: str

    def speaks_of(self, sentence: str) -> bool | None:
        """Whether a sentence speaks of the thing as this role's or everybody's (True), or as
        another role's alone (False); None when it does not say whose it is."""
        body = fold(sentence)
        owners = _owners(self.thing, body)
        if owners & set(self.names):
            return True
        if re.search(rf"\b(?:{self.thing}|liable)\b", body) and _EVERYBODY.search(body):
            return True
        if not owners or any(re.search(rf"\b{re.escape(name)}\b", body) for name in self.names):
            return None
        return False


def _owners(thing: str, folded: str) -> set[str]:
    """The roles of whose liability a folded text speaks."""
    found = _of_a_role(thing).finditer(folded)
    return {match["role"] or match["role_of"] or match["liable"] for match in found}


@lru_cache(maxsize=64)
def _of_a_role(thing: str) -> re.Pattern[str]:
    return re.compile(
        rf"\b(?P<role>{_ROLE})'s?\s+(?:[a-z-]+\s+){{0,3}}?{thing}\b"
        rf"|\b{thing}\s+of\s+(?:the\s+)?(?P<role_of>{_ROLE})\b"
        rf"|\b(?P<liable>{_ROLE})\s+(?:(?:is|shall|will|be|not|only|in\s+no\s+event)\s+){{1,4}}liable\b"
    )


def _is_named(names: Iterable[str], folded: str) -> bool:
    """Whether a party of the document is named by one of the names: ("Buyer"), Buyer: …"""
    name = "|".join(map(re.escape, names))
    return bool(
        re.search(rf"[\"“'(](?:the\s+)?(?:{name})[\"”')]|^\W*(?:{name})\s*:", folded, re.MULTILINE)
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
    role's alone, both are named as parties, and no sentence of the document speaks of the asked
    role's; else empty."""
    asked = _asked_of(query)
    if asked is None or not sentences:
        return ""
    first = index.text[sentences[0].start : sentences[0].end]
    if asked.speaks_of(first) is not False:
        return ""
    text = fold(index.text)
    others = _owners(asked.thing, fold(first))
    if not _is_named(asked.names, text) or not _is_named(others, text):
        return ""
    if any(asked.speaks_of(sentence) for sentence in _SENTENCE_END.split(text)):
        return ""
    return asked.names[0]
