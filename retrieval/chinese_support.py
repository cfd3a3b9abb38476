"""How well a Chinese document supports an answer, beside what `support` measures.

Statutes and courts' accounts of cases have weights of their own, since neither reads like a
contract: in a statute lay words must meet the law's, in an account nearly every word of the
question stands somewhere. A contract is less likely to answer for matters of the law that it never
speaks of (遗产, 驾驶证). It knows the evidence and wordings, not the law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrieval import cases
from retrieval.index import SearchIndex
from retrieval.query import Query
from retrieval.statutes import asked_matters
from retrieval.tokens import HAN_RUN
from retrieval.types import Sentence

_UNSPOKEN = 0.5
"""Log odds lost for each matter that a contract never speaks of; measured on statute questions
asked of contract forms."""
_GENERAL = frozenset({
    "civil_liability", "default_remedies", "tort", "invalid_act", "voidable_act", "agency", "sale",
    "registration", "offer_acceptance", "standard_terms", "evidence", "mediation", "penalty",
    "administrative", "labour_contract", "change_of_circumstances", "limitation_period",
    "warranty_of_goods", "product_quality", "advertising", "arbitration", "price_law",
    "real_estate_law", "administrative_acts", "transport_passengers", "fire_safety", "leave",
    "occupational_safety", "e_commerce", "probation", "tax_offences", "negotiable_instruments",
    "labour_non_compete", "network_data", "no_reason_return", "notary_legal_aid",
})  # fmt: skip
"""Matters that any contract's questions touch in everyday words."""
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


def unspoken(index: SearchIndex, query: Query) -> float:
    """Weight of the matters of the law that a question names and the document never speaks of."""
    return sum(
        weight
        for matter, weight in asked_matters(query.text).items()
        if matter.name not in _GENERAL and not any(_stands(index, p) for p in matter.phrases)
    )


def _stands(index: SearchIndex, phrase: str) -> bool:
    """Whether every character pair of a folded phrase stands somewhere in the document: nearly the
    same as the phrase, and a million characters need not be folded for each question."""
    pairs = [run[at : at + 2] for run in HAN_RUN.findall(phrase) for at in range(len(run) - 1)]
    return all(map(index.keywords.has, pairs))


def odds(
    index: SearchIndex,
    query: Query,
    found: Mapping[str, float],
    sentences: Sequence[Sentence],
    of_contract: float,
) -> float:
    """Log odds that a Chinese document answers a Chinese question; `of_contract` are those by the
    weights for contracts, which stay as they are for all others."""
    if query.language != "zh" or index.language != "zh":
        return of_contract
    if index.articles is not None:
        features = statute_features(index, query, found, sentences)
        return STATUTE_BIAS + sum(w * features[name] for name, w in STATUTE_WEIGHTS.items())
    if cases.is_case(index.text):
        return cases.odds(query.text, index.text)
    return of_contract - _UNSPOKEN * unspoken(index, query)
