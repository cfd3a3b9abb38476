"""How well a Chinese statute or a court's account of a case supports an answer.

Both have weights of their own, since neither reads like a contract: in a statute lay words must
meet the law's, in an account nearly every word of the question stands somewhere. It knows the
evidence and wordings, not the law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval import cases
from retrieval.index import SearchIndex
from retrieval.query import Query
from retrieval.types import Sentence

STATUTE_BIAS = -7.263
STATUTE_WEIGHTS: Mapping[str, float] = {
    "top": 2.431, "cosine": 1.071, "known": 3.835, "title": 4.697, "concept_absent": -1.92,
}  # fmt: skip
"""Fitted by `scripts.fit_statute_support`; `top` is the score of the best passage, `known` the
share of the lay words whose matter the statute knows, the others are those of
`support.features`."""


def statute_features(
    index: SearchIndex, query: Query, found: Mapping[str, float], sentences: Sequence[Sentence]
) -> dict[str, float]:
    """The features that `STATUTE_WEIGHTS` names, for a document that has articles; `found` are
    those of
`support.features`."""
    known = index.articles.known(query) if index.articles is not None else 0.0
    names = ("cosine", "title", "concept_absent")
    return {"top": sentences[0].score, "known": known, **{name: found[name] for name in names}}


def odds(
    index: SearchIndex, query: Query, found: Mapping[str, float], sentences: Sequence[Sentence]
) -> float | None:
    """Log odds that the document answers; None for documents that are neither, and for questions
    in the other language."""
    if query.language != "zh" or index.language != "zh":
        return None
    if index.articles is not None:
        features = statute_features(index, query, found, sentences)
        return STATUTE_BIAS + sum(w * features[name] for name, w in STATUTE_WEIGHTS.items())
    if cases.is_case(index.text):
        return cases.odds(query.text, index.text)
    return None
