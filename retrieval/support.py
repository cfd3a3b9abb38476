"""How well the evidence supports an answer, and why not.

`support` is a logistic function of a few features of the evidence, fitted on the dev sets (see
docs/benchmarks/retrieval.md); above `THRESHOLD` the question counts as answerable. It knows
wording only, so a fact of the asked kind about something else can pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from retrieval import tokens
from retrieval.asked import holds
from retrieval.coverage import coverage, unit_cover
from retrieval.folding import fold_width
from retrieval.index import SearchIndex
from retrieval.query import Query
from retrieval.types import Hit, Sentence

THRESHOLD = 0.5

_BIAS = -3.0
_WEIGHTS = {"sentence": 3.0, "chunk": 4.0, "document": 0.0, "missing": -2.0, "kind": 0.5}


def features(
    index: SearchIndex, query: Query, hits: Sequence[Hit], sentences: Sequence[Sentence]
) -> dict[str, float]:
    """The measured features of the evidence, each in [0, 1]."""
    idf = index.keywords.idf
    chunk = max(
        (coverage(query.units, index.terms[hit.chunk.index], idf) for hit in hits[:3]), default=0.0
    )
    best = sentences[0] if sentences else None
    body = index.text[best.start : best.end] if best else ""
    sentence = coverage(query.units, frozenset(tokens.terms(body)), idf)
    weights = [unit.weight * min(map(idf, unit.terms)) for unit in query.units]
    everywhere = frozenset().union(*index.terms) if index.terms else frozenset()
    absent = [
        weight * (1 - unit_cover(unit, everywhere))
        for unit, weight in zip(query.units, weights, strict=True)
    ]
    total = sum(weights) or 1.0
    return {
        "sentence": sentence,
        "chunk": chunk,
        "missing": max(absent, default=0.0) / total,
        "document": 1 - sum(absent) / total,
        "kind": float(holds(fold_width(body), query.asked)),
    }


def judge(
    index: SearchIndex, query: Query, hits: Sequence[Hit], sentences: Sequence[Sentence]
) -> tuple[float, bool, str]:
    """(support, answerable, reason); the reason is empty when answerable."""
    if not index.chunks or not any(index.terms):
        return 0.0, False, "no searchable text"
    if not query.terms:
        return 0.0, False, "the question holds no word to look for"
    unknown = [ref for ref in query.clauses if not index.numbers.find(ref)]
    if unknown and index.numbers.any_numbers and len(unknown) == len(query.clauses):
        return 0.0, False, f"the document has no clause {unknown[0].lstrip('§')}"
    if not hits or not sentences:
        return 0.0, False, "no clause shares a word with the question"
    if query.clauses:
        return 0.9, True, ""
    found = features(index, query, hits, sentences)
    raw = _BIAS + sum(weight * found[name] for name, weight in _WEIGHTS.items())
    support = 1 / (1 + math.exp(-raw))
    if support >= THRESHOLD:
        return support, True, ""
    return support, False, "the closest clauses do not hold what the question asks for"
