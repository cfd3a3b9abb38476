"""How well the evidence supports an answer, and why not.

`support` is a logistic function of features of the evidence, fitted on the dev sets by
`scripts.fit_support` (method and figures in docs/benchmarks/retrieval.md); from `THRESHOLD` on the
question counts as answerable. It knows wording only, so a fact of the asked kind about something
else can pass.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from retrieval import tokens
from retrieval.asked import holds
from retrieval.coverage import coverage, unit_cover, unit_weight
from retrieval.folding import fold_width
from retrieval.index import SearchIndex
from retrieval.query import Query
from retrieval.types import Hit, Sentence

THRESHOLD = 0.5

BIAS = -3.0
WEIGHTS: Mapping[str, float] = {
    "sentence": 3.0, "chunk": 4.0, "document": 0.0, "missing": -2.0, "kind": 0.5,
}  # fmt: skip


def features(
    index: SearchIndex, query: Query, hits: Sequence[Hit], sentences: Sequence[Sentence]
) -> dict[str, float]:
    """The measured features of the evidence, most of them in [0, 1]."""
    idf = index.keywords.idf
    top = [index.terms[hit.chunk.index] for hit in hits[:3]]
    bodies = [index.text[found.start : found.end] for found in sentences[:3]]
    quoted = [frozenset(tokens.terms(body)) for body in bodies]
    weights = [unit_weight(unit, idf) for unit in query.units]
    total = sum(weights) or 1.0
    absent = [
        weight
        * (
            1
            - max(
                (unit_cover(unit, {t}) for t in unit.terms if index.keywords.has(t)),
                default=index.part_cover(unit),
            )
        )
        for unit, weight in zip(query.units, weights, strict=True)
    ]
    concepts = {concept.term: idf(concept.term) for concept in query.concepts}
    mass = sum(concepts.values())

    def held(terms: frozenset[str]) -> float:
        return sum(w for term, w in concepts.items() if term in terms) / mass if mass else 0.0

    keyword, cosine = index.strength(query)
    return {
        "sentence": max((coverage(query.units, terms, idf) for terms in quoted[:1]), default=0.0),
        "sentences": max((coverage(query.units, terms, idf) for terms in quoted), default=0.0),
        "chunk": max((coverage(query.units, terms, idf) for terms in top), default=0.0),
        "document": 1 - sum(absent) / total,
        "missing": max(absent, default=0.0) / total,
        "concept": max(map(held, top), default=0.0),
        "concept_quoted": max(map(held, quoted), default=0.0),
        "no_concept": float(not concepts),
        "concept_absent": max((w for t, w in concepts.items() if not index.keywords.has(t)), default=0.0) / mass if mass else 0.0,
        "kind": float(bool(query.asked) and any(holds(fold_width(body), query.asked) for body in bodies[:1])),
        "no_kind": float(bool(query.asked) and not any(holds(fold_width(body), query.asked) for body in bodies)),
        "keyword": keyword,
        "cosine": cosine,
        "front": float(bool(query.front)),
        "title": max(index.titles.matches(query).values(), default=0.0),
        "size": math.log(len(index.chunks)),
        "length": math.log1p(sum(unit.weight for unit in query.units)),
        "score": sentences[0].score if sentences else 0.0,
        "statement": float(query.language == "en" and "?" not in query.text),
        "chinese": float(query.language == "zh"),
    }  # fmt: skip


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
    raw = BIAS + sum(weight * found[name] for name, weight in WEIGHTS.items())
    support = 1 / (1 + math.exp(-raw))
    if support >= THRESHOLD:
        return support, True, ""
    return support, False, "the closest clauses do not hold what the question asks for"
