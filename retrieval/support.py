"""How well the evidence supports an answer, and why not.

`support` is a logistic function of features of the evidence, fitted on the dev sets by
`scripts.fit_support` (method and figures in docs/benchmarks/retrieval.md); from `THRESHOLD` on the
question counts as answerable. It knows wording only, so a fact of the asked kind about something
else can pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace

from retrieval import chinese_support
from retrieval.asked import holds
from retrieval.coverage import coverage, unit_cover, unit_weight
from retrieval.cue_index import SURE, CueScores
from retrieval.cues import CueModel
from retrieval.folding import fold, fold_width
from retrieval.front import looks_like
from retrieval.index import SearchIndex
from retrieval.near import near
from retrieval.party_roles import is_introduction
from retrieval.plain_facts import is_answered
from retrieval.query import Query, Unit
from retrieval.stems import words
from retrieval.types import Hit, Language, Sentence

THRESHOLD = 0.5
_QUOTES = 5
"""Quotes whose likelihood tells of the whole answer."""
_NAMED_SUPPORT = 0.9
"""Support of a question about a clause that exists, or about who stands in a role that the
document gives to somebody."""
_DOUBT = 0.6
"""Share of the doubt by a matter's own wording that counts against a plain question: on plain
questions that were left out, 0.5 refuses 0.791 of the unanswerable and 0.070 of the others, 0.6
refuses 0.813 and 0.077, 0.8 refuses 0.854 and 0.103, see docs/benchmarks/retrieval.md."""
_CONTENT, _TITLE_CHARS = 0.5, 60
"""Weight from which on a word is asked about; the most characters of a title."""
_EVERYWHERE = 0.4
"""Share of the chunks from which on a name ("the Supplier") stands beside any figure."""
_NEAR_SUPPORT = 0.6
"""Support of a quote that repeats the question or holds what it names (see `near`)."""

WEIGHTS: Mapping[Language, Mapping[str, float]] = {
    "en": {
        "document": 1.556, "concept": 0.699, "concept_absent": -1.368, "label": 1.34,
        "cosine": 3.539, "no_kind": -1.561, "front": 0.708, "title": 0.927, "share": 0.918,
        "length": 0.089,
    },
    "zh": {
        "document": 1.556, "concept": 0.699, "concept_absent": -1.368, "label": 1.34,
        "cosine": 3.539, "no_kind": -1.561, "front": 0.708, "title": 0.927, "share": 0.918,
        "length": 0.089,
    },
}  # fmt: skip
"""By the language of the question; a feature that a language does not name counts nothing."""
BIAS: Mapping[Language, float] = {"en": -3.35, "zh": -2.299}


def features(
    index: SearchIndex, query: Query, hits: Sequence[Hit], sentences: Sequence[Sentence]
) -> dict[str, float]:
    """The measured features of the evidence, most of them in [0, 1].

    `document`: share of the question's content that stands anywhere; `label`: the same for what is
    in quotation marks (or all), in one of the first chunks; `concept`, `concept_absent`: concepts
    held by a first chunk, the most telling one that stands nowhere; `no_kind`: no quote holds the
    kind of fact asked for; `cosine`: strength of the best match; `share`: see
    `Concept.share`, as log odds.
    """
    idf = index.keywords.idf
    top = [index.terms[hit.chunk.index] for hit in hits[:3]]
    concepts = {concept.term: idf(concept.term) for concept in query.concepts}
    mass = sum(concepts.values()) or 1.0
    unknown = [weight for term, weight in concepts.items() if not index.keywords.has(term)]
    held = [sum(w for term, w in concepts.items() if term in terms) for terms in top]
    bodies = [index.text[found.start : found.end] for found in sentences[:3]]
    kinds = [holds(fold_width(body), query.asked) for body in bodies]
    label = index.shared_units(query.label, query)
    return {
        "document": _document_cover(index, query, idf),
        "label": max((coverage(label, terms, idf) for terms in top), default=0.0),
        "concept": max(held, default=0.0) / mass,
        "concept_absent": max(unknown, default=0.0) / mass,
        "no_kind": float(bool(query.asked) and max(kinds, default=0.0) == 0.0),
        "cosine": index.strength(query),
        "front": float(bool(query.front)),
        "title": max(index.titles.matches(query).values(), default=0.0),
        "share": _share_logit(query),
        "length": math.log1p(sum(unit.weight for unit in query.units)),
    }


def learned_features(
    found: Mapping[str, float], cues: CueScores, chunks: int, likely: Sequence[float]
) -> dict[str, float]:
    """The features of the evidence for a question that asks for a learned matter: those `found` by
    `features`, the best log odds of sentences, how `likely` the first quotes answer, and the
    matter's own `lean`. `chunks`: how many the document has."""
    tops = [*cues.top(2), 0.0, 0.0]
    first = likely[:_QUOTES]
    return {
        **found,
        "quote": _odds(max(first, default=0.0)),
        "quotes": sum(first),
        "one_of": 1 - math.prod(1 - one for one in first),
        "cue": tops[0] / SURE,
        "second_cue": tops[1] / SURE,
        "chunks": math.log1p(chunks),
        "lean": cues.lean,
    }


def _is_title_asked(query: Query, quote: str) -> bool:
    """Whether the question asks for the document's title and nothing else, and the quote looks
    like one."""
    only = query.front == ("title",) and all(unit.weight < _CONTENT for unit in query.units)
    return only and len(quote) <= _TITLE_CHARS and looks_like("title", fold_width(quote))


