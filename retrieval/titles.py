"""Clause titles as a signal: a clause titled with what is asked is likely the answer's place.

Knows titles only: a clause without one never matches.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence

from retrieval import tokens
from retrieval.query import Query
from retrieval.types import Clause

_LOW_WEIGHT = 0.3
"""Question terms below this weight (words of asking, stray characters) do not match a title."""


class ClauseTitles:
    """Terms of each clause's title; `terms[i]` belongs to clause i."""

    def __init__(self, clauses: Sequence[Clause]) -> None:
        self._starts = [clause.start for clause in clauses]
        self._ends = [clause.end for clause in clauses]
        self._parents = [clause.parent for clause in clauses]
        known: dict[str, frozenset[str]] = {}
        self.terms = tuple(
            known.setdefault(clause.title, frozenset(tokens.terms(clause.title)))
            for clause in clauses
        )

    def path_at(self, offset: int) -> tuple[int, ...]:
        """Indices of the clauses around a place, innermost first."""
        at: int | None = bisect_right(self._starts, offset) - 1
        if at is not None and at < 0:
            at = None
        chain = []
        while at is not None:
            if offset < self._ends[at]:
                chain.append(at)
            at = self._parents[at]
        return tuple(chain)

    def matches(self, query: Query) -> Mapping[int, float]:
        """For clauses whose title shares a telling term with the question, the share of the title
        that the question holds, in (0, 1]."""
        telling = {term for term, weight in query.terms.items() if weight >= _LOW_WEIGHT}
        found = {}
        for place, title in enumerate(self.terms):
            shared = title & telling
            # Concepts double their words: count a title by its own words and pairs.
            if shared:
                plain = [term for term in title if len(term) > 1 and term[0] not in "=#@§"]
                held = sum(term in telling for term in plain)
                concepts = any(term[0] == "=" for term in shared)
                share = held / len(plain) if plain else 0.0
                found[place] = max(share, 0.6 if concepts and len(plain) <= 3 else 0.0)
        return {place: share for place, share in found.items() if share > 0}
