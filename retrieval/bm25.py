"""BM25 over lists of terms, on rank-bm25 with an inverse document frequency that is never zero.

rank-bm25's Okapi variant gives a term in half of the chunks the weight 0 and one in more than half
a floor that may be negative, which makes small contracts unsearchable. Here
idf = ln(1 + (N - n + 0.5) / (n + 0.5)), positive at every size. It knows nothing of text.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi


class _PositiveBM25(BM25Okapi):  # type: ignore[misc]
    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        for term, count in nd.items():
            self.idf[term] = math.log1p((self.corpus_size - count + 0.5) / (count + 0.5))


class KeywordIndex:
    """BM25 over `documents` (lists of terms). An empty corpus, or one without any term, is fine
    and never matches."""

    def __init__(
        self, documents: Sequence[Sequence[str]], *, k1: float = 1.2, b: float = 0.6
    ) -> None:
        self._size = len(documents)
        self._counts = Counter(term for document in documents for term in set(document))
        self._bm25 = _PositiveBM25(documents, k1=k1, b=b) if any(documents) else None

    def idf(self, term: str) -> float:
        """Weight of a term; for one that stands nowhere, the weight of the rarest possible term."""
        known = self._bm25.idf.get(term) if self._bm25 is not None else None
        return float(known) if known is not None else math.log1p((self._size + 0.5) / 0.5)

    def share(self, term: str) -> float:
        """Share of the documents that hold the term, in [0, 1]."""
        return self._counts.get(term, 0) / self._size if self._size else 0.0

    def has(self, term: str) -> bool:
        """Whether any document holds the term."""
        return self._bm25 is not None and term in self._bm25.idf

    def scores(self, weighted: Mapping[str, float]) -> NDArray[np.float64]:
        """One score per document, each term's score times its weight in the question."""
        total = np.zeros(self._size)
        if self._bm25 is None:
            return total
        for term, weight in weighted.items():
            if term in self._bm25.idf:
                total += weight * self._bm25.get_scores([term])
        return total
