"""BM25 against an independent implementation, TF-IDF against its definition."""

from __future__ import annotations

import math
import random

import numpy as np

from retrieval.bm25 import KeywordIndex
from retrieval.tfidf import VectorIndex


def plain_bm25(
    documents: list[list[str]], query: dict[str, float], k1: float, b: float
) -> list[float]:
    """BM25 written from its formula, document by document."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term, weight in query.items():
            n = sum(term in other for other in documents)
            frequency = document.count(term)
            if n and frequency:
                idf = math.log(1 + (len(documents) - n + 0.5) / (n + 0.5))
                norm = frequency + k1 * (1 - b + b * len(document) / mean)
                score += weight * idf * frequency * (k1 + 1) / norm
        scores.append(score)
    return scores


def test_equal_to_independent_implementation() -> None:
    rng = random.Random(3)
    for size in (1, 2, 3, 10, 57):
        documents = [
            [rng.choice("abcdefgh") for _ in range(rng.randint(1, 30))] for _ in range(size)
        ]
        query = {"a": 1.0, "c": 0.5, "h": 2.0, "zz": 1.0}
        found = KeywordIndex(documents, k1=1.2, b=0.6).scores(query)
        np.testing.assert_allclose(found, plain_bm25(documents, query, 1.2, 0.6), rtol=1e-9)


def test_matching_document_scores_above_zero_at_every_size() -> None:
    for size in (1, 2, 3, 4, 9):
        for holding in range(1, size + 1):
            documents = [["x", "common"] if i < holding else ["y"] for i in range(size)]
            scores = KeywordIndex(documents).scores({"x": 1.0})
            assert all(scores[:holding] > 0)
            assert all(scores[holding:] == 0)


def test_unknown_terms_weigh_most_and_empty_corpora_never_match() -> None:
    index = KeywordIndex([["a"], ["a", "b"]])
    assert index.idf("never") > index.idf("b") > index.idf("a") > 0
    empty: tuple[list[list[str]], ...] = ([], [[]], [[], []])
    for documents in empty:
        assert KeywordIndex(documents).scores({"a": 1.0}).tolist() == [0.0] * len(documents)
        assert VectorIndex(documents).scores({"a": 1.0}).tolist() == [0.0] * len(documents)


def test_cosine_of_a_document_with_itself_is_one() -> None:
    index = VectorIndex([["a", "b"], ["b", "c"], ["d"]])
    scores = index.scores({"a": 1.0, "b": 1.0})
    assert scores[0] == np.float32(scores.max())
    np.testing.assert_allclose(scores[0], 1.0, rtol=1e-5)
    assert scores[2] == 0
