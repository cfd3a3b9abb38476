"""Which sentence of the best chunks answers the question: the quote that a user sees.

A linear score over features of the wording: how much of the question the sentence covers, the
kind of fact asked for, the rank of its chunk. The weights are set by hand on the dev sets. A
heading or a fragment is a bad quote and ranks low; what is quoted around a sentence is told by
`passages`. It does not know meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrieval import tokens
from retrieval.asked import holds
from retrieval.coverage import coverage, unit_cover, unit_weight
from retrieval.folding import fold_width
from retrieval.front import looks_like
from retrieval.index import SearchIndex
from retrieval.passages import is_row, lead_in, whole_clause, with_lead_in
from retrieval.query import Query
from retrieval.sentences import Span, split
from retrieval.types import Hit, Language, Sentence

_TOP_CHUNKS = 6
_NUMBER_ONLY = re.compile(r"^[\s\d.()（）a-zA-Z第一二三四五六七八九十百条章节、．:：-]{0,14}$")

WEIGHTS: Mapping[Language, Mapping[str, float]] = {
    "en": {
        "covered": 1.0, "with_heading": 0.3, "concepts": 0.15, "chunk": 0.35, "kind": 0.25,
        "no_kind": -0.1, "rarest": 0.1, "front": 0.3, "fragment": -0.6, "title": 0.3, "named": 2.0,
    },
    "zh": {
        "covered": 1.0, "with_heading": 0.3, "concepts": 0.15, "chunk": 0.35, "kind": 0.25,
        "no_kind": -0.1, "rarest": 0.1, "front": 0.3, "fragment": -0.6, "title": 0.3, "named": 2.0,
    },
}  # fmt: skip
"""By the language of the question. A language scores the features that it names here; what a
candidate has beside them counts nothing."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A possible quote `text[span]` from `hit`, with its features (see `WEIGHTS`)."""

    span: Span
    hit: Hit
    features: Mapping[str, float]


def is_fragment(text: str) -> bool:
    """A heading, a lone number, a signature line or a blank form field."""
    body = text.strip()
    if is_row(body):
        return False
    if len(body) < 6 or _NUMBER_ONLY.match(body):
        return True
    if re.search("[\u4e00-\u9fff]", body):
        return len(body) < 16 and not re.search(r"[。；;，,]", body)
    return len(body.split()) < 6 or (body.isupper() and len(body) < 100)


def candidates(index: SearchIndex, query: Query, hits: Sequence[Hit]) -> Iterator[Candidate]:
    """Every sentence of the first chunks in `hits` that could be quoted."""
    if not hits:
        return
    starts = [clause.start for clause in index.clauses]
    titled = index.titles.matches(query)
    named = [clause for ref in query.clauses for clause in index.numbers.find(ref)[:1]]
    weights = [unit_weight(unit, index.keywords.idf) for unit in query.units]
    for hit in hits[:_TOP_CHUNKS]:
        inside = [s for s in starts if hit.chunk.start < s < hit.chunk.end]
        spans = split(index.text, hit.chunk.start, hit.chunk.end, inside)
        share = hit.score / hits[0].score
        seen: set[Span] = set()
        for place in range(len(spans)):
            chain = index.titles.path_at(spans[place][0])
            around = [index.clauses[clause] for clause in chain]
            bounds = (hit.chunk.start, hit.chunk.end)
            span = whole_clause(index.text, around, spans[place], bounds) or with_lead_in(
                index.text, spans, place
            )
            if span not in seen:
                seen.add(span)
                body = index.text[span[0] : span[1]]
                heading = frozenset().union(*(index.titles.terms[clause] for clause in chain))
                opening = lead_in(index.text, spans, place)
                if opening is not None:
                    heading |= frozenset(tokens.terms(index.text[slice(*opening)]))
                found = _features(query, body, heading, weights, index)
                title = max((titled.get(clause, 0.0) for clause in chain), default=0.0)
                within = any(clause.start <= span[0] < clause.end for clause in named)
                extra = {"chunk": share, "title": title, "named": float(within)}
                yield Candidate(span, hit, {**found, **extra})


def _features(
    query: Query, body: str, heading: frozenset[str], weights: Sequence[float], index: SearchIndex
) -> dict[str, float]:
    own = frozenset(tokens.terms(body))
    wide = fold_width(body)
    idf = index.keywords.idf
    held = holds(wide, query.asked) if query.asked else 0.0
    concepts = [(concept.term in own, idf(concept.term)) for concept in query.concepts]
    total = sum(weight for _, weight in concepts)
    covers = [unit_cover(unit, own) for unit in query.units]
    rarest = max(range(len(weights)), key=weights.__getitem__, default=None)
    mass = sum(c * w for c, w in zip(covers, weights, strict=True))
    front = [looks_like(kind, wide) for kind in query.front]
    return {
        "covered": mass / sum(weights) if weights else 0.0,
        "with_heading": coverage(query.units, own | heading, idf),
        "concepts": sum(w for has, w in concepts if has) / total if total else 0.0,
        "kind": held,
        "no_kind": float(bool(query.asked) and held == 0.0),
        "rarest": covers[rarest] if rarest is not None else 0.0,
        "front": float(any(front)),
        "fragment": float(is_fragment(body) and "title" not in query.front),
    }


def score(found: Mapping[str, float], language: Language) -> float:
    """The linear score of a candidate's features for a question in `language`."""
    return sum(weight * found[name] for name, weight in WEIGHTS[language].items())


def rank_sentences(
    index: SearchIndex, query: Query, hits: Sequence[Hit], limit: int = 12
) -> tuple[Sentence, ...]:
    """The best sentences of the first chunks in `hits`, best first. One that shares nothing with
    the question, not even through its heading, is left out."""
    found = [
        Sentence(
            candidate.span[0],
            candidate.span[1],
            candidate.hit.chunk,
            score(candidate.features, query.language),
        )
        for candidate in candidates(index, query, hits)
        if candidate.features["with_heading"] > 0
        or candidate.features["front"] > 0
        or query.clauses
    ]
    ordered = sorted(found, key=lambda sentence: (-sentence.score, sentence.start))
    # A list item with its lead-in overlaps its neighbours: each place is offered once.
    kept: list[Sentence] = []
    for sentence in ordered:
        if len(kept) == limit:
            break
        if all(sentence.end <= other.start or other.end <= sentence.start for other in kept):
            kept.append(sentence)
    return tuple(kept)