def _learned_odds(
    index: SearchIndex,
    query: Query,
    cues: CueScores,
    model: CueModel,
    found: Mapping[str, float],
    hits: Sequence[Hit],
    sentences: Sequence[Sentence],
) -> float:
    """Log odds that the document answers for a learned matter, by the question's own wording and
    by the matter's. The model was fitted on the matters' wording, and the few words of "Is the
    supply exclusive?" stand in most contracts: where the matter's wording doubts more, most of the
    doubt counts, unless the quote says what was asked."""
    likely = [one.likely or 0.0 for one in sentences]

    def odds(wording: Mapping[str, float]) -> float:
        return model.answer.odds(learned_features(wording, cues, len(index.chunks), likely))

    own = odds(found)
    if cues.asked is None or _is_said(index, query, sentences):
        return own
    return own + _DOUBT * min(0.0, odds(features(index, cues.asked, hits, sentences)) - own)


def _is_said(index: SearchIndex, query: Query, sentences: Sequence[Sentence]) -> bool:
    """Whether one of the first quotes holds the kind of fact that was asked for, and all content
    words of the question: "The price is EUR 5" for "What is the price?"."""
    content = [unit for unit in query.units if unit.weight >= _CONTENT]
    if not (query.asked and content):
        return False
    for one in sentences[:3]:
        body = fold_width(index.text[one.start : one.end])
        if holds(body, query.asked) == 0.0:
            continue
        folded = fold(body)
        stems = {word.stem for word in words(folded)}
        if all(_stands(unit, stems, folded) for unit in content):
            return True
    return False


def _stands(unit: Unit, stems: Set[str], folded: str) -> bool:
    """Whether a content word of the question stands in a folded text, whose `stems` these are."""
    return any(term in stems or (term > "\u3400" and term in folded) for term in unit.terms)


def _odds(share: float) -> float:
    """Log odds, at most those of one in five hundred."""
    inside = min(0.998, max(0.002, share))
    return math.log(inside / (1 - inside))


def _document_cover(index: SearchIndex, query: Query, idf: Callable[[str], float]) -> float:
    """Weighted share of the question's content words that stand anywhere in the document."""
    total = covered = 0.0
    for unit in index.shared_units(query.units, query):
        weight = unit_weight(unit, idf)
        known = any(map(index.keywords.has, unit.terms))
        parts = {part for part in unit.parts if index.keywords.has(part)}
        total += weight
        covered += weight * (1.0 if known else unit_cover(unit, parts))
    return covered / total if total else 0.0


def _share_logit(query: Query) -> float:
    """Log odds that a commercial contract has the clause that a presence question asks for."""
    shares = [concept.share for concept in query.main if concept.share is not None]
    if not query.presence or not shares:
        return 0.0
    rarest = min(shares)
    return math.log(rarest / (1 - rarest))


def _may_hold(index: SearchIndex, references: Sequence[str]) -> bool:
    """Whether a document without a readable outline mentions one of these clause numbers."""
    if index.numbers.any_numbers:
        return False
    known = index.keywords.has
    return any(known(reference) or known(f"#{reference[1:]}") for reference in references)


def _telling(index: SearchIndex, query: Query) -> Query:
    """The question without the names that stand all over the document."""
    common = {name for name in query.names if index.keywords.share(name) >= _EVERYWHERE}
    names = tuple(name for name in query.names if name not in common)
    units = tuple(unit for unit in query.units if unit.terms[0] not in common)
    return replace(query, names=names, units=units)


def judge(
    index: SearchIndex, query: Query, hits: Sequence[Hit], sentences: Sequence[Sentence]
) -> tuple[float, bool, str]:
    """(support, answerable, reason); the reason is empty when answerable."""
    if not index.chunks or not any(index.terms):
        return 0.0, False, "no searchable text"
    if not query.terms:
        return 0.0, False, "the question holds no word to look for"
    unknown = [ref for ref in query.clauses if not index.numbers.find(ref)]
    if unknown and len(unknown) == len(query.clauses) and not _may_hold(index, unknown):
        return 0.0, False, f"the document has no clause {unknown[0].lstrip('§')}"
    if is_introduction(index, query, sentences):
        return _NAMED_SUPPORT, True, ""
    if not hits or not sentences:
        return 0.0, False, "no clause shares a word with the question"
    if len(unknown) < len(query.clauses):
        return _NAMED_SUPPORT, True, ""
    found = features(index, query, hits, sentences)
    weights = WEIGHTS[query.language]
    raw = BIAS[query.language] + sum(weight * found[name] for name, weight in weights.items())
    cues = index.cues(query)
    if cues.model is not None:
        learned = _learned_odds(index, query, cues, cues.model, found, hits, sentences)
        raw = cues.strength * learned + (1 - cues.strength) * raw
    raw = chinese_support.odds(index, query, found, sentences, raw)
    support = 1 / (1 + math.exp(-raw))
    if support >= THRESHOLD:
        return support, True, ""
    quotes = [index.text[one.start : one.end] for one in sentences[:3]]
    if is_answered(index.text, query, sentences):
        return _NEAR_SUPPORT, True, ""
    if near(_telling(index, query), quotes) or _is_title_asked(query, quotes[0]):
        return _NEAR_SUPPORT, True, ""
    return support, False, "the closest clauses do not hold what the question asks for"
