"""Which sentence of the best chunks answers the question: the quote that a user sees.

A linear score over features of the wording: how much of the question the sentence covers, the
kind of fact asked for, the rank of its chunk. The weights are set by hand on the dev sets. A
heading or a fragment is a bad quote and ranks low; what is quoted around a sentence is told by
`passages`. It does not know meaning.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retrieval import tokens
from retrieval.asked import holds
from retrieval.asked_party import own_first
from retrieval.contents import in_contents, is_contents
from retrieval.coverage import SAME_IDEA, coverage, unit_cover, unit_weight
from retrieval.cue_index import SURE, CueScores
from retrieval.folding import fold_width
from retrieval.front import looks_like
from retrieval.index import SearchIndex
from retrieval.named_caps import named_cap_first
from retrieval.party_roles import in_front
from retrieval.passages import is_row, lead_in, whole_clause, with_lead_in
from retrieval.plain_facts import answering_first, stating_first
from retrieval.query import Query
from retrieval.senses import itself, otherwise
from retrieval.sentences import Span, split
from retrieval.types import Hit, Language, Sentence

_TOP_CHUNKS = 6
_TOP_CHUNKS_LEARNED = 10
"""Chunks looked into: more of them where learned cues tell the quotes apart."""
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

_ODDS_OF_WORDING = 4.0
"""Log odds that one point of the score by wording is worth."""


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
        return len(body) < 16 and not re.search(r"[。．；;，,]", body)
    return len(body.split()) < 6 or (body.isupper() and len(body) < 100)


def candidates(index: SearchIndex, query: Query, hits: Sequence[Hit]) -> Iterator[Candidate]:
    """Every sentence of the first chunks in `hits` that could be quoted."""
    if not hits:
        return
    starts = [clause.start for clause in index.clauses]
    titled = index.titles.matches(query)
    named = [clause for ref in query.clauses for clause in index.numbers.find(ref)[:1]]
    weights = [unit_weight(unit, index.keywords.idf) for unit in query.units]
    cues = index.cues(query)
    for hit in hits[: _TOP_CHUNKS if cues.model is None else _TOP_CHUNKS_LEARNED]:
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
                extra.update(_learned(cues, span, len(index.text)))
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
    covers = [unit_cover(unit, own, SAME_IDEA) for unit in query.units]
    rarest = max(range(len(weights)), key=weights.__getitem__, default=None)
    mass = sum(c * w for c, w in zip(covers, weights, strict=True))
    front = [looks_like(kind, wide) for kind in query.front]
    return {
        "covered": mass / sum(weights) if weights else 0.0,
        "with_heading": coverage(query.units, own | heading, idf, SAME_IDEA),
        "concepts": sum(w for has, w in concepts if has) / total if total else 0.0,
        "kind": held,
        "no_kind": float(bool(query.asked) and held == 0.0),
        "rarest": covers[rarest] if rarest is not None else 0.0,
        "front": float(any(front)),
        "fragment": float(is_fragment(body) and "title" not in query.front),
    }


def _learned(cues: CueScores, span: Span, length: int) -> dict[str, float]:
    """What the learned cues and the place say of a quote."""
    odds, rank, near = cues.of(span)
    return {
        "cue": odds / SURE,
        "cue_first": cues.strength / (1.0 + rank),
        "cue_near": near / SURE,
        "late": span[0] / max(1, length),
        "long": math.log1p(span[1] - span[0]) / 6.0,
    }


def score(found: Mapping[str, float], language: Language) -> float:
    """The linear score of a candidate's features for a question in `language`."""
    return sum(weight * found[name] for name, weight in WEIGHTS[language].items())


def relative(found: Sequence[Candidate]) -> list[dict[str, float]]:
    """The features of candidates of one question, with how they stand to the best of them."""
    cue = max((one.features["cue"] for one in found), default=0.0)
    covered = max((one.features["with_heading"] for one in found), default=0.0)
    plain = [score(one.features, "en") for one in found]
    best = max(plain, default=0.0)
    return [
        {
            **one.features,
            "cue_behind": one.features["cue"] - cue,
            "covered_share": one.features["with_heading"] / covered if covered else 0.0,
            "wording_behind": own - best,
        }
        for one, own in zip(found, plain, strict=True)
    ]


def scored(index: SearchIndex, query: Query, found: Sequence[Candidate]) -> list[Sentence]:
    """Each candidate with its score and, as far as the question asks for a learned matter, how
    likely it answers. Of a question that is half like one, half of the score is learned."""
    cues = index.cues(query)
    by_wording = [score(one.features, query.language) for one in found]
    if cues.model is None:
        return [
            Sentence(one.span[0], one.span[1], one.hit.chunk, own)
            for one, own in zip(found, by_wording, strict=True)
        ]
    known = cues.strength
    sentences = []
    for one, features, own in zip(found, relative(found), by_wording, strict=True):
        odds = cues.model.quote.odds(features)
        joined = known * odds + (1 - known) * _ODDS_OF_WORDING * own
        likely = 1 / (1 + math.exp(-odds))
        sentences.append(Sentence(one.span[0], one.span[1], one.hit.chunk, joined, likely))
    return sentences


def offered(index: SearchIndex, query: Query, hits: Sequence[Hit]) -> list[Candidate]:
    """The candidates that share something with the question, be it through their heading or a
    learned cue; all of them when the question names a clause. A stretch of a table of contents is
    offered only where there is nothing else: it names a clause and says nothing."""
    found = [
        candidate
        for candidate in candidates(index, query, hits)
        if candidate.features["with_heading"] > 0
        or candidate.features["front"] > 0
        or candidate.features["cue"] > 0
        or query.clauses
    ]
    said = [
        one
        for one in found
        if not is_contents(index.text[slice(*one.span)])
        and not in_contents(index.text, one.span[0])
    ]
    return _in_the_sense_asked(index, query, said or found)


def _in_the_sense_asked(
    index: SearchIndex, query: Query, found: Sequence[Candidate]
) -> list[Candidate]:
    """Without what speaks of the asked idea in another sense, where something speaks of it in its
    own: lawyers count both where a contract has no better."""
    apart = {one.span for one in found if otherwise(query, index.text[slice(*one.span)])}
    own = [one for one in found if one.span not in apart]
    said = bool(apart) and any(itself(query, index.text[slice(*one.span)]) for one in own)
    return own if said else list(found)


def best_apart(found: Sequence[Sentence], limit: int) -> tuple[Sentence, ...]:
    """The best sentences, best first, none of which overlap: a list item with its lead-in overlaps
    its neighbours, and each place is offered once."""
    kept: list[Sentence] = []
    for sentence in sorted(found, key=lambda one: (-one.score, one.start)):
        if len(kept) == limit:
            break
        if all(sentence.end <= other.start or other.end <= sentence.start for other in kept):
            kept.append(sentence)
    return tuple(kept)


def rank_sentences(
    index: SearchIndex, query: Query, hits: Sequence[Hit], limit: int = 12
) -> tuple[Sentence, ...]:
    """The best sentences of the first chunks in `hits`, best first; before them the one that says
    who stands in a role, where that is asked."""
    best = best_apart(scored(index, query, offered(index, query, hits)), limit)
    stated = stating_first(index.text, query, best)
    answered = answering_first(index.text, query, stated)
    own = own_first(index.text, query, named_cap_first(index.text, query, answered))
    return in_front(index, query, own)[:limit]
