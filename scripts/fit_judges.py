"""Fits the models of quotes and of answers that go with the learned cues (see `scripts.fit_cues`).

Both are logistic regressions on features that the product itself computes. A quote counts as right
when it and a gold span overlap by half of the shorter one. The model of answers also gets one
number for each matter, drawn towards zero: how often contracts answer it, beside all else. Its
threshold is put where `_FALSE_REFUSALS` of the answerable questions are refused, judged by
questions left out of the fit. Every document is seen with cues that were learned without it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

from retrieval.chunk import split
from retrieval.clauses import outline
from retrieval.cue_index import CueScores
from retrieval.cues import CueModel, Linear, Matter
from retrieval.index import SearchIndex
from retrieval.query import read_question
from retrieval.ranking import best_apart, offered, relative
from retrieval.support import features, learned_features
from retrieval.types import Chunk, Document, DocumentPage, Sentence

QUOTE_FEATURES = (
    "cue", "cue_behind", "cue_first", "cue_near", "chunk", "with_heading", "covered_share",
    "wording_behind", "long", "late", "fragment", "title",
)  # fmt: skip
ANSWER_FEATURES = (
    "quote", "quotes", "one_of", "cue", "second_cue", "chunks", "document", "label", "concept",
    "concept_absent", "cosine", "title", "length",
)  # fmt: skip
_SET_WEIGHT = {"cuad": 1.0, "contractnli": 2.0, "maud_long": 2.0, "crossed": 2.0}
_FALSE_REFUSALS = 0.14
_UNFITTED = Linear(0.0, {})
_NO_CHUNK = Chunk(0, 0, 0, None, "", 1, 1)
Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """One question asked of one document. `spans` are its quotes, `rows` their features (see
    `QUOTE_FEATURES`), `right` whether each is right; `whole` are the features of the answer that
    do not depend on the model of quotes."""

    set_name: str
    fold: int
    matter: str
    spans: tuple[tuple[int, int], ...]
    rows: Vector
    right: NDArray[np.bool_]
    whole: Mapping[str, float]
    cues: CueScores
    chunks: int
    answerable: bool


def observe(
    sets: Mapping[str, Sequence[dict[str, Any]]],
    folds: Mapping[str, int],
    learned: Sequence[Sequence[Matter]],
) -> list[Seen]:
    """Asks every document its questions, with the cues that did not see it."""
    models = [CueModel(matters, _UNFITTED, _UNFITTED) for matters in learned]
    merger = sorted(
        {
            question["question"]
            for data in sets["maud_long"]
            for question in data["qas"]
            # The one point of a merger agreement that other contracts often hold too.
            if "Specific Performance" not in question["question"]
        }
    )
    draw = random.Random(5)
    found: list[Seen | None] = []
    for name, rows in sets.items():
        for data in rows:
            fold = folds[data["doc_id"]]
            index = indexed(data["text"], models[fold])
            found += (_seen(name, fold, index, question) for question in data["qas"])
            if name == "contractnli":
                for asked in draw.sample(merger, 3):
                    crossed = {"question": asked, "is_impossible": True}
                    found.append(_seen("crossed", fold, index, crossed))
    return [one for one in found if one is not None]


def indexed(text: str, model: CueModel) -> SearchIndex:
    """The search index of a plain text."""
    clauses = outline(text)
    document = Document(text, (DocumentPage(1, 0, len(text)),), "", "text/plain", "en")
    return SearchIndex.build(text, split(document, clauses), clauses, model)


def quotes(span: tuple[int, int], golds: Sequence[tuple[int, int]]) -> bool:
    """Whether span and a gold span overlap by half of the shorter one."""
    left, right = span
    return any(2 * (min(right, b) - max(left, a)) >= min(right - left, b - a) for a, b in golds)


def _seen(name: str, fold: int, index: SearchIndex, question: Mapping[str, Any]) -> Seen | None:
    """None when the question is matched to no learned matter or finds nothing."""
    query = read_question(question["question"])
    cues = index.cues(query)
    hits = index.find(query, 10)
    found = offered(index, query, hits)
    if not found or cues.model is None:
        return None
    spans = zip(question.get("answer_starts", ()), question.get("answers", ()), strict=True)
    golds = [(at, at + len(answer)) for at, answer in spans if at >= 0 and answer]
    rows = [[one[key] for key in QUOTE_FEATURES] for one in relative(found)]
    right = [quotes(one.span, golds) for one in found]
    return Seen(
        name, fold, cues.matter, tuple(one.span for one in found), np.array(rows),
        np.array(right, dtype=bool), features(index, query, hits, ()), cues, len(index.chunks),
        not question["is_impossible"],
    )  # fmt: skip


def _regression(
    rows: Vector, truth: NDArray[np.bool_], weights: Vector, names: Sequence[str]
) -> Linear:
    """A logistic regression on standardised columns, told for plain ones."""
    mean, spread = rows.mean(0), rows.std(0) + 1e-9
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit((rows - mean) / spread, truth, sample_weight=weights)
    scaled = model.coef_[0] / spread
    bias = float(model.intercept_[0] - scaled @ mean)
    return Linear(
        round(bias, 4), {n: round(float(w), 4) for n, w in zip(names, scaled, strict=True)}
    )


def fit_quote(seen: Sequence[Seen]) -> Linear:
    """The model of quotes, from the questions that have an answer."""
    used = [one for one in seen if one.answerable and len(one.rows)]
    weights = [np.full(len(one.rows), _SET_WEIGHT[one.set_name]) for one in used]
    rows, right = np.vstack([one.rows for one in used]), np.concatenate([one.right for one in used])
    return _regression(rows, right, np.concatenate(weights), QUOTE_FEATURES)


@dataclass(frozen=True, slots=True)
class _Answers:
    """Features of whole answers, and which matter each question asks for."""

    rows: Vector
    matter: tuple[str, ...]
    answerable: NDArray[np.bool_]
    weights: Vector
    folds: NDArray[np.int64]


def _answers(seen: Sequence[Seen]) -> _Answers:
    """Every question with a model of quotes that did not see its fold."""
    rows = []
    for one, quote in _left_out(seen):
        weights = np.array([quote.weights[name] for name in QUOTE_FEATURES])
        odds = one.rows @ weights + quote.bias
        sentences = [
            Sentence(start, end, _NO_CHUNK, float(value), float(1 / (1 + np.exp(-value))))
            for (start, end), value in zip(one.spans, odds, strict=True)
        ]
        likely = [found.likely or 0.0 for found in best_apart(sentences, 5)]
        found = learned_features(one.whole, one.cues, one.chunks, likely)
        rows.append([found[name] for name in ANSWER_FEATURES])
    return _Answers(
        np.array(rows),
        tuple(one.matter for one in seen),
        np.array([one.answerable for one in seen]),
        np.array([_SET_WEIGHT[one.set_name] for one in seen]),
        np.array([one.fold for one in seen]),
    )


def _left_out(seen: Sequence[Seen]) -> Iterator[tuple[Seen, Linear]]:
    models = {
        fold: fit_quote([one for one in seen if one.fold != fold])
        for fold in {one.fold for one in seen}
    }
    for one in seen:
        yield one, models[one.fold]


def _fit_answer(answers: _Answers, used: NDArray[np.bool_]) -> tuple[Linear, dict[str, float]]:
    names = sorted(set(answers.matter))
    mean, spread = answers.rows.mean(0), answers.rows.std(0) + 1e-9
    of = np.array([names.index(matter) for matter in answers.matter])
    own = np.zeros((len(of), len(names)))
    own[np.arange(len(of)), of] = 1.0
    rows = np.hstack([(answers.rows - mean) / spread, own])
    model = LogisticRegression(C=1.0, max_iter=2000)
    model.fit(rows[used], answers.answerable[used], sample_weight=answers.weights[used])
    count = len(ANSWER_FEATURES)
    scaled = model.coef_[0][:count] / spread
    weights = {n: round(float(w), 4) for n, w in zip(ANSWER_FEATURES, scaled, strict=True)}
    bias = float(model.intercept_[0] - scaled @ mean)
    leans = {n: round(float(w), 3) for n, w in zip(names, model.coef_[0][count:], strict=True)}
    return Linear(round(bias, 4), {**weights, "lean": 1.0}), leans


def _odds(answers: _Answers, model: Linear, leans: Mapping[str, float]) -> Vector:
    weights = np.array([model.weights[name] for name in ANSWER_FEATURES])
    lean = np.array([leans.get(matter, 0.0) for matter in answers.matter])
    return np.asarray(answers.rows @ weights + model.bias + lean)


def judged(matters: Sequence[Matter], seen: Sequence[Seen]) -> CueModel:
    """The whole model: `matters` with both judges fitted on `seen`."""
    answers = _answers(seen)
    odds = np.zeros(len(seen))
    for fold in set(answers.folds):
        left = answers.folds == fold
        odds[left] = _odds(answers, *_fit_answer(answers, ~left))[left]
    # Every set counts as in the fit.
    said = answers.answerable
    order = np.argsort(odds[said])
    mass = np.cumsum(answers.weights[said][order]) / answers.weights[said].sum()
    threshold = float(odds[said][order][np.searchsorted(mass, _FALSE_REFUSALS)])
    answer, leans = _fit_answer(answers, np.ones(len(seen), dtype=bool))
    answer = Linear(round(answer.bias - threshold, 4), answer.weights)
    named = [replace(one, lean=leans.get(one.name, 0.0)) for one in matters]
    return CueModel(named, fit_quote(seen), answer)
