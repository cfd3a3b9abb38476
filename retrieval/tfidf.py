"""Cosine similarity of TF-IDF vectors over lists of terms, on scikit-learn.

Joined with BM25 in `index`: BM25 rewards the rare exact term, the cosine rewards a chunk that is
about the question as a whole. It knows nothing of text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer


def _same(terms: Sequence[str]) -> Sequence[str]:
    return terms


class VectorIndex:
    """TF-IDF vectors (sublinear term frequency, unit length) of `documents`, lists of terms."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._size = len(documents)
        self._vectorizer: TfidfVectorizer | None = None
        self._matrix: csr_matrix | None = None
        if any(documents):
            self._vectorizer = TfidfVectorizer(analyzer=_same, sublinear_tf=True, dtype=np.float32)
            self._matrix = csr_matrix(self._vectorizer.fit_transform(documents))

    def scores(self, weighted: Mapping[str, float]) -> NDArray[np.float64]:
        """Cosine of each document with the weighted terms, in [0, 1]; zeros when none is known."""
        if self._vectorizer is None or self._matrix is None:
            return np.zeros(self._size)
        columns = self._vectorizer.vocabulary_
        query = np.zeros(len(columns), dtype=np.float32)
        for term, weight in weighted.items():
            column = columns.get(term)
            if column is not None:
                query[column] = weight * self._vectorizer.idf_[column]
        length = float(np.linalg.norm(query))
        if length == 0.0:
            return np.zeros(self._size)
        return np.asarray(self._matrix @ (query / length), dtype=np.float64)
