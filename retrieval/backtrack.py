"""Chunks that hold a telling word of the question which no chosen chunk holds.

A ranking by all words together can leave out the only place that speaks of the rarest of them. It
knows words and how rare they are in the document; it does not know meaning.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval.coverage import unit_cover
from retrieval.index import SearchIndex
from retrieval.query import Query, Unit
from retrieval.types import Hit

CHOSEN = 5
"""Hits whose words count as chosen; quotes come from little more than these."""
_RARE_SHARE = 0.04
"""Share of the chunks above which a word is too common to be telling."""
_MIN_WEIGHT = 1.0
_MOST = 2


def missed(index: SearchIndex, query: Query, hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The best chunk for each telling word that none of the first hits holds, at most two."""
    if len(index.chunks) <= CHOSEN or not hits:
        return ()
    chosen = [index.terms[hit.chunk.index] for hit in hits[:CHOSEN]]
    words = [
        unit
        for unit in index.shared_units(query.units, query)
        if _is_telling(index, unit) and not any(unit_cover(unit, terms) for terms in chosen)
    ]
    if not words:
        return ()
    known = {hit.chunk.index for hit in hits[:CHOSEN]}
    ranked = index.find(query, len(index.chunks))
    found: dict[int, Hit] = {}
    for unit in words:
        for hit in ranked:
            if unit.terms[0] in index.terms[hit.chunk.index] and hit.chunk.index not in known:
                found.setdefault(hit.chunk.index, hit)
                break
    return tuple(found.values())[:_MOST]


def _is_telling(index: SearchIndex, unit: Unit) -> bool:
    term = unit.terms[0]
    if unit.weight < _MIN_WEIGHT or not index.keywords.has(term):
        return False
    holders = sum(term in terms for terms in index.terms)
    return 0 < holders <= max(1, math.floor(_RARE_SHARE * len(index.chunks)))


def brought_in(hits: Sequence[Hit], more: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with `more` right behind the chosen ones, ranks made anew."""
    places = {hit.chunk.index for hit in more}
    behind = [hit for hit in hits[CHOSEN:] if hit.chunk.index not in places]
    return tuple(
        Hit(hit.chunk, hit.score, rank, hit.matched)
        for rank, hit in enumerate((*hits[:CHOSEN], *more, *behind), start=1)
    )
